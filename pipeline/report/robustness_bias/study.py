"""Where the study's numbers lie: every audit with its network, its rows as a wide table, its distances by point; and
footnotes on what was not run.

What the grid has as several blocks is one here: ``networks`` are all networks trained as usual, ``regularizer`` all
that were penalised. A network stands where other studies have a method.

A network *has learned* where Wilson's 95 % interval of its test accuracy lies above the share of the largest class plus
``MARGIN``, and not below the accuracy of the logistic regression on the same data less ``MARGIN``, if it is not that
itself. One that has not is in no figure, count, comparison or claim: :func:`run` leaves it out and :func:`not_run` says
so. A checkpoint before the last has no sigma where it is no better than the largest class, or less than half as
accurate as the last; nor has a group of fewer than ``TOO_FEW`` correctly classified points. Nor has one by randomized
smoothing whose radii do not tell its groups apart (:attr:`Audited.blind`).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.robustness_bias.measures import DENOMINATORS, Partition
from fairness_audits.messages import listed
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.rules import wilson
from pipeline.values import AuditResult

LINEAR, NETWORKS, REGULARIZER, TRAININGS = "linear", "networks", "regularizer", "trainings"
STANDARD = "standard"
MARGIN = 0.05
"""Of accuracy above the share of the largest class, and below a linear model."""
TOO_FEW = 20
"""Correctly classified points of a group: with fewer its sigma is mostly chance."""
LEVEL = 0.95
ABSENT = "absent"
NOT_RUN = "not run: data"
LEAST_OFFICIAL = ("lossy", "bundled", "simulated", "official")
NOTHING = pd.DataFrame({"sigma": []}, index=pd.MultiIndex.from_arrays([[], []]))
"""The table of what was not measured."""
FORMS = {
    ("logit", False): "logit, as coded",
    ("logit", True): "logit, second order",
    ("margin", False): "margin",
    ("margin", True): "margin, second order",
}


@dataclass(frozen=True)
class Audited:
    """One network on one data set, audited: the block it belongs to, what it is configured to be, what was found.

    ``key`` is its own, ``data`` and ``model`` those of its data set and its classifier in :class:`Inputs`. ``accuracy``
    of its last checkpoint on all test images, ``images`` in number; ``largest``, the share of the largest class;
    ``linear``, the accuracy of the logistic regression on the same data. NaN where they are not known. ``curve``: the
    accuracy after each epoch that was kept. ``tolerance``: that of :func:`fairness_audits.attacks.smoothing.certify`.
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
    tolerance: float = 0.0

    @cached_property
    def learned(self) -> bool:
        """Whether it has learned, see above; True where its accuracy is not known."""
        if not math.isfinite(self.accuracy) or not self.images:
            return True
        _, high = wilson(Estimate(self.accuracy, n=self.images), LEVEL)
        linear = math.nan if self.block == LINEAR else self.linear
        return self._beyond_the_largest_class(self.accuracy) and not high < linear - MARGIN

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

    @property
    def bound(self) -> str:
        """The distance that it is judged by where one is enough: FMN, or the first that was measured."""
        return w.FMN if w.FMN in self.attacks else self.attacks[0]

    @property
    def alpha(self) -> float:
        """Of a network trained with the penalty on robustness bias, its weight."""
        return float(self.method["alpha"])

    @property
    def tau(self) -> float:
        """The penalty's threshold, as set."""
        return float(self.method["tau"])

    @property
    def form(self) -> str:
        """The form of the distance in the penalty."""
        return FORMS[self.method["distance"], bool(self.method["second_order"])]

    @cached_property
    def penalised(self) -> tuple[str, str]:
        """The (partition, level) that the penalty is for."""
        return str(self.method["penalised_partition"] or self.groups[0][0]), str(self.method["penalised_level"])

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

    @cached_property
    def blind(self) -> dict[int, str]:
        """The checkpoints, by epoch, at which the radii of smoothing say nothing of the groups, each with why.

        Of its correctly classified points most have radius 0: under the noise it is another classifier. Or fewer than
        ``TOO_FEW`` have a radius below the largest that so many samples can certify, less ``tolerance`` of it.
        """
        found: dict[int, str] = {}
        arrays = self.result.arrays
        if self.absent or f"distance_{w.SMOOTHING}" not in arrays:
            return found
        names = (f"distance_{w.SMOOTHING}", f"tried_{w.SMOOTHING}", "correct")
        for epoch, radius, *counted in zip(self.epochs, *(arrays[name] for name in names), strict=True):
            radii = radius[np.all(counted, axis=0)]
            if not len(radii):
                continue
            if np.median(radii) == 0:
                found[epoch] = "most have no certified radius"
            elif (radii < (1 - self.tolerance) * radii.max()).sum() < TOO_FEW:
                found[epoch] = "nearly all have the largest radius that can be certified"
        return found

    def table(
        self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER, any_checkpoint: bool = False
    ) -> pd.DataFrame:
        """One line for each group, one column for each statistic; without lines where it was not measured.

        Of groups with too few points only the counts; nothing of a checkpoint that had not learned, unless it may be
        ``any_checkpoint``, or not under noise.
        """
        epoch = None if self.absent else self.epoch(moment)
        found = None if epoch is None else self._tables.get((attack, float(epoch), denominator))
        if epoch is None or found is None or (attack == w.SMOOTHING and epoch in self.blind):
            return NOTHING
        known = self.curve.get(epoch) if epoch != self.epochs[-1] and not any_checkpoint else None
        if known is not None and not (self._beyond_the_largest_class(known) and known >= self.accuracy / 2):
            return NOTHING
        if "n_correct" not in found:
            return found
        few = (found["n_correct"] < TOO_FEW).to_numpy()
        measures = [name for name in found.columns if name not in ("n_correct", "failed", "n")]
        return found.assign(**{name: found[name].where(~few) for name in measures})

    def sigmas(self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER) -> pd.Series:
        """sigma(P) by (partition, level); empty where it was not measured."""
        return self.table(attack, moment, denominator)["sigma"]

    def overall(self, attack: str, statistic: str) -> float:
        """A statistic of all points together at the last epoch; NaN where it was not measured."""
        rows = self.result.rows
        keep = (rows["statistic"] == statistic) & (rows["attack"] == attack) & (rows["partition"].fillna("") == "")
        found = rows[keep & (rows["epoch"] == self.epochs[-1])] if not self.absent else rows.iloc[:0]
        return float(found["value"].iloc[0]) if len(found) else math.nan


