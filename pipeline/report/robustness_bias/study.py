"""Where the study's numbers lie: every audit with its network, its rows as a wide table, its distances by point.

What the grid has as several blocks is one here: ``networks`` are all networks trained as usual, ``regularizer`` all
that were penalised. A network stands where other studies have a method.

A network *has learned* where Wilson's 95 % interval of its test accuracy lies above the share of the largest class plus
``MARGIN``, and not below the accuracy of the logistic regression on the same data less ``MARGIN``, if it is not that
itself. One that has not is in no figure, count, comparison or claim: :func:`run` leaves it out and :func:`not_run` says
so. A checkpoint before the last has no sigma where it is no better than the largest class, or less than half as
accurate as the last; nor has a group of fewer than ``TOO_FEW`` correctly classified points.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pipeline.audits.robustness_bias.lengths import DENOMINATORS
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, number
from pipeline.report.rules import wilson
from pipeline.types import Array, AuditResult

LINEAR, NETWORKS, PRETRAINING, REGULARIZER = "linear", "networks", "pretraining", "regularizer"
TRAININGS = "trainings"
MARGIN = 0.05
"""Of accuracy above the share of the largest class, and below a linear model."""
TOO_FEW = 20
"""Correctly classified points of a group: with fewer its sigma is mostly chance."""
LEVEL = 0.95
ABSENT = "absent"
LEAST_OFFICIAL = ("lossy", "bundled", "simulated", "official")
NOTHING = pd.DataFrame({"sigma": []}, index=pd.MultiIndex.from_arrays([[], []]))
"""The table of what was not measured."""


@dataclass(frozen=True)
class Audited:
    """One network on one data set, audited: the block it belongs to, what it is configured to be, what was found.

    ``key`` is its own, ``data`` and ``model`` those of its data set and its classifier in :class:`Inputs`. ``accuracy``
    of its last checkpoint on all test images, ``images`` in number; ``largest``, the share of the largest class;
    ``linear``, the accuracy of the logistic regression on the same data. NaN where they are not known. ``curve``: the
    accuracy after each epoch that was kept.
    """

    key: str
    block: str
    dataset: str
    network: str
    data: str
    model: str
    method: Mapping[str, Any]
    result: AuditResult
    accuracy: float = math.nan
    images: int = 0
    largest: float = math.nan
    linear: float = math.nan
    curve: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def learned(self) -> bool:
        """Whether it has learned, see above; True where its accuracy is not known."""
        if not math.isfinite(self.accuracy) or not self.images:
            return True
        _, high = wilson(Estimate(self.accuracy, n=self.images), LEVEL)
        linear = math.nan if self.block == LINEAR else self.linear
        return self._beyond_the_largest_class(self.accuracy) and not high < linear - MARGIN

    def _began_to_learn(self, accuracy: float) -> bool:
        return self._beyond_the_largest_class(accuracy) and accuracy >= self.accuracy / 2

    def _beyond_the_largest_class(self, accuracy: float) -> bool:
        return wilson(Estimate(accuracy, n=self.images), LEVEL)[0] > self.largest + MARGIN

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
        """One line for each group, one column for each statistic; without lines where it was not measured.

        Of groups with too few points only the counts; nothing of a checkpoint that had not learned.
        """
        epoch = None if self.absent else self.epoch(moment)
        known = None if epoch is None or epoch == self.epochs[-1] else self.curve.get(epoch)
        found = None if epoch is None else self._tables.get((attack, float(epoch), denominator))
        if found is None or not (known is None or self._began_to_learn(known)):
            return NOTHING
        if "n_correct" not in found:
            return found
        few = (found["n_correct"] < TOO_FEW).to_numpy()
        measures = [name for name in found.columns if name not in ("n_correct", "failed", "n")]
        return found.assign(**{name: found[name].where(~few) for name in measures})

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


def audited(inputs: Inputs, block: str = "", dataset: str = "", network: str = "") -> list[Audited]:
    """Every audited network of a block, a data set and an architecture, in the study's order; empty: of all."""
    every = inputs.once("audited networks", lambda: _audited(inputs), inputs.audits)
    asked = {"block": block, "dataset": dataset, "network": network}
    chosen = [one for one in every if all(name in ("", getattr(one, key)) for key, name in asked.items())]
    datasets, networks = w.datasets_in(a.dataset for a in chosen), w.networks_in(a.network for a in chosen)
    return sorted(chosen, key=lambda a: (datasets.index(a.dataset), a.block, networks.index(a.network)))


