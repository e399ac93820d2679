"""Validation of maps: which maps reach the target group, Table 1 of Black et al. (2020), by kind of map."""

from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.table import Cell, Column
from fairness_audits.transport.quality import WORST_HEALTHY_KS
from pipeline.report import labels as w
from pipeline.report.fliptest import trials
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.selection import by_repetition
from pipeline.report.table import StampedTable, tabulated

EXPERIMENTS = {
    (w.SSL, w.EVERYONE): "SSL: Dem Parity",
    (w.SSL, w.NEGATIVES): "SSL: Eq Odds (Neg)",
    (w.SSL, w.POSITIVES): "SSL: Eq Odds (Pos)",
    (w.HIRING, w.EVERYONE): "Lipton: Dem Parity",
    (w.LAW, w.EVERYONE): "Law School",
}
"""Names of the experiments in Table 1. The third, on ground-truth positives, is not in the paper."""
OF_SSL = {"Age": "age at latest arrest", "Gang Aff": "gang affiliation", "Narc Arr": "narcotic arrests"}
TABLE_1 = {
    (w.SSL, w.EVERYONE): OF_SSL,
    (w.SSL, w.NEGATIVES): OF_SSL,
    (w.HIRING, w.EVERYONE): {"Work Exp": "work experience", "Hair Len": "hair length"},
    (w.LAW, w.EVERYONE): {"LSAT": "LSAT", "GPA": "GPA"},
}
"""Features in Table 1: their names there, and their printed names elsewhere."""
HEALTHY = (
    "A map is valid (reaches its target) if every feature of the counterparts has a KS distance of at most "
    f"{WORST_HEALTHY_KS:g} from the target group. Otherwise its training failed."
)
NO_ERROR = 1e-12
"""Errors on real people below this value are rounding errors."""


@dataclass(frozen=True)
class Validated:
    """Measures by trial for one kind of map between two groups of a data set, from source to target."""

    inputs: Inputs = field(repr=False, compare=False)
    dataset: str
    given: str
    transport: str

    @property
    def label(self) -> str:
        """Return the name of the experiment in Table 1."""
        return EXPERIMENTS.get((self.dataset, self.given), w.dataset_label(self.dataset))

    def rows(self, statistic: str) -> pd.DataFrame:
        """Return the rows of one measure."""
        place = {"dataset": self.dataset, "given": self.given, "transport": self.transport, "direction": w.FORWARD}
        return self.inputs.select(audit=trials.QUALITY, statistic=statistic, **place)

    def by_feature(self, statistic: str) -> dict[str, pd.Series]:
        """Return a measure by feature, in the order of the features."""
        by_feature = self.rows(statistic).groupby("feature", sort=False)
        return {str(feature): by_repetition(part) for feature, part in by_feature}

    def overall(self, statistic: str) -> pd.Series:
        """Return a measure of all features together."""
        return by_repetition(self.rows(statistic))

    @property
    def healthy(self) -> pd.Series:
        """Return by trial whether the map reaches the target group."""
        return self.overall("healthy").astype(bool)

    @property
    def regression_error(self) -> pd.Series:
        """Return |MSE difference| divided by the error on real people, averaged over the features.

        Features without error on real people are excluded, such as one of two complementary dummy variables.
        """
        difference, real = self.by_feature("mse_difference"), self.by_feature("mse_real")
        relative = {name: difference[name].abs() / real[name].where(real[name] > NO_ERROR) for name in difference}
        return pd.DataFrame(relative).mean(axis=1)

    @property
    def cost_ratio(self) -> pd.Series:
        """Return the mean squared L1 distance of the map divided by that of exact transport.

        Exact transport is between equally many people of both groups.
        """
        exact = self.overall("exact_cost")
        return self.overall("map_cost") / exact.where(exact > NO_ERROR)


