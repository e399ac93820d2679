"""Where the study's numbers lie: every audit with its network, its rows as a wide table, its distances by point.

What the grid has as several blocks is one here: ``networks`` are all networks trained as usual, ``regularizer`` all
that were penalised. A network stands where other studies have a method.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pipeline.audits.robustness_bias.lengths import DENOMINATORS
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.types import Array, AuditResult

LINEAR, NETWORKS, PRETRAINING, REGULARIZER = "linear", "networks", "pretraining", "regularizer"
ABSENT = "absent"
NOTHING = pd.DataFrame({"sigma": []}, index=pd.MultiIndex.from_arrays([[], []]))
"""The table of what was not measured."""


@dataclass(frozen=True)
class Audited:
    """One network on one data set, audited: the block it belongs to, what it is configured to be, what was found.

    ``key`` is its own, ``data`` and ``model`` those of its data set and its classifier in :class:`Inputs`.
    """

    key: str
    block: str
    dataset: str
    network: str
    data: str
    model: str
    method: Mapping[str, Any]
    result: AuditResult

    @cached_property
    def absent(self) -> str:
        """Why it could not be run; nothing where it was."""
        rows = self.result.rows
        return str(rows["reason"].iloc[0]) if (rows["statistic"] == ABSENT).any() else ""

    @cached_property
    def epochs(self) -> list[int]:
        """The epochs of its checkpoints, rising."""
        return sorted({int(epoch) for epoch in self.result.rows["epoch"].dropna()})

    @cached_property
    def attacks(self) -> list[str]:
        """The distances that were measured, in the study's order."""
        return w.distances_in(name for name in self.result.rows["attack"] if isinstance(name, str) and name)

    def epoch(self, moment: str) -> int | None:
        """The epoch of the ``first``, ``middle`` or ``last`` checkpoint; None for one that is the last as well."""
        last = self.epochs[-1]
        wanted = {w.FIRST: 1, w.MIDDLE: (1 + last) // 2, w.LAST: last}[moment]
        return wanted if wanted in self.epochs and (wanted < last or moment == w.LAST) else None

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """Every (partition, level), in the order of the rows."""
        return list(next(iter(self._tables.values())).index)

    @cached_property
    def _tables(self) -> dict[tuple[str, float, str], pd.DataFrame]:
        """By distance, epoch and denominator: one line for each group, one column for each statistic."""
        rows = self.result.rows
        named = rows[rows["partition"].fillna("") != ""]
        where, groups = pd.factorize(pd.MultiIndex.from_frame(named[["partition", "level"]]))
        what, statistics = pd.factorize(named["statistic"])
        values = named["value"].to_numpy(float)
        tables: dict[tuple[str, float, str], Array] = {}
        for (attack, epoch, denominator), places in named.groupby(["attack", "epoch", "denominator"]).indices.items():
            # What is the same for both denominators is written once.
            for name in DENOMINATORS if denominator == "" else (denominator,):
                key = (attack, float(epoch), name)
                table = tables.setdefault(key, np.full((len(groups), len(statistics)), np.nan))
                table[where[places], what[places]] = values[places]
        return {key: pd.DataFrame(table, index=groups, columns=statistics) for key, table in tables.items()}

    def table(self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER) -> pd.DataFrame:
        """One line for each group, one column for each statistic; without lines where it was not measured."""
        epoch = None if self.absent else self.epoch(moment)
        found = None if epoch is None else self._tables.get((attack, float(epoch), denominator))
        return NOTHING if found is None else found

    def sigmas(self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER) -> pd.Series:
        """sigma(P) by (partition, level); empty where it was not measured."""
        return self.table(attack, moment, denominator)["sigma"]

    def overall(self, attack: str, statistic: str, moment: str = w.LAST) -> float:
        """A statistic of all points together; NaN where it was not measured."""
        rows = self.result.rows
        keep = (rows["statistic"] == statistic) & (rows["attack"] == attack) & (rows["partition"].fillna("") == "")
        found = rows[keep & (rows["epoch"] == self.epoch(moment))] if not self.absent else rows.iloc[:0]
        return float(found["value"].iloc[0]) if len(found) else float("nan")


@dataclass(frozen=True)
class Points:
    """The audited points of one network at its last checkpoint, n in all.

    ``correct`` (n,) says which are classified correctly, ``distance`` (n,) is NaN where none was found, ``tried`` (n,)
    which were attacked at all, ``codes`` (n,) the level of each in every partition, -1 unknown.
    """

    correct: Array
    distance: Mapping[str, Array]
    tried: Mapping[str, Array]
    codes: Mapping[str, Array]
    levels: Mapping[str, tuple[str, ...]]


def audited(inputs: Inputs, block: str = "", dataset: str = "") -> list[Audited]:
    """Every audited network of a block and a data set, data sets and networks in the study's order."""
    of = {point["goes_by"].audit: point for point in inputs.points}
    found = []
    for key, result in inputs.audits.items():
        point, method = of[key], of[key]["method"]
        names = (block_of(point["block"]), point["dataset"]["name"], str(method.get("model", method["name"])))
        goes_by = point["goes_by"]
        found.append(Audited(key, *names, goes_by.dataset, goes_by.classifier, method, result))
    chosen = [one for one in found if block in ("", one.block) and dataset in ("", one.dataset)]
    datasets, networks = w.datasets_in(a.dataset for a in chosen), w.networks_in(a.network for a in chosen)
    return sorted(chosen, key=lambda a: (datasets.index(a.dataset), a.block, networks.index(a.network)))


def block_of(name: str) -> str:
    """``networks_cifar10`` -> ``networks``."""
    return name.partition("_")[0]


def run(found: Iterable[Audited]) -> list[Audited]:
    """Those whose data were there."""
    return [one for one in found if not one.absent]


def together(datasets: Iterable[str]) -> str:
    """What the data sets of the paper are called together, when these are there."""
    return "all of the paper" if set(w.PUBLISHED_IMAGES) <= set(datasets) else "of the paper, those here"


def at_points(inputs: Inputs, one: Audited) -> Points:
    """The points of a network. Raises ValueError where the audit kept no distances, or its data set is not there."""
    arrays = one.result.arrays
    kept = {name.removeprefix("distance_") for name in arrays if name.startswith("distance_")}
    if not kept or one.data not in inputs.datasets:
        raise ValueError(
            f"the audit of {one.network} on {one.data} has arrays {sorted(arrays)} and the data sets are "
            f"{sorted(inputs.datasets)}: expected distance_<attack> and {one.data}"
        )
    levels = inputs.datasets[one.data].levels
    return Points(
        correct=arrays["correct"][-1].astype(bool),
        distance={name: arrays[f"distance_{name}"][-1].astype(float) for name in w.distances_in(kept)},
        tried={name: arrays[f"tried_{name}"][-1].astype(bool) for name in w.distances_in(kept)},
        codes={name: arrays[name] for name in levels},
        levels={name: tuple(names) for name, names in levels.items()},
    )


def absences(found: Iterable[Audited]) -> dict[str, str]:
    """The data sets that could not be had, with what each is made of and where that is found."""
    return {one.dataset: remedy(one.absent) for one in found if one.absent}


def remedy(reason: str) -> str:
    """What a data set is made of and where to get it, from the long reason for its absence; else that as one line."""
    files, address = re.search(r"is made of (.+?)\.\s", f"{reason} "), re.search(r"get the file from (\S+)", reason)
    if not files:
        return " ".join(reason.split())
    return f"needs {files[1]}{f', from {address[1]}' if address else ''}"


def not_run(found: Iterable[Audited]) -> tuple[str, ...]:
    """A footnote on the data sets that could not be had; none where all could."""
    missing = absences(found)
    texts = (f"{w.dataset_label(name)} ({missing[name]})" for name in w.datasets_in(missing))
    return (f"Not run: data. {'; '.join(texts)}.",) if missing else ()


def failures(found: Iterable[Audited], attacks: Iterable[str] = ()) -> str:
    """How many attacks failed at the last epoch: at most, in a network, by each distance that ever failed.

    A failed point is in no share, so this says how much of a group may be missing. Of all distances, or of ``attacks``.
    """
    wanted = set(attacks)
    worst: dict[str, tuple[float, float]] = {}
    for one in run(found):
        for attack in one.attacks:
            failed, tried = one.overall(attack, "failed"), one.overall(attack, "points")
            if failed > 0 and (attack in wanted or not wanted):
                before = worst.get(attack, (failed, tried))
                worst[attack] = max(before, (failed, tried), key=lambda pair: pair[0] / pair[1])
    if not worst:
        return "No attack failed."
    told = [
        f"{w.distance_style(name).label} {worst[name][0]:,.0f} of {worst[name][1]:,.0f} points"
        for name in w.distances_in(worst)
    ]
    return (
        f"Failed attacks, at most in a network: {', '.join(told)}. They are left out, and are probably far from the "
        "boundary: sigma is drawn towards 0."
    )