@dataclass(frozen=True)
class Points:
    """The audited points of one network at its last checkpoint, n in all.

    ``correct`` (n,) says which are classified correctly, ``distance`` (n,) is NaN where none was found, ``tried`` (n,)
    which were attacked at all.
    """

    correct: Array
    distance: Mapping[str, Array]
    tried: Mapping[str, Array]
    partitions: Mapping[str, Partition]

    def parted(self, name: str, rows: Array) -> Partition:
        """A partition of some of the points."""
        return replace(self.partitions[name], codes=self.partitions[name].codes[rows])


def audited(inputs: Inputs, block: str = "", dataset: str = "", network: str = "") -> list[Audited]:
    """Every audited network of a block, a data set and an architecture, in the study's order; empty: of all."""
    every = inputs.once("audited networks", lambda: _audited(inputs), inputs.audits)
    wanted = {"block": block, "dataset": dataset, "network": network}
    chosen = [one for one in every if all(name in ("", getattr(one, key)) for key, name in wanted.items())]
    datasets, networks = w.datasets_in(a.dataset for a in chosen), w.networks_in(a.network for a in chosen)
    return sorted(chosen, key=lambda a: (datasets.index(a.dataset), a.block, networks.index(a.network)))


def _audited(inputs: Inputs) -> list[Audited]:
    of = {point["keys"].audit: point for point in inputs.points}
    found = []
    for key, result in inputs.audits.items():
        point, method = of[key], of[key]["method"]
        names = (block_of(point["block"]), point["dataset"]["name"], str(method.get("model", method["name"])))
        keys = point["keys"]
        tolerance = float(point["audit"]["smoothing_tolerance"])
        one = Audited(key, *names, keys.dataset, keys.classifier, method, result, tolerance=tolerance)
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