def _audited(inputs: Inputs) -> list[Audited]:
    of = {point["goes_by"].audit: point for point in inputs.points}
    found = []
    for key, result in inputs.audits.items():
        point, method = of[key], of[key]["method"]
        names = (block_of(point["block"]), point["dataset"]["name"], str(method.get("model", method["name"])))
        goes_by = point["goes_by"]
        one = Audited(key, *names, goes_by.dataset, goes_by.classifier, method, result)
        classifier, data = inputs.classifiers.get(one.model), inputs.datasets.get(one.data)
        if classifier is not None and data is not None and not one.absent:
            classes = np.bincount(result.arrays[data.label_name])
            accuracy = classifier.facts["test_accuracy"].tolist()
            curve = dict(zip(classifier.index["epoch"].tolist(), accuracy, strict=True))
            largest = float(classes.max() / classes.sum())
            one = replace(one, accuracy=accuracy[-1], images=data.test_rows, largest=largest, curve=curve)
        found.append(one)
    linear = {one.data: one.accuracy for one in found if one.block == LINEAR}
    return [replace(one, linear=linear.get(one.data, math.nan)) for one in found]


def upper_bound(one: Audited) -> str:
    """The distance that a network is judged by where one is enough: FMN, or the first that was measured."""
    return w.FMN if w.FMN in one.attacks else one.attacks[0]


def upper_bounds(found: Iterable[Audited]) -> str:
    """What :func:`upper_bound` is called, of all of these networks."""
    return " or ".join(dict.fromkeys(w.DISTANCES[upper_bound(one)].label for one in found))


def block_of(name: str) -> str:
    """``networks_cifar10`` -> ``networks``."""
    return name.partition("_")[0]


def run(found: Iterable[Audited]) -> list[Audited]:
    """Those whose data were there and that have learned."""
    return [one for one in found if not one.absent and one.learned]


def trained(found: Iterable[Audited]) -> list[Audited]:
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


def least_official(found: Iterable[Audited]) -> str:
    """The origin that stands for several data sets."""
    origins = {str(one.result.origin) for one in found}
    return next((origin for origin in LEAST_OFFICIAL if origin in origins), "official")


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
    """Footnotes on the data sets that could not be had, and on the networks that did not learn."""
    found = list(found)
    missing, failed = absences(found), [one for one in trained(found) if not one.learned]
    texts = [f"{w.dataset_label(name)} ({missing[name]})" for name in w.datasets_in(missing)]
    notes = [f"Not run: data. {'; '.join(texts)}."] if texts else []
    if failed:
        told = "; ".join(dict.fromkeys(map(accuracies, failed)))
        notes.append(f"Did not learn, and so in no number here: {told}.")
    return tuple(notes)


def accuracies(one: Audited) -> str:
    """``VGG19 on CIFAR-10 (accuracy 9.8 %; largest class 10.0 %, logistic regression 38.1 %)``."""
    beside = {"largest class": one.largest, "logistic regression": one.linear}
    others = ", ".join(f"{name} {number(100 * x, 1)} %" for name, x in beside.items() if math.isfinite(x))
    told = penalty(one)
    name = f"{w.NETWORKS[one.network]} on {w.dataset_label(one.dataset)}{told and f' {told}'}"
    return f"{name} (accuracy {number(100 * one.accuracy, 1)} %; {others})"


def penalty(one: Audited) -> str:
    """Of a network trained with the penalty on robustness bias its weight; else nothing."""
    return f"with a penalty of weight {one.method['alpha']:g}" if one.block == REGULARIZER else ""


def why_nothing(inputs: Inputs, found: Iterable[Audited]) -> str:
    """In one line why there is nothing of these networks to show."""
    found = list(found)
    if not found:
        return f"Not run: the {inputs.scale} scale leaves it out."
    return " ".join(not_run(found)) or f"Fewer than {TOO_FEW} correctly classified points in every group."


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
        f"{w.DISTANCES[name].label} {worst[name][0]:,.0f} of {worst[name][1]:,.0f} points"
        for name in w.distances_in(worst)
    ]
    return (
        f"Failed attacks, at most in a network: {', '.join(told)}. They are left out, and are probably far from the "
        "boundary: sigma is drawn towards 0."
    )
