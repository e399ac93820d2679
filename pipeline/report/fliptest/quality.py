"""The validation of maps: which experiments there are, and each measure over the trials, all or the healthy ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate

EXPERIMENTS = {
    (w.SSL, w.EVERYONE): "SSL: Dem Parity",
    (w.SSL, w.NEGATIVES): "SSL: Eq Odds (Neg)",
    (w.SSL, w.POSITIVES): "SSL: Eq Odds (Pos)",
    (w.HIRING, w.EVERYONE): "Lipton: Dem Parity",
    (w.LAW, w.EVERYONE): "Law School",
}
"""As Table 1 names them; its third row block, of ground-truth positives, is not in the paper."""


@dataclass(frozen=True)
class Validated:
    """The maps of one kind between two groups of a data set, from the source group to the target."""

    dataset: str
    given: str
    transport: str
    direction: str = w.FORWARD

    @property
    def label(self) -> str:
        """The experiment's name in Table 1."""
        return EXPERIMENTS.get((self.dataset, self.given), w.dataset_label(self.dataset))


def validated(inputs: Inputs, direction: str = w.FORWARD) -> list[Validated]:
    """Everything that was validated, in the order of Table 1 and of the maps."""
    rows = inputs.select(audit=trials.QUALITY, statistic="healthy", direction=direction)
    found = rows[["dataset", "given", "transport"]].drop_duplicates().itertuples(index=False)
    listed = [Validated(str(d), str(given), str(kind), direction) for d, given, kind in found]
    order, maps = list(EXPERIMENTS), w.maps_in(one.transport for one in listed)

    def place(one: Validated) -> tuple[int, str, int]:
        key = (one.dataset, one.given)
        return (order.index(key) if key in order else len(order), one.dataset, maps.index(one.transport))

    return sorted(listed, key=place)


def rows_of(inputs: Inputs, maps: Validated, statistic: str) -> pd.DataFrame:
    """The rows of one measure."""
    return inputs.select(audit=trials.QUALITY, statistic=statistic, **vars(maps))


def by_feature(inputs: Inputs, maps: Validated, statistic: str) -> dict[str, pd.Series]:
    """A measure of each feature, by trial, in the features' own order."""
    rows = rows_of(inputs, maps, statistic)
    return {
        str(feature): part.set_index("repetition")["value"].sort_index()
        for feature, part in rows.groupby("feature", sort=False)
    }


def overall(inputs: Inputs, maps: Validated, statistic: str) -> pd.Series:
    """A measure over all features, by trial."""
    return rows_of(inputs, maps, statistic).set_index("repetition")["value"].sort_index()


def healthy(inputs: Inputs, maps: Validated) -> pd.Series:
    """Which trials' maps reach the target group, by trial."""
    return overall(inputs, maps, "healthy").astype(bool)


def estimate(values: pd.Series, kept: pd.Series | None = None) -> Estimate:
    """Mean and spread over the trials, or over those that are kept."""
    return Estimate.mean((values if kept is None else values[kept.reindex(values.index)]).to_numpy(float))


def distance(inputs: Inputs, maps: Validated, of: str) -> pd.Series:
    """Mean L1 distance of the ``map`` or of the ``exact`` one over all columns, by trial.

    The audit measures the columns that are transported; those that define the groups change by a constant.
    """
    return overall(inputs, maps, f"{of}_l1") + constant(inputs, maps)


def squared_distance(inputs: Inputs, maps: Validated, of: str) -> pd.Series:
    """Mean squared L1 distance over all columns: E (s + k)^2 = E s^2 + 2 k E s + k^2, k what changes by definition."""
    k = constant(inputs, maps)
    return overall(inputs, maps, f"{of}_cost") + 2 * k * overall(inputs, maps, f"{of}_l1") + k**2


def constant(inputs: Inputs, maps: Validated) -> float:
    """L1 distance between the two groups in the columns that are not transported, each constant in either group.

    Raises ValueError where the data or the map are not at hand.
    """
    found = [m for m in inputs.transports.values() if (m.dataset, m.transport) == (maps.dataset, maps.transport)]
    if not found or maps.dataset not in inputs.datasets:
        raise ValueError(f"distances need the data {maps.dataset!r} and its maps {maps.transport!r}")
    dataset, fitted = inputs.datasets[maps.dataset], found[0]
    columns = [c for c, name in enumerate(dataset.feature_names) if name not in fitted.features]
    first, second = dataset.means[fitted.attribute][:, columns]
    return float(np.abs(first - second).sum())


def regression_error(inputs: Inputs, maps: Validated) -> pd.Series:
    """|MSE difference| over the error on real people, mean over the features, by trial."""
    difference, real = (by_feature(inputs, maps, name) for name in ("mse_difference", "mse_real"))
    return pd.DataFrame({name: relative(difference[name].abs(), real[name]) for name in difference}).mean(axis=1)


def cost_ratio(inputs: Inputs, maps: Validated) -> pd.Series:
    """Mean squared L1 distance of the map over that of exact transport between as many of both groups, by trial."""
    return relative(overall(inputs, maps, "map_cost"), overall(inputs, maps, "exact_cost"))


NO_ERROR = 1e-12
"""An error on real people below this is rounding."""


def relative(numerator: pd.Series, denominator: pd.Series) -> pd.Series:
    """Trial by trial; what has no denominator is NaN: one of two complementary dummies is regressed without error."""
    return numerator / denominator.where(denominator > NO_ERROR)