def validated(inputs: Inputs) -> list[Validated]:
    """Return all validated maps, in the order of Table 1 and of the kinds of maps."""
    rows = inputs.select(audit=trials.QUALITY, statistic="healthy", direction=w.FORWARD)
    found = rows[["dataset", "given", "transport"]].drop_duplicates().itertuples(index=False)
    listed = [Validated(inputs, str(d), str(given), str(kind)) for d, given, kind in found]
    order, maps = list(EXPERIMENTS), w.maps_in(one.transport for one in listed)

    def place(one: Validated) -> tuple[int, str, int]:
        key = (one.dataset, one.given)
        return (order.index(key) if key in order else len(order), one.dataset, maps.index(one.transport))

    return sorted(listed, key=place)


@artefact(
    "How well the GAN's maps reach the target group, and how far they move people, compared with exact transport. The "
    "published table has only the columns for all trials, which include trials whose training failed.",
)
def table_1(inputs: Inputs) -> StampedTable:
    maps = [one for one in validated(inputs) if one.transport == w.WGAN and (one.dataset, one.given) in TABLE_1]
    if not maps:
        problem = f"Table 1 needs maps of kind {w.WGAN!r}: found {validated(inputs)}"
        raise inputs.absence(problem, dataset={dataset for dataset, _ in TABLE_1})

    def measure(statistic: str, healthy: bool, place: tuple[Validated, str]) -> Cell:
        one, printed = place
        by_feature, label = one.by_feature(statistic), TABLE_1[one.dataset, one.given][printed]
        values = by_feature[w.feature_named(label, list(by_feature), one.dataset)]
        values = values[one.healthy.reindex(values.index)] if healthy else values
        return Estimate.mean(values.to_numpy(float)) if len(values) else None

    def whole(statistic: str, place: tuple[Validated, str]) -> Cell:
        """Return a measure of the whole map, in the row of its first feature."""
        one, printed = place
        first = printed == next(iter(TABLE_1[one.dataset, one.given]))
        return Estimate.mean(one.overall(statistic).to_numpy(float)) if first else ""

    group = "Trials with a valid map"
    return tabulated(
        title="Validation of the WGAN's maps.",
        stub=("Experiment", "Features"),
        columns=(
            Column("KS", "spread", partial(measure, "ks", False), "All trials"),
            Column("MSE Diff", "spread", partial(measure, "mse_difference", False), "All trials"),
            Column("healthy", "text", lambda place: counted(place[0].healthy), group, name="number"),
            Column("KS healthy", "spread", partial(measure, "ks", True), group, name="KS"),
            Column("MSE Diff healthy", "spread", partial(measure, "mse_difference", True), group, name="MSE Diff"),
            Column("KS raw", "spread", partial(measure, "ks_raw", False), printed=False),
            *(
                Column(f"Dist: {kind}{power}", "spread", partial(whole, f"{of}_{cost}"), "Distance", 2, kind, not power)
                for power, cost in (("", "l1"), (" squared", "cost"))
                for kind, of in (("OT", "exact"), ("GAN", "map"))
            ),
        ),
        rows=[((one.label, name), (one, name)) for one in maps for name in TABLE_1[one.dataset, one.given]],
        stamp=inputs.stamp({block for one in maps for block in one.rows("ks")["block"]}, maps=[w.WGAN]),
        notes=(
            "Mean \u00b1 standard deviation over the trials. Each trial has its own split and map.",
            "KS: Kolmogorov-Smirnov distance of a feature between the target group and the counterparts. Each value of "
            "a counterpart is rounded to the nearest value in the target group. The CSV also has the distance without "
            "rounding.",
            "MSE Diff: a regression of the feature on the other features is fitted on real people. The difference is "
            "its error on counterparts minus its error on other real people.",
            HEALTHY,
            "Distances are L1 distances over all columns. Table 1 calls them squared, but its numbers are not squared. "
            "The CSV also has squared distances. On the law-school data, the change of race adds 2 to the distance.",
        ),
    )  # fmt: skip


def counted(held: pd.Series) -> str:
    """Format a count: ``9 of 10``."""
    return f"{int(held.sum()):,} of {len(held)}"
