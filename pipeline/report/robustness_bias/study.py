"""Access to the study's numbers: every audit with its network, its rows as wide tables and its distances by point, and
notes on parts that were not run.

Several blocks of the grid are merged here: ``networks`` holds all networks trained as usual, ``regularizer`` all
penalised ones. The network takes the place of the method in other studies.

A network *has learned* if Wilson's 95 % interval of its test accuracy lies above the share of the largest class plus
``MARGIN``, and not below the accuracy of the logistic regression on the same data minus ``MARGIN``. The second
condition does not apply to the logistic regression itself. A network that has not learned is in no figure, count,
comparison or claim: :func:`run` excludes it and :func:`not_run` reports it. sigma is undefined

* at an earlier checkpoint that is no better than the largest class, or less than half as accurate as the last. The
  shares of kept signs in claims and the comparison of initial weights also use these checkpoints, as the paper does;
* for a group with fewer than ``TOO_FEW`` correctly classified points;
* by randomized smoothing, at a checkpoint whose radii do not distinguish groups (:attr:`Audited.blind`).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from fairness_audits.audits.inference import wilson_interval
from fairness_audits.audits.robustness_bias.measures import DENOMINATORS, Partition
from fairness_audits.messages import listed
from fairness_audits.results.formats import number
from fairness_audits.values import Array, Classifier
from pipeline.report import labels as w
from pipeline.report.estimators import LEVEL
from pipeline.report.inputs import Inputs, as_text
from pipeline.report.selection import select
from pipeline.values import AuditResult, DatasetSummary

Made = TypeVar("Made")
LINEAR, NETWORKS, REGULARIZER = "linear", "networks", "regularizer"
TRAININGS, FOLDS, PENALTIES, PRETRAINED = "trainings", "folds", "penalties", "pretrained"
"""Blocks that repeat others: with other seeds, by fold of the data, without and with the penalty on robustness bias in
pairs of trainings, and from ImageNet weights and from random ones."""
REPEATED = (FOLDS, PENALTIES, PRETRAINED)
"""Blocks that have a table of their own and are in no table of networks."""
STANDARD = "standard"
MARGIN = 0.05
"""Margin of the accuracy above the share of the largest class, and below a linear model."""
TOO_FEW = 20
"""Smallest number of correctly classified points of a group. With fewer, sigma is mostly noise."""
SIGNIFICANT = 0.05
ENDS = 2 * 1.959964
"""Width of a 95 % interval in standard errors."""
ABSENT = "absent"
NOT_RUN = "not run: missing data"
LEAST_OFFICIAL = ("re-encoded", "bundled", "simulated", "official")
NOTHING = pd.DataFrame({"sigma": []}, index=pd.MultiIndex.from_arrays([[], []]))
"""Empty table for distances and checkpoints without measurements."""
FORMS = {
    ("logit", False, "sigmoid"): "logit, as coded",
    ("logit", True, "sigmoid"): "logit, second order",
    ("margin", False, "sigmoid"): "margin",
    ("margin", True, "sigmoid"): "margin, second order",
    ("logit", False, "step"): "logit, bare indicator",
}
"""Forms of the penalty by distance, second order and indicator. The bare indicator has no gradient."""


def elements(levels: Mapping[str, Sequence[str]]) -> int:
    """Return the number of elements of partitions with these levels: one for each level."""
    return sum(len(names) for names in levels.values())


def comparisons(levels: Mapping[str, Sequence[str]]) -> int:
    """Return the number of comparisons: one for each level, but one in total for a partition with two levels."""
    return sum(1 if len(names) == 2 else len(names) for names in levels.values())


@dataclass(frozen=True)
class Points:
    """The n audited points of one network at its last checkpoint.

    ``correct`` (n,) marks correctly classified points and ``tried`` (n,) attacked points. ``distance`` (n,) is NaN if
    none was found.
    """

    correct: Array
    distance: Mapping[str, Array]
    tried: Mapping[str, Array]
    partitions: Mapping[str, Partition]

    def parted(self, name: str, rows: Array) -> Partition:
        """Return a partition of some of the points."""
        return replace(self.partitions[name], codes=self.partitions[name].codes[rows])


@dataclass(frozen=True)
class Audited:
    """An audited network on one data set, with its block, its configuration and the result of the audit.

    ``key``, ``data`` and ``model`` are the keys of the audit, the data set and the classifier in :class:`Inputs`.
    ``levels`` are the groups of each partition of the data set, and ``classifier`` is the network, if it is available.
    ``accuracy`` is the accuracy of the last checkpoint on all test images, and ``images`` their number. ``largest`` is
    the share of the largest class and ``linear`` the accuracy of the logistic regression on the same data. Unknown
    values are NaN. ``curve`` is the accuracy after each saved epoch. ``tolerance`` is the tolerance of
    :func:`fairness_audits.attacks.smoothing.certify`.
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
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    classifier: Classifier | None = None

    @property
    def facts(self) -> dict[str, float]:
        """Return the facts of the network after its last epoch, none if it is not available."""
        return {name: float(of[-1]) for name, of in self.classifier.facts.items()} if self.classifier else {}

    @property
    def pretrained(self) -> bool | None:
        """Return whether the network started from ImageNet weights; None if it is not available."""
        return bool(self.facts["pretrained"]) if self.classifier else None

    @cached_property
    def learned(self) -> bool:
        """Return whether the network has learned, see the module; True if its accuracy is unknown."""
        if not math.isfinite(self.accuracy) or not self.images:
            return True
        _, high = wilson_interval(self.accuracy, self.images, LEVEL)
        linear = math.nan if self.block == LINEAR else self.linear
        return self._beyond_the_largest_class(self.accuracy) and not high < linear - MARGIN

    def better_than_constant(self, moment: str) -> bool:
        """Return whether a checkpoint's accuracy is above the share of the largest class plus ``MARGIN``.

        True if the accuracy is unknown.
        """
        known = self.curve.get(self.epoch(moment) or 0)
        return known is None or not self.images or self._beyond_the_largest_class(known)

    def _beyond_the_largest_class(self, accuracy: float) -> bool:
        return wilson_interval(accuracy, self.images, LEVEL)[0] > self.largest + MARGIN

    @cached_property
    def absent(self) -> str:
        """Return why the network could not be run, or an empty text if it was."""
        rows = self.result.rows
        return str(rows["reason"].iloc[0]) if (rows["statistic"] == ABSENT).any() else ""

    @cached_property
    def epochs(self) -> list[int]:
        """Return the epochs of the checkpoints in ascending order."""
        return sorted({int(epoch) for epoch in self.result.rows["epoch"].dropna()})

    @cached_property
    def attacks(self) -> list[str]:
        """Return the measured distances in the order of the study."""
        return w.distances_in(name for name in self.result.rows["attack"] if isinstance(name, str) and name)

    @property
    def bound(self) -> str:
        """Return the main distance of the network: FMN, or the first that was measured."""
        return w.FMN if w.FMN in self.attacks else self.attacks[0]

    @property
    def alpha(self) -> float:
        """Return the weight of the penalty on robustness bias."""
        return float(self.method["alpha"])

    @property
    def training(self) -> int:
        """Return the index of the training. Trainings with the same index have the same seeds."""
        return int(self.method["training"])

    @property
    def tau(self) -> float:
        """Return the configured threshold of the penalty."""
        return float(self.method["tau"])

    @property
    def form(self) -> str:
        """Return the form of the distance in the penalty."""
        of = self.method
        return FORMS[of["distance"], bool(of["second_order"]), of.get("indicator", "sigmoid")]

    @cached_property
    def penalised(self) -> tuple[str, str]:
        """Return the (partition, level) of the penalised group."""
        return str(self.method["penalised_partition"] or self.groups[0][0]), str(self.method["penalised_level"])

    def epoch(self, moment: str) -> int | None:
        """Return the epoch of the ``first``, ``middle`` or ``last`` checkpoint; None if missing or also the last."""
        last = self.epochs[-1]
        wanted = {w.FIRST: 1, w.MIDDLE: (1 + last) // 2, w.LAST: last}[moment]
        return wanted if wanted in self.epochs and (wanted < last or moment == w.LAST) else None

    @cached_property
    def groups(self) -> list[tuple[str, str]]:
        """Return every (partition, level), in the order of the rows."""
        return list(next(iter(self._tables.values())).index)

    @cached_property
    def _tables(self) -> dict[tuple[str, float, str], pd.DataFrame]:
        """Return the tables by distance, epoch and denominator: a row per group, a column per statistic."""
        rows = self.result.rows
        named = rows[rows["partition"].fillna("") != ""]
        where, groups = pd.factorize(pd.MultiIndex.from_frame(named[["partition", "level"]]))
        what, statistics = pd.factorize(named["statistic"])
        values = named["value"].to_numpy(float)
        tables: dict[tuple[str, float, str], Array] = {}
        for (attack, epoch, denominator), places in named.groupby(["attack", "epoch", "denominator"]).indices.items():
            # Statistics that do not depend on the denominator are written once.
            for name in DENOMINATORS if denominator == "" else (denominator,):
                key = (attack, float(epoch), name)
                table = tables.setdefault(key, np.full((len(groups), len(statistics)), np.nan))
                table[where[places], what[places]] = values[places]
        return {key: pd.DataFrame(table, index=groups, columns=statistics) for key, table in tables.items()}

    @cached_property
    def blind(self) -> dict[int, str]:
        """Return the reasons why smoothing does not distinguish groups, by epoch of the checkpoint.

        Most correctly classified points have radius 0, because the noise changes the classifier. Or fewer than
        ``TOO_FEW`` have a radius below the largest certifiable radius minus ``tolerance`` times that radius.
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
                found[epoch] = "most correctly classified points have no certified radius"
            elif (radii < (1 - self.tolerance) * radii.max()).sum() < TOO_FEW:
                found[epoch] = "nearly all correctly classified points have the largest certifiable radius"
        return found

    @cached_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def once(self, key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """Memoize ``make()`` under ``key``."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def table(
        self, attack: str, moment: str = w.LAST, denominator: str = w.PAPER, any_checkpoint: bool = False
    ) -> pd.DataFrame:
        """Return a table with a row per group and a column per statistic, empty if the distance was not measured.

        Groups with too few points have only counts. The table is empty for a checkpoint that had not learned, unless
        ``any_checkpoint``, and for smoothing at a checkpoint in :attr:`blind`. Do not change the table: it is kept.
        """
        key = (attack, moment, denominator, any_checkpoint)
        return self.once(key, lambda: self._table(*key))

    def _table(self, attack: str, moment: str, denominator: str, any_checkpoint: bool) -> pd.DataFrame:
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
        """Return sigma(P) by (partition, level), empty if it was not measured."""
        return self.table(attack, moment, denominator)["sigma"]

    def overall(self, attack: str, statistic: str) -> float:
        """Return a statistic of all points together at the last epoch, NaN if it was not measured."""
        rows = self.result.rows
        keep = (rows["statistic"] == statistic) & (rows["attack"] == attack) & (rows["partition"].fillna("") == "")
        found = rows[keep & (rows["epoch"] == self.epochs[-1])] if not self.absent else rows.iloc[:0]
        return float(found["value"].iloc[0]) if len(found) else math.nan

    @cached_property
    def points(self) -> Points:
        """Return the points at the last checkpoint."""
        arrays = self.result.arrays
        distances = w.distances_in(name.removeprefix("distance_") for name in arrays if name.startswith("distance_"))
        return Points(
            correct=arrays["correct"][-1].astype(bool),
            distance={name: arrays[f"distance_{name}"][-1].astype(float) for name in distances},
            tried={name: arrays[f"tried_{name}"][-1].astype(bool) for name in distances},
            partitions={name: Partition(name, tuple(names), arrays[name]) for name, names in self.levels.items()},
        )


