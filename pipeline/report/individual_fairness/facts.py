"""Quantities of the study's artefacts, and facts derived from its rows and its configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import spearmanr

from fairness_audits.results.table import Column, Kind
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.reduction import flat
from pipeline.report.selection import select

STATED_STEPS = 500
"""Number of attack steps that the paper states for Adult."""
RELEASED_STEPS = 200
"""Number of attack steps of most audits in the authors' code."""
SPLITS = ("audit", "confirmation", "confirmation_tests")
"""Blocks of random splits."""
ENTROPY, ZERO_ONE = "Entropy loss", "0-1 loss"
DECIMALS = {"mean": 3, "share": 2, "average": 1, "total": 0}
BOUNDARY_SIDES = {"left": -1, "right": 1}


@dataclass(frozen=True)
class Quantity:
    """One statistic in a table: ``key`` is the head of its column, ``statistic`` its name in the rows.

    ``attacked`` statistics exist at every recorded number of steps and for each ``split`` on which the metric is
    learned. ``kind`` selects the mean with its spread, the share of repetitions, the mean alone, or the sum over the
    repetitions.
    """

    key: str
    statistic: str
    group: str = ""
    kind: Literal["mean", "share", "average", "total"] = "mean"
    attacked: bool = False
    split: str = "test"

    @property
    def name(self) -> str:
        """Return the key without the distinguishing part in brackets."""
        return self.key.split(" (")[0]

    def column(self, inputs: Inputs, kind: Kind = "spread") -> Column:
        """Return the column of this quantity in a table with a row per data set and method."""
        shown: Kind = kind if self.kind == "mean" else "number"
        return Column(
            self.key, shown, lambda place: self.measure(inputs, *place), self.group, DECIMALS[self.kind], self.name
        )

    def setting(self, dataset: str, method: str, steps: int) -> dict[str, str | float]:
        """Return the setting that selects the rows of this quantity."""
        place = {"block": "audit", "dataset": dataset, "method": method, "statistic": self.statistic}
        return {**place, "metric_split": self.split, "steps": float(steps)} if self.attacked else {**place}

    def values(self, inputs: Inputs, dataset: str, method: str, steps: int | None = None) -> np.ndarray:
        """Return one value per repetition, by default after the number of steps shown in the tables."""
        steps = shown_steps(inputs, dataset) if steps is None else steps
        return inputs.values(**self.setting(dataset, method, steps)).to_numpy(float)

    def measure(self, inputs: Inputs, dataset: str, method: str, steps: int | None = None) -> Any:
        """Summarise the repetitions according to ``kind``."""
        values = self.values(inputs, dataset, method, steps)
        if self.kind == "total":
            return float(values.sum())
        found = replace(estimate("share" if self.kind == "share" else "mean", values), low=np.nan, high=np.nan)
        return float(found.value) if self.kind == "average" else found


BALANCED_ACCURACY = Quantity("bal-acc", "balanced_accuracy")
AOD_GENDER, AOD_RACE = Quantity("AOD gender", "aod_sex"), Quantity("AOD race", "aod_race")
T_N = Quantity("T_n", "T_n", ENTROPY, attacked=True)
REJECTED = Quantity("rejection prop", "rejected", ENTROPY, "share", attacked=True)
ERROR_T_N = Quantity("T~_n", "error_T_n", ZERO_ONE, attacked=True)
ERROR_REJECTED = Quantity("rejection prop (0-1)", "error_rejected", ZERO_ONE, "share", attacked=True)
PERFORMANCE = (BALANCED_ACCURACY, AOD_GENDER, AOD_RACE)
LOSS_RATIO, ERROR_RATIO = (T_N, REJECTED), (ERROR_T_N, ERROR_REJECTED)


def learned_on(quantity: Quantity, split: str) -> Quantity:
    """Return the same quantity with the metric learned on the rows of a split."""
    return replace(quantity, key=f"{quantity.key} ({split})", group=f"Metric learned on {split} rows", split=split)


