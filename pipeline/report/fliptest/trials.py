"""Where the study's numbers and arrays lie: rows of every trial, arrays of the first one, and which maps failed.

The lines of a transparency report are one for each feature, over all trials.

A *trial* is a repetition: its own split (or draw) of the data and its own map. Arrays are kept of the first trial
alone, so histograms show one map, as published; its numbers stand beside their spread over the trials.
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
BOTH = (w.POSITIVE, w.NEGATIVE)
KEYS = ("block", "dataset", "method", "transport", "given", "attribute", "direction")
NONE = np.full(1, np.nan)


def _array(name: str) -> property:
    return property(lambda trial: trial.arrays[f"{name}{trial.suffix}"])


@dataclass(frozen=True)
class FirstTrial:
    """What the audit kept of the first trial: n members of the source group with their counterparts.

    ``features`` and ``images`` (n, d); ``decision``, ``decision_image``, ``score``, ``score_image`` and ``rows`` (n,);
    ``target_features`` (m, d) and ``target_score`` (m,): ``arrays`` by these names, with ``suffix``. Of real people
    read from a reference, features that belong together are not in one row: see :mod:`pipeline.report.reference`.
    """

    arrays: Mapping[str, Array]
    suffix: str = ""

    features, images = _array("features"), _array("images")
    decision, decision_image = _array("decision"), _array("decision_image")
    score, score_image = _array("score"), _array("score_image")
    rows, target_features, target_score = _array("rows"), _array("target_features"), _array("target_score")

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return tuple(map(str, self.arrays["feature_names"]))

    def members(self, flipset: str) -> Array:
        """Who is in a flipset, (n,) bool; the whole group for ``""``. All of the n have counterparts."""
        if not flipset:
            return np.ones(len(self.decision), dtype=bool)
        both = (self.decision, self.decision_image)
        higher, lower = both[::-1] if flipset == w.NEGATIVE else both
        return np.asarray(higher > lower)

    def column(self, name: str) -> int:
        """The number of a feature's column."""
        return self.names.index(name)


def leading(report: Sequence[Line]) -> Line | None:
    """The largest line that stands out, else the largest; None of an empty flipset."""
    return next((line for line in report if line.standing == STANDS_OUT), report[0] if report else None)


