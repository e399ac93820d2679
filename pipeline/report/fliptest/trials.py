"""Access to the study's numbers: rows of every trial, arrays of the first trial, and the health of the maps.

A *trial* is a repetition with its own split (or draw) of the data and its own map. Only the first trial keeps arrays,
so histograms show one map, as published. Its numbers are shown with their spread over the trials. A transparency report
has one line per feature over all trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from fairness_audits.audits.fliptest.bars import MEAN, RANKS, Line
from fairness_audits.audits.fliptest.intervals import over_trials
from fairness_audits.audits.fliptest.transparency import STANDS_OUT
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import DASH, number
from fairness_audits.results.style import MethodStyle
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs, condition_of

FLIPTEST, QUALITY, STABILITY = "fliptest", "map_quality", "map_stability"
MOST = 0.5
"""Smallest share of valid maps at which the others are left out. Claims have the same precondition."""
BOTH = (w.POSITIVE, w.NEGATIVE)
KEYS = ("block", "dataset", "method", "transport", "given", "attribute", "direction")
NONE = np.full(1, np.nan)


def _array(name: str) -> property:
    return property(lambda trial: trial.arrays[f"{name}{trial.suffix}"])


@dataclass(frozen=True)
class FirstTrial:
    """Arrays of the first trial: n members of the source group with their counterparts.

    ``features`` and ``images`` (n, d), ``decision``, ``decision_image``, ``score`` and ``score_image`` (n,),
    ``target_features`` (m, d) and ``target_score`` (m,) are the ``arrays`` with these names and the ``suffix``. In a
    reference, a row does not hold the features of one real person, see :mod:`pipeline.report.reference`.
    """

    arrays: Mapping[str, Array]
    suffix: str = ""

    features, images = _array("features"), _array("images")
    decision, decision_image = _array("decision"), _array("decision_image")
    score, score_image = _array("score"), _array("score_image")
    target_features, target_score = _array("target_features"), _array("target_score")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the features."""
        return tuple(map(str, self.arrays["feature_names"]))

    def members(self, flipset: str) -> Array:
        """Return the members of a flipset as booleans (n,); for ``""`` the whole group. All n have counterparts."""
        if not flipset:
            return np.ones(len(self.decision), dtype=bool)
        both = (self.decision, self.decision_image)
        higher, lower = both[::-1] if flipset == w.NEGATIVE else both
        return np.asarray(higher > lower)

    def column(self, name: str) -> int:
        """Return the column index of a feature."""
        return self.names.index(name)


def leading(report: Sequence[Line]) -> Line | None:
    """Return the largest line that stands out, or else the largest line; None for an empty flipset."""
    return next((line for line in report if line.standing == STANDS_OUT), report[0] if report else None)