def shown_steps(inputs: Inputs, dataset: str, wanted: int = STATED_STEPS) -> int:
    """Return the largest recorded number of steps up to ``wanted``, or the smallest recorded one if all are larger."""
    rows = inputs.select(block="audit", dataset=dataset, statistic="T_n", metric_split="test")
    recorded = np.unique(rows["steps"].dropna())
    below = recorded[recorded <= wanted]
    return int(below[-1] if len(below) else recorded[0])


def steps_note(inputs: Inputs, *datasets: str) -> str:
    """Return the note on the number of attack steps behind the statistics and on the number in the paper."""
    texts = []
    for dataset in datasets:
        steps = shown_steps(inputs, dataset)
        other = "not stated in the paper; for Adult" if dataset == w.COMPAS else "in the paper:"
        missing = "" if steps == STATED_STEPS else ", which this run did not record"
        texts.append(f"{steps:,} for {w.dataset_label(dataset)} ({other} {STATED_STEPS:,}{missing})")
    return f"Attack steps for T_n and T~_n: {'; '.join(texts)}."


def odds_note(inputs: Inputs, *datasets: str) -> str:
    """Return the note on the sign of the odds differences, for which the paper has both conventions."""
    texts = []
    for dataset in datasets:
        levels = inputs.datasets[dataset].levels
        pairs = ", ".join(f"{zero} minus {one}" for zero, one in levels.values())
        texts.append(f"{w.dataset_label(dataset)}: {pairs}")
    return (
        f"AOD: average odds difference ({'; '.join(texts)}). The published values have this sign. The formula in "
        "appendix F.5 has the opposite sign."
    )


def principal_angles(inputs: Inputs, dataset: str) -> list[np.ndarray]:
    """Return principal angles between the subspaces of train and test rows in degrees, ascending, (R,) each."""
    place = {"block": "audit", "dataset": dataset, "method": inputs.names("method", block="audit", dataset=dataset)[0]}
    statistics = inputs.select(**place)["statistic"].unique()
    names = sorted(name for name in statistics if str(name).startswith("principal_angle_"))
    if not names:
        raise ValueError(f"{place} has no principal_angle_<i>: audit it again")
    return [inputs.values(**place, statistic=name).to_numpy(float) for name in names]