@dataclass(frozen=True)
class AuditedMap:
    """One map in one direction, audited with one classifier's decisions, in all trials.

    ``attribute`` may be left out where a block has one.
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
        """The setting of its rows."""
        return {**{key: getattr(self, key) for key in KEYS if getattr(self, key)}, "audit": FLIPTEST, **more}

    def values(self, **more: str) -> pd.Series:
        """A statistic, by trial."""
        return self.inputs.values(**self.setting(**more))

    @property
    def style(self) -> MethodStyle:
        """How its map is called and drawn."""
        return w.MAPS[self.transport]

    @property
    def names(self) -> tuple[str, str]:
        """The names of the group that is mapped and of the group that it is mapped to."""
        line = self.inputs.select(**self.setting(statistic="n_source")).iloc[0]
        return str(line["source"]), str(line["target"])

    @property
    def groups(self) -> tuple[str, str]:
        """Both groups in words."""
        source, target = self.names
        return w.group_label(source, self.dataset), w.group_label(target, self.dataset)

    @property
    def directions(self) -> list[AuditedMap]:
        """The place in each direction that was audited."""
        setting = self.setting(statistic="n_source")
        del setting["direction"]
        found = set(self.inputs.select(**setting)["direction"])
        return [replace(self, direction=direction) for direction in (w.FORWARD, w.REVERSE) if direction in found]

    @property
    def healthy(self) -> pd.Series:
        """Whether each trial's map reaches the target group, by the rule of the audit of maps; by trial."""
        return self.values(statistic="healthy").astype(bool)

    @cached_property
    def counts(self) -> dict[tuple[str, str], Array]:
        """Every count by trial: (T,) under (flipset, statistic).

        Raises ValueError where the place is not the only one that it names.
        """
        rows = self.inputs.select(**self.setting())
        rows = rows[rows["feature"].isna()].sort_values("repetition")
        rows = rows.assign(flipset=rows["flipset"].astype(object).where(rows["flipset"].notna(), ""))
        keys = ["flipset", "statistic"]
        if rows.duplicated([*keys, "repetition"]).any():
            raise ValueError(f"counts of {self} are there more than once: give its attribute or true label too")
        return {(str(f), str(s)): own.to_numpy(float) for (f, s), own in rows.groupby(keys, observed=True)["value"]}

    def estimate(self, statistic: str, flipset: str = "") -> Estimate:
        """Mean and spread over the trials; the ends are the means of all trials' intervals, NaN where one has none."""
        low, high = (self.counts.get((flipset, f"{statistic}_ci_{end}"), NONE) for end in ("low", "high"))
        return replace(Estimate.mean(self.counts[flipset, statistic]), low=float(low.mean()), high=float(high.mean()))

    @property
    def people(self) -> float:
        """How many are mapped, on average."""
        return self.estimate("n_source").value

    def by_chance(self, flipset: str) -> Estimate | None:
        """The size between dealt halves of the group, ``high`` being the end of chance; None where none were dealt."""
        if (flipset, "noise_size") not in self.counts:
            return None
        size, end = (float(self.counts[flipset, name].mean()) for name in ("noise_size", "noise_size_upper"))
        return Estimate(size, high=end, text=f"{number(size, 0)}, to {number(end, 0)}")

    def share_positive(self, side: str) -> Estimate:
        """The percentage of the ``source`` or ``target`` group that is decided positive."""
        return Estimate.mean(100 * (self.counts["", f"positives_{side}"] / self.counts["", f"n_{side}"]))

    @property
    def arrays(self) -> Mapping[str, Array]:
        """Those of the audit. Raises ValueError where it is not at hand."""
        for point in self.inputs.points:
            if point["audit"]["name"] == FLIPTEST:
                dataset, method, transport = (str(point[part]["name"]) for part in ("dataset", "method", "transport"))
                # A block with one attribute need not name it.
                attribute = self.attribute and str(point["transport"]["attribute"])
                names = (point["block"], dataset, method, transport, condition_of(point), attribute)
                own = (self.block, self.dataset, self.method, self.transport, self.given, self.attribute)
                if names == own and point["keys"].audit in self.inputs.audits:
                    return self.inputs.audits[point["keys"].audit].arrays
        raise ValueError(f"there is no audit of {self}: found {sorted(self.inputs.audits)}")

    @property
    def first(self) -> FirstTrial:
        """The first trial. Raises ValueError where the audit is not there, or kept none."""
        suffix = "" if self.direction == w.FORWARD else "_reverse"
        if f"decision{suffix}" not in self.arrays:
            raise ValueError(f"the audit of {self} kept no decision{suffix}: found {sorted(self.arrays)}")
        return FirstTrial(self.arrays, suffix)

    @property
    def units(self) -> dict[str, float]:
        """The units in which mean shifts are ranked, drawn and told, by feature: those of the audit (``audit.units``).

        They are the model's own; of features that nobody scaled, standard deviations over both groups. A 0/1 column
        stays what it is: its shift is a difference of shares.
        """
        names, units = (self.arrays[key].tolist() for key in ("feature_names", "units"))
        return dict(zip(map(str, names), map(float, units), strict=True))

    def report(self, flipset: str, ranking: str = MEAN) -> list[Line]:
        """The lines of one ranking, the largest first; none where the flipset is empty in every trial.

        Features that define the groups have no rank, and no line. An interval of a sign ends at -1 and 1.
        """
        rows = self.inputs.select(**self.setting(flipset=flipset))
        alpha = float(pd.to_numeric(rows["alpha"]).dropna().iloc[0])
        columns = (ranking, f"{ranking}_ci_low", f"{ranking}_ci_high", RANKS[ranking])
        rows = rows[rows["feature"].notna() & rows["statistic"].isin(columns)].astype(
            {"statistic": str, "feature": str}
        )
        by_trial = rows.pivot(index="feature", columns=["statistic", "repetition"], values="value").sort_index(axis=1)
        shared = float(self.values(statistic="shared").mean())
        scale, furthest = (self.units, np.inf) if ranking == MEAN else ({}, 1.0)
        found = []
        for feature in by_trial.index:
            value, low, high, rank = (by_trial.loc[feature, name].to_numpy(float) for name in columns)
            if np.isfinite(rank).any():
                unit = scale.get(feature, 1.0)
                line = over_trials(value / unit, low / unit, high / unit, shared, alpha)
                left, right = np.clip([line.low, line.high], -furthest, furthest).tolist()
                found.append(Line(feature, line.value, left, right, value / unit))
        return sorted(found, key=lambda line: (-abs(line.value), line.feature))


def places(inputs: Inputs, **setting: str) -> list[AuditedMap]:
    """Every map and classifier that was audited, of the given block, dataset, ...; maps in their fixed order.

    Raises ValueError where there is none.
    """
    rows = inputs.select(audit=FLIPTEST, statistic="n_source", **setting)
    keys = [key for key in KEYS[:-1] if key in rows]
    found = rows[keys].drop_duplicates().astype(object).fillna("").to_dict("records")
    order = w.maps_in(line["transport"] for line in found)
    listed = [AuditedMap(inputs, **{str(key): str(value) for key, value in line.items()}) for line in found]
    return sorted(listed, key=lambda place: order.index(place.transport))


def only(inputs: Inputs, **setting: str) -> AuditedMap:
    """The only one of these. Raises ValueError where there are more."""
    found = places(inputs, **setting)
    if len(found) != 1:
        raise ValueError(f"expected one audit of {setting}, found {found}")
    return found[0]


def top(place: AuditedMap, flipset: str) -> str:
    """The feature that :func:`leading` names with its mean shift, and what it is where it does not stand out."""
    line = leading(place.report(flipset))
    if line is None:
        return DASH
    word = "" if line.standing == STANDS_OUT else f", {line.standing}"
    return f"{w.feature_label(line.feature, place.dataset)} ({number(line.value, 2)}{word})"