def audited(inputs: Inputs, block: str = "", dataset: str = "", network: str = "") -> list[Audited]:
    """Return the audited networks of a block, data set and architecture (empty: all), in the order of the study."""
    every = inputs.once("audited networks", lambda: _audited(inputs), inputs.audits)
    wanted = {"block": block, "dataset": dataset, "network": network}
    chosen = [one for one in every if all(name in ("", getattr(one, key)) for key, name in wanted.items())]
    datasets, networks = w.datasets_in(a.dataset for a in chosen), w.networks_in(a.network for a in chosen)
    return sorted(chosen, key=lambda a: (datasets.index(a.dataset), a.block, networks.index(a.network)))


def _audited(inputs: Inputs) -> list[Audited]:
    of = {point["keys"].audit: point for point in inputs.points}
    texts = dict.fromkeys(("attack", "partition", "level", "denominator"), "")
    rows = as_text(inputs.rows.reindex(columns=[*texts, "epoch", "statistic", "value", "reason"])).fillna(texts)
    found = []
    for key, result in inputs.audits.items():
        point, method = of[key], of[key]["method"]
        names = (block_of(point["block"]), point["dataset"]["name"], str(method.get("model", method["name"])))
        keys = point["keys"]
        tolerance = float(point["audit"]["smoothing_tolerance"])
        classifier, data = inputs.classifiers.get(keys.classifier), inputs.datasets.get(keys.dataset)
        levels = data.levels if data else {}
        result = replace(result, rows=rows.loc[_collected(inputs, point).index])
        one = Audited(
            key, *names, keys.dataset, keys.classifier, method, result, tolerance=tolerance, levels=levels,
            classifier=classifier,
        )  # fmt: skip
        if classifier is not None and data is not None and not one.absent:
            classes = np.bincount(result.arrays[data.label_name])
            accuracy = classifier.facts["test_accuracy"].tolist()
            curve = dict(zip(classifier.index["epoch"].tolist(), accuracy, strict=True))
            largest = float(classes.max() / classes.sum())
            one = replace(one, accuracy=accuracy[-1], images=data.test_rows, largest=largest, curve=curve)
        found.append(one)
    linear = {one.data: one.accuracy for one in found if one.block == LINEAR}
    return [replace(one, linear=linear.get(one.data, math.nan)) for one in found]


