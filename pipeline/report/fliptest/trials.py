"""Where the study's numbers and arrays lie: rows of every trial, arrays of the first one, and which maps failed.

A *trial* is a repetition: its own split (or draw) of the data and its own map. Arrays are kept of the first trial
alone, so histograms show one map, as published; its numbers stand beside their spread over the trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from pipeline.report import words as w
from pipeline.report.inputs import Inputs, given_of
from pipeline.report.numbers import Estimate, number
from pipeline.report.stamp import Stamp
from pipeline.types import Array, AuditResult

FLIPTEST, QUALITY, STABILITY = "fliptest", "map_quality", "map_stability"
NONE = np.full(1, np.nan)


@dataclass(frozen=True)
class Place:
    """One map, audited with one classifier's decisions. ``attribute`` may be left out where a block has one."""

    block: str
    dataset: str
    method: str
    transport: str
    given: str = w.EVERYONE
    attribute: str = ""

    def setting(self, **more: str | float) -> dict[str, str | float]:
        """The setting of its rows."""
        own = {key: value for key, value in vars(self).items() if value}
        return {**own, "audit": FLIPTEST, **more}


def _kept(name: str) -> property:
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

    features, images = _kept("features"), _kept("images")
    decision, decision_image = _kept("decision"), _kept("decision_image")
    score, score_image = _kept("score"), _kept("score_image")
    rows, target_features, target_score = _kept("rows"), _kept("target_features"), _kept("target_score")

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return tuple(map(str, self.arrays["feature_names"]))

    def members(self, flipset: str) -> Array:
        """Who is in a flipset, (n,) bool; the whole group for ``""``. All of the n have counterparts."""
        if not flipset:
            return np.ones(len(self.decision), dtype=bool)
        higher, lower = self.decision, self.decision_image
        if flipset == w.NEGATIVE:
            higher, lower = lower, higher
        members: Array = higher > lower
        return members

    def column(self, name: str) -> int:
        """The number of a feature's column."""
        return self.names.index(name)


def places(inputs: Inputs, **setting: str) -> list[Place]:
    """Every map and classifier that was audited, of the given block, dataset, ...; maps in their fixed order.

    Raises ValueError where there is none.
    """
    rows = inputs.select(audit=FLIPTEST, statistic="n_source", **setting)
    keys = [key for key in Place.__dataclass_fields__ if key in rows]
    found = rows[keys].drop_duplicates().fillna("").to_dict("records")
    order = w.maps_in(line["transport"] for line in found)
    listed = [Place(**{str(key): str(value) for key, value in line.items()}) for line in found]
    return sorted(listed, key=lambda place: order.index(place.transport))


def first_trial(inputs: Inputs, place: Place, direction: str = w.FORWARD) -> FirstTrial:
    """The arrays of a place's audit. Raises ValueError where the audit is not there, or kept none."""
    result = _audit(inputs, place)
    suffix = "" if direction == w.FORWARD else "_reverse"
    if f"decision{suffix}" not in result.arrays:
        raise ValueError(f"the audit of {place} kept no decision{suffix}: found {sorted(result.arrays)}")
    return FirstTrial(result.arrays, suffix)


@dataclass(frozen=True)
class Counts:
    """The counts of one place and direction, each by trial: (T,) under (flipset, statistic)."""

    values: Mapping[tuple[str, str], Array]

    def estimate(self, statistic: str, flipset: str = "") -> Estimate:
        """Mean and spread over the trials; the ends are the means of all trials' intervals, NaN where one has none."""
        low, high = (self.values.get((flipset, f"{statistic}_ci_{end}"), NONE) for end in ("low", "high"))
        return replace(Estimate.mean(self.values[flipset, statistic]), low=float(low.mean()), high=float(high.mean()))

    def by_chance(self, flipset: str) -> Estimate | None:
        """The size between dealt halves of the group, ``high`` being the end of chance; None where none were dealt."""
        if (flipset, "noise_size") not in self.values:
            return None
        size, end = (float(self.values[flipset, name].mean()) for name in ("noise_size", "noise_size_upper"))
        return Estimate(size, high=end, text=f"{number(size, 0)}, to {number(end, 0)}")

    def share_positive(self, side: str) -> Array:
        """The share of the ``source`` or ``target`` group that is decided positive, (T,)."""
        return self.values["", f"positives_{side}"] / self.values["", f"n_{side}"]