@dataclass(frozen=True)
class AuditedMap:
    """One map in one direction, audited with the decisions of one classifier, over all trials.

    ``attribute`` is optional if the block has only one.
    """

    inputs: Inputs = field(repr=False, compare=False)
    block: str
    dataset: str
    method: str
    transport: str
    given: str = w.EVERYONE
    attribute: str = ""
    direction: str = w.FORWARD

    def setting(self, **more: str | float) -> dict[str, str | float]:
        """Return the setting that selects the rows of this map."""
        return {**{key: getattr(self, key) for key in KEYS if getattr(self, key)}, "audit": FLIPTEST, **more}

    def values(self, **more: str) -> pd.Series:
        """Return a statistic by trial."""
        return self.inputs.values(**self.setting(**more))

    @property
    def style(self) -> MethodStyle:
        """Return the label and plot style of the map."""
        return w.MAPS[self.transport]

    @property
    def names(self) -> tuple[str, str]:
        """Return the names of the source and the target group."""
        line = self.inputs.select(**self.setting(statistic="n_source")).iloc[0]
        return str(line["source"]), str(line["target"])

    @property
    def groups(self) -> tuple[str, str]:
        """Return the printed names of the source and the target group."""
        source, target = self.names
        return w.group_label(source, self.dataset), w.group_label(target, self.dataset)

    @property
    def directions(self) -> list[AuditedMap]:
        """Return this map in each audited direction."""
        setting = self.setting(statistic="n_source")
        del setting["direction"]
        found = set(self.inputs.select(**setting)["direction"])
        return [replace(self, direction=direction) for direction in (w.FORWARD, w.REVERSE) if direction in found]

    @property
    def healthy(self) -> pd.Series:
        """Return by trial whether the map reaches the target group, by the rule of the audit of maps."""
        return self.values(statistic="healthy").astype(bool)

    @cached_property
    def included(self) -> pd.Series:
        """Return by trial whether its numbers count: maps that miss their target do not, if most maps reach it.

        Causal counterfactuals are not meant to reach the other group, so all of them count.
        """
        reached = self.healthy
        return reached if self.transport != w.COUNTERFACTUAL and reached.mean() >= MOST else reached | True

    @cached_property
    def counts(self) -> dict[tuple[str, str], Array]:
        """Return the counts by included trial (T,), by (flipset, statistic).

        Raises ValueError if several audits have this setting.
        """
        rows = self.inputs.select(**self.setting())
        rows = rows[rows["feature"].isna() & rows["repetition"].map(self.included)].sort_values("repetition")
        rows = rows.assign(flipset=rows["flipset"].astype(object).where(rows["flipset"].notna(), ""))
        keys = ["flipset", "statistic"]
        if rows.duplicated([*keys, "repetition"]).any():
            raise ValueError(f"counts of {self} are there more than once: give its attribute or true label too")
        return {(str(f), str(s)): own.to_numpy(float) for (f, s), own in rows.groupby(keys, observed=True)["value"]}

    def estimate(self, statistic: str, flipset: str = "") -> Estimate:
        """Return mean and spread over the trials. The interval averages those of the trials; NaN if one has none."""
        low, high = (self.counts.get((flipset, f"{statistic}_ci_{end}"), NONE) for end in ("low", "high"))
        return replace(Estimate.mean(self.counts[flipset, statistic]), low=float(low.mean()), high=float(high.mean()))

    @property
    def people(self) -> float:
        """Return the mean number of mapped people."""
        return self.estimate("n_source").value

    def by_chance(self, flipset: str) -> Estimate | None:
        """Return the size between random halves of the group, with ``high`` the upper end of chance, or None."""
        if (flipset, "noise_size") not in self.counts:
            return None
        size, end = (float(self.counts[flipset, name].mean()) for name in ("noise_size", "noise_size_upper"))
        return Estimate(size, high=end, text=f"{number(size, 0)} (\u2264 {number(end, 0)})")

    def share_positive(self, side: str) -> Estimate:
        """Return the percentage of positive decisions in the ``source`` or ``target`` group."""
        return Estimate.mean(100 * (self.counts["", f"positives_{side}"] / self.counts["", f"n_{side}"]))

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Return the arrays of the audit. Raises NotRun or ValueError if the audit is not available."""
        own = {key: getattr(self, key) for key in KEYS[:-1] if getattr(self, key)}
        for point in self.inputs.points:
            if point["audit"]["name"] == FLIPTEST and point["keys"].audit in self.inputs.audits:
                names = {part: point[part]["name"] for part in ("dataset", "method", "transport")}
                names |= {"attribute": point["transport"].get("attribute"), "given": condition_of(point)}
                if own.items() <= {"block": point["block"], **names}.items():
                    return self.inputs.audits[point["keys"].audit].arrays
        problem = f"there is no audit of {self}: found {sorted(self.inputs.audits)}"
        raise self.inputs.absence(problem, self.block, self.dataset)

    @property
    def first(self) -> FirstTrial:
        """Return the first trial. Raises ValueError if the audit is not available or has no such arrays."""
        suffix = "" if self.direction == w.FORWARD else "_reverse"
        if f"decision{suffix}" not in self.arrays:
            raise ValueError(f"the audit of {self} kept no decision{suffix}: found {sorted(self.arrays)}")
        return FirstTrial(self.arrays, suffix)

    @property
    def units(self) -> dict[str, float]:
        """Return the units of mean shifts by feature, for ranks, figures and text (``audit.units``).

        The model defines the units. Features without scaling use standard deviations over both groups. A 0/1
        column is not scaled, so its shift is a difference of shares.
        """
        names, units = (self.arrays[key].tolist() for key in ("feature_names", "units"))
        return dict(zip(map(str, names), map(float, units), strict=True))

    def report(self, flipset: str, ranking: str = MEAN) -> list[Line]:
        """Return the lines of one ranking, the largest first; none if the flipset is empty in every trial.

        Features that define the groups have no rank and no line. The interval of a mean sign is clipped to [-1, 1].
        """
        rows = self.inputs.select(**self.setting(flipset=flipset))
        alpha = float(pd.to_numeric(rows["alpha"]).dropna().iloc[0])
        columns = (ranking, f"{ranking}_ci_low", f"{ranking}_ci_high", RANKS[ranking])
        rows = rows[rows["feature"].notna() & rows["statistic"].isin(columns)].astype(
            {"statistic": str, "feature": str}
        )
        by_trial = rows.pivot(index="feature", columns=["statistic", "repetition"], values="value").sort_index(axis=1)
        counts = self.included.reindex(by_trial[ranking].columns).to_numpy(bool)
        shared = float(self.values(statistic="shared").mean())
        scale, furthest = (self.units, np.inf) if ranking == MEAN else ({}, 1.0)
        arrays = [by_trial[name].to_numpy(float) for name in columns]
        found = []
        for feature, value, low, high, rank in zip(by_trial.index, *arrays, strict=True):
            if np.isfinite(rank).any():
                value, low, high = (each / scale.get(feature, 1.0) for each in (value, low, high))
                line = over_trials(value[counts], low[counts], high[counts], shared, alpha)
                left, right = np.clip([line.low, line.high], -furthest, furthest).tolist()
                found.append(Line(feature, line.value, left, right, value[counts], value[~counts]))
        return sorted(found, key=lambda line: (-abs(line.value), line.feature))


def places(inputs: Inputs, **setting: str) -> list[AuditedMap]:
    """Return the audited maps and classifiers with this setting; maps in their fixed order.

    Raises ValueError if there are none.
    """
    rows = inputs.select(audit=FLIPTEST, statistic="n_source", **setting)
    keys = [key for key in KEYS[:-1] if key in rows]
    found = rows[keys].drop_duplicates().astype(object).fillna("").to_dict("records")
    order = w.maps_in(line["transport"] for line in found)
    listed = [AuditedMap(inputs, **{str(key): str(value) for key, value in line.items()}) for line in found]
    return sorted(listed, key=lambda place: order.index(place.transport))


def only(inputs: Inputs, **setting: str) -> AuditedMap:
    """Return the only map with this setting. Raises ValueError if there are several."""
    found = places(inputs, **setting)
    if len(found) != 1:
        raise ValueError(f"expected one audit of {setting}, found {found}")
    return found[0]


def top(place: AuditedMap, flipset: str) -> str:
    """Format the feature of :func:`leading` with its mean shift, and with its standing if it does not stand out."""
    line = leading(place.report(flipset))
    if line is None:
        return DASH
    word = "" if line.standing == STANDS_OUT else f", {line.standing}"
    return f"{w.feature_label(line.feature, place.dataset)} ({number(line.value, 2)}{word})"