def _collected(inputs: Inputs, point: Mapping[str, Any]) -> pd.DataFrame:
    """Return the collected rows of the audit of a point. The grid's settings are in the names of its id."""
    setting = {"block": point["block"], "dataset": point["dataset"]["name"], "method": point["method"]["name"]}
    for group, name in zip(("dataset", "method", "audit"), point["id"][1:], strict=True):
        keys = (part.partition("=")[0] for part in name.split("@")[1:])
        setting |= {key: point[group][key] for key in keys if key in point[group] and key in inputs.rows}
    return select(inputs.rows, setting)


def upper_bounds(found: Iterable[Audited]) -> str:
    """Return the printed names of the main distances of these networks."""
    return " or ".join(dict.fromkeys(w.DISTANCES[one.bound].label for one in found))


def datasets(inputs: Inputs) -> dict[str, DatasetSummary]:
    """Return the data sets, without those whose test set is one of several folds."""
    folds = {point["keys"].dataset for point in inputs.points if point["block"].startswith(FOLDS)}
    return {key: one for key, one in inputs.datasets.items() if key not in folds}


def over_folds(inputs: Inputs) -> pd.DataFrame:
    r"""Return sigma of every group of UTKFace over the folds, each of whose K models is tested on faces of its own.

    .. math:: \bar\sigma = \frac{1}{K} \sum_k \sigma_k, \qquad s^2 = \frac{1}{K^2} \sum_k s_k^2,

    with the standard errors :math:`s_k` over points. No face is in two test sets, so the :math:`\sigma_k` are
    independent given the models. How models vary with their training faces is not in the error.

    Returns
    -------
    DataFrame
        A row per (partition, level) with ``sigma``, ``error``, ``least`` and ``largest``; empty if no fold was run.
    """
    tables = [one.table(w.EXACT) for one in run(audited(inputs, FOLDS))]
    if not tables:
        return NOTHING
    names = ("sigma", "sigma_ci_low", "sigma_ci_high")
    sigma, low, high = (pd.concat([table[name] for table in tables], axis=1, ignore_index=True) for name in names)
    error = np.sqrt((((high - low) / ENDS) ** 2).mean(axis=1, skipna=False) / len(tables))
    columns = {"sigma": sigma.mean(axis=1, skipna=False), "error": error}
    return pd.DataFrame({**columns, "least": sigma.min(axis=1), "largest": sigma.max(axis=1)}).dropna()