def counts(inputs: Inputs, place: Place, direction: str = w.FORWARD) -> Counts:
    """Every count of a place in one direction. Raises ValueError where the place is not the only one that it names."""
    rows = inputs.select(**place.setting(direction=direction))
    rows = rows[rows["feature"].isna()].sort_values("repetition")
    flipsets = rows["flipset"].astype(object).where(rows["flipset"].notna(), "")
    if rows.duplicated(["flipset", "statistic", "repetition"]).any():
        raise ValueError(f"counts of {place} are there more than once: give its attribute or true label too")
    values: dict[tuple[str, str], list[float]] = {}
    for flipset, statistic, value in zip(flipsets, rows["statistic"], rows["value"], strict=True):
        values.setdefault((str(flipset), str(statistic)), []).append(float(value))
    return Counts({key: np.array(found) for key, found in values.items()})


def groups(inputs: Inputs, place: Place, direction: str = w.FORWARD) -> tuple[str, str]:
    """The names of the group that is mapped and of the group that it is mapped to."""
    rows = inputs.select(**place.setting(statistic="n_source", direction=direction))
    return str(rows["source"].iloc[0]), str(rows["target"].iloc[0])


def has_direction(inputs: Inputs, place: Place, direction: str) -> bool:
    """Whether a place was audited in that direction."""
    rows = inputs.select(**place.setting(statistic="n_source"))
    return bool((rows["direction"] == direction).any())


def size(inputs: Inputs, place: Place, flipset: str, direction: str = w.FORWARD) -> Estimate:
    """A flipset's size, see :meth:`Counts.estimate`."""
    return counts(inputs, place, direction).estimate("size", flipset)


def healthy(inputs: Inputs, place: Place, direction: str = w.FORWARD) -> pd.Series:
    """Whether each trial's map reaches the target group, by the rule of the audit of maps; by trial."""
    return inputs.values(**place.setting(direction=direction, statistic="healthy")).astype(bool)


def units(inputs: Inputs, place: Place) -> Mapping[str, float]:
    """The units in which mean shifts are ranked, drawn and told, by feature: those of the audit (``audit.units``).

    They are the model's own; of features that nobody scaled, standard deviations over both groups. A 0/1 column stays
    what it is: its shift is a difference of shares.
    """
    arrays = _audit(inputs, place).arrays
    return {str(name): float(unit) for name, unit in zip(arrays["feature_names"], arrays["units"], strict=True)}


def stamp(inputs: Inputs, blocks: Iterable[str], dataset: str = "", transports: Iterable[str] = ()) -> Stamp:
    """The stamp of whole blocks, or of one dataset or some maps of them, without the reductions of others."""
    blocks, transports = sorted(set(blocks)), set(transports)
    rows = inputs.rows[inputs.rows["block"].isin(blocks)]
    reduced = [r for r in inputs.reductions if r.block in blocks]
    if dataset:
        rows, reduced = rows[rows["dataset"] == dataset], [r for r in reduced if r.dataset == dataset]
    if transports:
        rows = rows[rows["transport"].isin(transports)]
        reduced = [r for r in reduced if r.transport in transports]
    return Stamp.of(rows, inputs.scale, reduced)


def has_arrays(inputs: Inputs, place: Place) -> bool:
    """Whether the arrays of a place's audit are at hand."""
    return _found(inputs, place) is not None


def _audit(inputs: Inputs, place: Place) -> AuditResult:
    found = _found(inputs, place)
    if found is None:
        raise ValueError(f"there is no audit of {place}: found {sorted(inputs.audits)}")
    return found


def _found(inputs: Inputs, place: Place) -> AuditResult | None:
    for point in inputs.points:
        if point["audit"]["name"] != FLIPTEST:
            continue
        dataset, method, transport = (str(point[part]["name"]) for part in ("dataset", "method", "transport"))
        # A block with one attribute need not name it.
        attribute = place.attribute and str(point["transport"]["attribute"])
        if Place(point["block"], dataset, method, transport, given_of(point), attribute) == place:
            return inputs.audits.get(point["goes_by"].audit)
    return None