def measurements(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the audits and the facts of the study in one frame, see :mod:`pipeline.report.facts`."""
    configured = configured_facts(inputs.points, implied=_implied)
    place = {"block": "audit", "statistic": "shown_steps", "origin": "configuration"}
    audited = set(inputs.rows.loc[inputs.rows["block"] == "audit", "dataset"])
    shown = [{**place, "dataset": d, "value": float(shown_steps(inputs, d))} for d in sorted(audited)]
    return with_facts(inputs, [*configured, *shown, *_heatmap_readings(inputs), *_ever_rejected(inputs)])


def configured(inputs: Inputs, block: str, dataset: str, method: str) -> dict[str, Any]:
    """Return the configured values of one point by ``group.key``.

    Raises NotRun or ValueError if the study has no such point.
    """
    for point in inputs.points:
        if (point["block"], point["dataset"]["name"], point["method"]["name"]) == (block, dataset, method):
            return dict(flat(point))
    problem = f"study {inputs.study!r} has no point with block {block!r}, dataset {dataset!r}, method {method!r}"
    raise inputs.absence(problem, block, dataset)


def boundary(theta: np.ndarray, statistic: np.ndarray, threshold: float, side: int) -> float:
    """Find where T_n first exceeds ``threshold`` from theta = 0 towards one ``side`` (-1 or +1), interpolated linearly.

    NaN if it never does. ``theta`` (k,) is ascending, with ``statistic`` (k,).
    """
    order = np.argsort(side * theta)
    outward = side * theta[order]
    start = int(np.argmin(np.abs(outward)))
    x, t = outward[start:], statistic[order][start:]
    above = np.flatnonzero(t > threshold)
    if not len(above):
        return float("nan")
    first = int(above[0])
    if first == 0:
        return 0.0
    share = (threshold - t[first - 1]) / (t[first] - t[first - 1])
    return float(side * (x[first - 1] + share * (x[first] - x[first - 1])))


def _implied(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers that follow from the configuration, under the names in the paper."""
    implied = {}
    if "audit.alpha" in values:
        implied["critical_value"] = float(ndtri(1 - float(values["audit.alpha"])))
    if "dataset.label_noise" in values:
        implied["label_noise_variance"] = float(values["dataset.label_noise"]) ** 2
    if values.get("method.points_per_axis", 1) > 1:
        implied["grid_step"] = (values["method.high"] - values["method.low"]) / (values["method.points_per_axis"] - 1)
    return implied


def _heatmap_readings(inputs: Inputs) -> Iterator[dict[str, Any]]:
    heatmaps = select(inputs.rows, {"block": "heatmaps", "statistic": "T_n"})
    keys = ["origin", "dataset", "method", "intercept", "metric", "angle"]
    for values, panel in heatmaps.groupby(keys, sort=True) if len(heatmaps) else ():
        place = {"block": "heatmaps", **dict(zip(keys, values, strict=True))}
        delta = float(configured(inputs, "heatmaps", place["dataset"], place["method"])["audit.delta"])
        yield {**place, "statistic": "maximum", "value": float(panel["value"].max())}
        middle = panel[np.isclose(panel["theta_2"], 0)].sort_values("theta_1")
        for side, sign in BOUNDARY_SIDES.items():
            value = boundary(middle["theta_1"].to_numpy(float), middle["value"].to_numpy(float), delta, sign)
            yield {**place, "statistic": f"boundary_{side}", "value": value}
        yield from accepted_ranges(panel, place, delta)


def accepted_ranges(panel: pd.DataFrame, place: Mapping[str, Any], delta: float) -> Iterator[dict[str, Any]]:
    """Yield the effect of each fair weight theta_2 on the accepted unfair weights theta_1, those with T_n <= delta.

    ``accepted_low`` and ``accepted_high`` are the ends of the accepted range minus those at theta_2 = 0. ``trend`` is
    Spearman's correlation of T_n with |theta_1|. ``at_zero`` is T_n at theta_1 = 0. ``separation`` is the smallest T_n
    at another theta_1 minus the largest T_n at theta_1 = 0 over all theta_2; if it is positive, some delta separates
    the two. ``tilt`` is the distance between the middles of the ranges at theta_2 and -theta_2. ``repetition`` numbers
    the weights theta_2.
    """
    wide = panel.pivot(index="theta_2", columns="theta_1", values="value")
    theta, values = wide.columns.to_numpy(float), wide.to_numpy(float)
    accepted = values <= delta
    ends = np.array([[theta[row].min(), theta[row].max()] if row.any() else [np.nan] * 2 for row in accepted])
    middle = int(np.argmin(np.abs(wide.index.to_numpy(float))))
    nearest = int(np.argmin(np.abs(theta)))
    for number, (row, (low, high)) in enumerate(zip(values, ends, strict=True)):
        found = {
            "accepted_low": low - ends[middle, 0],
            "accepted_high": high - ends[middle, 1],
            "trend": spearmanr(np.abs(theta), row).statistic,
            "at_zero": row[nearest],
            "separation": np.delete(row, nearest).min() - values[:, nearest].max(),
        }
        if number > middle:
            found["tilt"] = abs(ends[number].mean() - ends[2 * middle - number].mean())
        for statistic, value in found.items():
            yield {**place, "repetition": number, "statistic": statistic, "value": round(float(value), 9)}


def _ever_rejected(inputs: Inputs) -> Iterator[dict[str, Any]]:
    curves = select(inputs.rows, {"block": SPLITS, "statistic": "rejected", "metric_split": "test"})
    keys = ["block", "origin", "dataset", "method", "repetition"]
    for values, curve in curves.groupby(keys, sort=True, observed=True):
        place = dict(zip(keys, values, strict=True))
        # Without a rejection, one unknown value leaves it unknown.
        value = 1.0 if (curve["value"] == 1).any() else float(curve["value"].max(skipna=False))
        yield {**place, "statistic": "ever_rejected", "value": value}