def block_of(name: str) -> str:
    """Return the merged block: ``networks_cifar10`` -> ``networks``."""
    return name.partition("_")[0]


def trained(found: Iterable[Audited]) -> list[Audited]:
    """Return the networks whose data were available."""
    return [one for one in found if not one.absent]


def run(found: Iterable[Audited]) -> list[Audited]:
    """Return the networks whose data were available and that have learned."""
    return [one for one in trained(found) if one.learned]


def together(datasets: Iterable[str]) -> str:
    """Return the joint name of the paper's data sets, given the available ones."""
    return "all of the paper" if set(w.PUBLISHED_IMAGES) <= set(datasets) else "of the paper, available here"


def incomplete(found: Iterable[Audited], attacks: Sequence[str]) -> tuple[str, ...]:
    """Return notes on the correctly classified points, at the last epoch, that an attack failed on and on those whose
    radius is cut off because it is nearly the largest that can be certified.
    """
    failed: list[str] = []
    shares: list[float] = []
    for one in run(found):
        points = one.points
        for attack in w.distances_in(set(attacks) & set(points.distance)):
            asked = points.tried[attack] & points.correct
            none = int((asked & ~np.isfinite(points.distance[attack])).sum())
            if none:
                network, label = w.NETWORKS[one.network], w.DISTANCES[attack].label
                failed.append(f"{label} under {network}, {none:,} of {int(asked.sum()):,} points")
        if w.SMOOTHING in set(attacks) & set(points.distance) and one.epochs[-1] not in one.blind:
            asked, radius = points.tried[w.SMOOTHING] & points.correct, points.distance[w.SMOOTHING]
            largest = radius >= (1 - one.tolerance) * np.nanmax(radius[asked])
            members = [
                asked & (part.codes == level) for part in points.partitions.values() for level in range(len(part))
            ]
            shares += [float(largest[own].mean()) for own in members if own.sum() >= TOO_FEW]
    left_out = f"Left out, because the attack found no distance: {'; '.join(failed)}. This biases sigma towards 0."
    notes = [left_out] * bool(failed)
    if shares:
        least, most = (number(100 * end, 0) for end in (min(shares), max(shares)))
        notes.append(
            f"A radius cannot exceed the largest certifiable radius. Depending on the group, {least} % to {most} % of "
            "the points are close to it (within the tolerance of early stopping). Distances of robust groups are cut "
            "off most, which biases sigma towards 0."
        )
    return tuple(notes)