def upper_bounds(found: Iterable[Audited]) -> str:
    """What the distances that all of these networks are judged by are called."""
    return " or ".join(dict.fromkeys(w.DISTANCES[one.bound].label for one in found))


def block_of(name: str) -> str:
    """``networks_cifar10`` -> ``networks``."""
    return name.partition("_")[0]


def trained(found: Iterable[Audited]) -> list[Audited]:
    """Those whose data were there."""
    return [one for one in found if not one.absent]


def run(found: Iterable[Audited]) -> list[Audited]:
    """Those whose data were there and that have learned."""
    return [one for one in trained(found) if one.learned]


def together(datasets: Iterable[str]) -> str:
    """What the data sets of the paper are called together, when these are there."""
    return "all of the paper" if set(w.PUBLISHED_IMAGES) <= set(datasets) else "of the paper, those here"


def at_points(inputs: Inputs, one: Audited) -> Points:
    """The points of a network."""
    arrays, levels = one.result.arrays, inputs.datasets[one.data].levels
    distances = w.distances_in(name.removeprefix("distance_") for name in arrays if name.startswith("distance_"))
    return Points(
        correct=arrays["correct"][-1].astype(bool),
        distance={name: arrays[f"distance_{name}"][-1].astype(float) for name in distances},
        tried={name: arrays[f"tried_{name}"][-1].astype(bool) for name in distances},
        partitions={name: Partition(name, tuple(names), arrays[name]) for name, names in levels.items()},
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


def not_run(found: Sequence[Audited]) -> tuple[str, ...]:
    """Footnotes on the data sets that could not be had, and on the networks that did not learn."""
    missing, failed = absences(found), (one for one in trained(found) if not one.learned)
    texts = [f"{w.dataset_label(name)} ({missing[name]})" for name in w.datasets_in(missing)]
    notes = [f"Not run: data. {'; '.join(texts)}."] if texts else []
    failures: list[str] = []
    for one in failed:
        baselines = {"largest class": one.largest, "logistic regression": one.linear}
        others = ", ".join(f"{name} {number(100 * x, 1)} %" for name, x in baselines.items() if math.isfinite(x))
        name = " ".join(filter(None, (w.NETWORKS[one.network], "on", w.dataset_label(one.dataset), penalty(one))))
        failures.append(f"{name} (accuracy {number(100 * one.accuracy, 1)} %; {others})")
    if failures:
        notes.append(f"Did not learn, and so in no number here: {'; '.join(dict.fromkeys(failures))}.")
    blind: dict[str, list[str]] = {}
    for one in run(found):
        if why := one.blind.get(one.epochs[-1]):
            blind.setdefault(why, []).append(f"{w.NETWORKS[one.network]} on {w.dataset_label(one.dataset)}")
    for why, names in blind.items():
        which = ", ".join(dict.fromkeys(names))
        notes.append(f"Without σ by randomized smoothing: {which}. Of the points classified correctly {why}.")
    return tuple(notes)


def penalty(one: Audited) -> str:
    """Of a network trained with the penalty on robustness bias its weight; else nothing."""
    return f"with a penalty of weight {one.alpha:g}" if one.block == REGULARIZER else ""


def why_nothing(inputs: Inputs, found: Sequence[Audited], attacks: Sequence[str] = ()) -> str:
    """In one line why there is nothing of these networks to show, by these distances if not by any."""
    if not found:
        return f"Not run at the {inputs.scale} scale."
    if attacks and (here := run(found)) and not any(name in one.attacks for one in here for name in attacks):
        return f"Not run at the {inputs.scale} scale: {listed([w.DISTANCES[name].label for name in attacks])}."
    return " ".join(not_run(found)) or f"Fewer than {TOO_FEW} correctly classified points in every group."