def least_official(found: Iterable[Audited]) -> str:
    """Return the least official origin of several data sets."""
    origins = {str(one.result.origin) for one in found}
    return next((origin for origin in LEAST_OFFICIAL if origin in origins), "official")


def absences(found: Iterable[Audited]) -> dict[str, str]:
    """Return the unavailable data sets with the files they need and where to get them."""
    return {one.dataset: remedy(one.absent) for one in found if one.absent}


def remedy(reason: str) -> str:
    """Extract the needed files and their address from the reason for an absence, or return the reason in one line."""
    files, address = re.search(r"is made of (.+?)\.\s", f"{reason} "), re.search(r"get the file from (\S+)", reason)
    if not files:
        return " ".join(reason.split())
    return f"needs {files[1]}{f', from {address[1]}' if address else ''}"


def not_run(found: Sequence[Audited]) -> tuple[str, ...]:
    """Return notes on unavailable data sets, on networks that did not learn, and on networks without smoothing."""
    missing, failed = absences(found), (one for one in trained(found) if not one.learned)
    texts = [f"{w.dataset_label(name)} ({missing[name]})" for name in w.datasets_in(missing)]
    notes = [f"Not run, because data are missing: {'; '.join(texts)}."] if texts else []
    failures: list[str] = []
    for one in failed:
        baselines = {"largest class": one.largest, "logistic regression": one.linear}
        others = ", ".join(f"{name} {number(100 * x, 1)} %" for name, x in baselines.items() if math.isfinite(x))
        name = " ".join(filter(None, (w.NETWORKS[one.network], "on", w.dataset_label(one.dataset), penalty(one))))
        failures.append(f"{name} (accuracy {number(100 * one.accuracy, 1)} %; {others})")
    if failures:
        notes.append(f"Left out, because the network did not learn: {'; '.join(dict.fromkeys(failures))}.")
    blind: dict[str, list[str]] = {}
    for one in run(found):
        if why := one.blind.get(one.epochs[-1]):
            blind.setdefault(why, []).append(f"{w.NETWORKS[one.network]} on {w.dataset_label(one.dataset)}")
    for why, names in blind.items():
        which = ", ".join(dict.fromkeys(names))
        notes.append(f"No sigma by randomized smoothing for {which}, because {why}.")
    return tuple(notes)


def penalty(one: Audited) -> str:
    """Format the weight of the penalty on robustness bias, or return an empty text without a penalty."""
    return f"with a penalty of weight {one.alpha:g}" if one.block == REGULARIZER else ""


def why_nothing(inputs: Inputs, found: Sequence[Audited], attacks: Sequence[str] = ()) -> str:
    """Return in one line why there is nothing to show for these networks, or for them by these distances."""
    if not found:
        return f"Not run at the {w.scales(inputs.scale)}."
    if attacks and (here := run(found)) and not any(name in one.attacks for one in here for name in attacks):
        names = listed([w.DISTANCES[name].label for name in attacks])
        return f"Not run at the {w.scales(inputs.scale)}: {names}."
    return " ".join(not_run(found)) or f"Fewer than {TOO_FEW} correctly classified points in every group."
