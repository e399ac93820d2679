"""Sign agreement of two measures of the same groups: Table 1 and sections 7 and 8 of Nanda et al. (2021).

Two distances are compared on the points that both measured and on which neither failed. Each distance has its own
sample, the first n test points with its own n. On different points, signs could differ because of the sample alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from fairness_audits.audits.robustness_bias.measures import by_level
from fairness_audits.audits.robustness_bias.measures import counted as lengths_of
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import DASH, number
from fairness_audits.results.table import Cell, Column, Row
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.study import NOT_RUN, Audited, Points
from pipeline.report.table import StampedTable, labels

TABLE_1 = {w.ADIENCE: "Adience", w.UTKFACE: "UTKFace", w.CIFAR10: "CIFAR10", w.CIFAR100: "CIFAR100"}
TABLE_1 |= {w.SUPER: "CIFAR100super", w.DIGITS: "Digits"}
ATTACKS = {w.DEEPFOOL: "DeepFool", w.CARLINI_WAGNER: "CarliniWagner"}
OF_A_DIFFERENCE = (
    ("groups", "groups", 0),
    ("mean", "mean", 3),
    ("variance", "variance", 3),
    ("absolute", "mean absolute", 3),
)
ONCE = (
    "A partition into two groups counts once, because its groups always have opposite signs. A sigma of 0 agrees only "
    "with 0. Groups with an undefined sigma, or with fewer than "
    f"{study.TOO_FEW} correctly classified points, are left out."
)
ACCURACY = (
    "Over all members, both distances are 0 at the same misclassified points, so part of the agreement is due to "
    "accuracy. Over correct members, it is not."
)
EXACT_ALL = (
    "Exact all, other correct: the exact distance over all members of a group, the other over correct members, without "
    "leaving out small groups. This probably made the published numbers."
)
DEPENDENT = "Groups share points, and networks share data, so the comparisons are not independent."

Side = tuple[str, str]
"""A distance and a checkpoint of the training."""


@dataclass(frozen=True)
class Comparison:
    """Two sides whose signs are compared, and the block and networks (None: all of the data set)."""

    block: str
    one: Side
    other: Side
    networks: tuple[str, ...] | None = None

    @property
    def of_distances(self) -> bool:
        """Return whether two distances are compared, and not two checkpoints."""
        return self.one[0] != self.other[0]

    @property
    def name(self) -> str:
        """Describe the comparison in words."""
        first, second = (w.DISTANCES[attack].label for attack, _ in (self.one, self.other))
        words = f"{first} and {second}" if self.of_distances else f"{first}: {self.one[1]} and last epoch"
        return words[0].upper() + words[1:]

    def between(self, one: Audited) -> bool:
        """Return whether a network is part of the comparison."""
        own = (*w.CONVOLUTIONAL, w.OWN.get(one.dataset))
        return one.block == self.block and one.network in (own if self.networks is None else self.networks)


OF_TWO_ATTACKS = Comparison(study.NETWORKS, (w.DEEPFOOL, w.LAST), (w.CARLINI_WAGNER, w.LAST), w.CONVOLUTIONAL)
COMPARISONS = (
    *(Comparison(study.LINEAR, (w.EXACT, w.LAST), (name, w.LAST), (w.LOGISTIC,)) for name in w.ESTIMATES),
    OF_TWO_ATTACKS,
    Comparison(study.NETWORKS, (w.FMN, w.LAST), (w.DEEPFOOL, w.LAST), w.CONVOLUTIONAL),
    *(
        Comparison(study.NETWORKS, (name, moment), (name, w.LAST), w.CONVOLUTIONAL)
        for moment in (w.FIRST, w.MIDDLE)
        for name in w.ESTIMATES
    ),
)
"""Comparisons of the paper, extended to FMN and smoothing."""


def smoothing_against(attack: str) -> Comparison:
    """Return the comparison of Table 1: smoothing and an attack, on the torchvision networks and the data set's own."""
    return Comparison(study.NETWORKS, (w.SMOOTHING, w.LAST), (attack, w.LAST))


def counted(
    found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str], denominator: str = w.PAPER
) -> Estimate:
    """Estimate the share of equal signs over the n groups of these data sets and networks that have both sides.

    Wilson's interval assumes independent groups. They are dependent, so the interval tends to be too short. NaN without
    groups.
    """
    return agreement(pairs(found, comparison, datasets, denominator))


def agreement(sides: Array) -> Estimate:
    """Return the share of equal signs of two rows of sigma (2, p), over the columns that have both."""
    one, other = sides
    return estimate("share", (np.sign(one) == np.sign(other))[np.isfinite(one - other)])


def differences(found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str], denominator: str) -> Array:
    """Return sigma of one side minus sigma of the other (k,), for the groups that have both."""
    one, other = pairs(found, comparison, datasets, denominator)
    return (one - other)[np.isfinite(one - other)]


def pairs(
    found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str], denominator: str = w.PAPER
) -> Array:
    """Return sigma of both sides (2, p), a column per network and group. A partition into two counts once."""
    both = [np.zeros((2, 0))]
    for audited in having(found, comparison, datasets):
        if comparison.of_distances:
            sigma = on_shared_points(audited, comparison, denominator)
        else:
            ends = (comparison.one, comparison.other)
            sigma = np.array([audited.sigmas(*side, denominator=denominator).to_numpy(float) for side in ends])
        both.append(sigma[:, once(audited.groups)])
    return np.concatenate(both, axis=1)


def having(found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str]) -> list[Audited]:
    """Return the networks of these data sets that have both sides of a comparison."""
    return [
        audited
        for audited in study.run(found)
        if audited.dataset in datasets
        and comparison.between(audited)
        and not any(audited.sigmas(*side).empty for side in (comparison.one, comparison.other))
    ]


MIXED = "mixed"
"""A likely reading of the published comparison with the exact distance: the exact distance is over all members of a
group, and the other over correctly classified ones. Small groups are not left out."""
READINGS = {**w.DENOMINATORS, MIXED: "exact all, other correct"}


def on_shared_points(audited: Audited, comparison: Comparison, denominator: str) -> Array:
    """Compute sigma by two distances at the last epoch, (2, groups), on the points that both have."""
    names = comparison.one[0], comparison.other[0]
    return audited.once((*names, denominator), lambda: _on_shared_points(audited, names, denominator))


def _on_shared_points(audited: Audited, names: Sequence[str], denominator: str) -> Array:
    points = audited.points
    rows, sides = shared(points, *names), []
    mixed = denominator == MIXED
    for name, counts in zip(names, (w.PAPER, w.CORRECT) if mixed else (denominator, denominator), strict=True):
        lengths = lengths_of(points.distance[name][rows], points.correct[rows], counts)
        found: dict[tuple[str, str], float] = {}
        for partition in points.partitions:
            part = points.parted(partition, rows)
            sigma = by_level(lengths, part, audited.overall(name, "budget")).sigma
            right = np.bincount(part.codes[points.correct[rows] & (part.codes >= 0)], minlength=len(part))
            sigma = np.where(right < (1 if mixed else study.TOO_FEW), np.nan, sigma)
            found |= {(partition, level): float(value) for level, value in zip(part.levels, sigma, strict=True)}
        sides.append([found[group] for group in audited.groups])
    return np.array(sides)


def shared(points: Points, one: str, other: str) -> Array:
    """Return the indices (m,) of the points that both distances measured, without those on which either failed."""
    found = np.isfinite(points.distance[one]) & np.isfinite(points.distance[other])
    return np.flatnonzero(points.tried[one] & points.tried[other] & (found | ~points.correct))


def sample_note(found: Sequence[Audited], compared: Sequence[tuple[Comparison, Sequence[str]]]) -> tuple[str, ...]:
    """Return a note on the numbers of points per network on which two distances are compared, if there are any."""
    sizes = [
        len(shared(audited.points, comparison.one[0], comparison.other[0]))
        for comparison, datasets in compared
        if comparison.of_distances
        for audited in having(found, comparison, datasets)
    ]
    if not sizes:
        return ()
    many = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    return (f"Two distances are compared on the points on which neither failed ({many} per network).",)


def once(groups: Sequence[tuple[str, str]]) -> Array:
    """Return the groups that count as a comparison (groups,): of a partition into two, only the second level."""
    names = [partition for partition, _ in groups]
    return np.array([names.count(name) != 2 or name in names[:place] for place, name in enumerate(names)], dtype=bool)


@artefact("Share of groups in which sigma has the same sign by randomized smoothing and by each attack.")
def table_1(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs, study.NETWORKS)
    missing = study.absences(found)
    body = []
    for dataset, printed in TABLE_1.items():
        cells: list[Cell] = []
        for attack in ATTACKS:
            sides = [counted(found, smoothing_against(attack), [dataset], d) for d in w.DENOMINATORS]
            cells += [sides[0].value, of(sides[0]), sides[1].value]
        body.append(Row((printed, *cells, NOT_RUN if dataset in missing else "")))
    compared = [(smoothing_against(attack), [*TABLE_1]) for attack in ATTACKS]
    columns = [
        column
        for name in ATTACKS.values()
        for column in (
            Column(name, group=name, decimals=4, name="share"),
            Column(f"{name} groups", "text", group=name, name="groups"),
            Column(f"{name} correct", group=name, decimals=4, name="share (correct)"),
        )
    ]
    return StampedTable(
        title="Agreement of randomized smoothing with both attacks.",
        columns=(*labels("Data"), *columns, Column("note", "text", name="")),
        rows=tuple(body),
        stamp=stamps.stamp(inputs, study.NETWORKS),
        notes=(
            "Over torchvision's five networks and the network of the data set, at the last epoch.",
            "Correct: the same for correctly classified members, as in the authors' program.",
            ONCE,
            *sample_note(found, compared),
            ACCURACY,
            DEPENDENT,
            *study.not_run(found),
        ),
    )


@artefact(
    "Number of groups in which sigma has the same sign by two distances or at two epochs. The table compares exact "
    "distances with their estimates on linear models, attacks with each other, and earlier epochs with the last.",
)
def table_agreement(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs)
    here = w.datasets_in(one.dataset for one in study.run(found))
    body = []
    for (denominator, words), comparison in product(READINGS.items(), COMPARISONS):
        if denominator != MIXED or comparison.block == study.LINEAR:
            whole = [name for name in w.PUBLISHED_IMAGES if name in here]
            sides = [whole, *([name] for name in w.IMAGES)]
            shares = [counted(found, comparison, names, denominator) for names in sides]
            cells = [replace(share, text=of(share) or DASH) for share in shares]
            networks = "linear" if comparison.block == study.LINEAR else "five"
            if any(share.n for share in shares):
                body.append(Row((words, networks, comparison.name, *cells)))
    compared = [(comparison, here) for comparison in COMPARISONS]
    return StampedTable(
        title="Sign agreement of distances and of epochs.",
        columns=(
            *labels("Shares of", "Networks", "Compared"),
            Column("paper", "text", name=study.together(here)),
            *(Column(name, "text", name=w.dataset_label(name)) for name in w.IMAGES),
        ),
        rows=tuple(body),
        stamp=stamps.stamp(inputs, [study.LINEAR, study.NETWORKS]),
        notes=(
            "Number of groups with the same sign, out of all compared groups.",
            ONCE,
            "All members: as in the printed estimator of I_P. Correct members: as in Definition 1 and in the authors' "
            "program. Linear: logistic regression, whose exact distance is known. Five: AlexNet, VGG19, ResNet50, "
            "DenseNet121, SqueezeNet1_0.",
            "A dash: not measured, or the checkpoint is no better than the largest class or less than half as accurate "
            "as the last one. Comparisons without any measurement have no row.",
            EXACT_ALL,
            *sample_note(found, compared),
            ACCURACY,
            DEPENDENT,
            *study.not_run(found),
        ),
    )


@artefact("Sigma by the exact distance minus sigma by each estimate, on linear models.")
def table_sigma_differences(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs, study.LINEAR)
    here = w.datasets_in(one.dataset for one in study.run(found))
    paper = [name for name in w.PUBLISHED_IMAGES if name in here]
    body = []
    linear = [comparison for comparison in COMPARISONS if comparison.block == study.LINEAR]
    for comparison in linear:
        whole = [(study.together(here), paper)] if paper else []
        for label, names in (*whole, *((w.dataset_label(name), [name]) for name in here)):
            cells: list[Cell] = []
            for denominator in READINGS:
                gaps = differences(found, comparison, names, denominator)
                gap = Estimate.mean(gaps)
                cells += [gap.n, gap.value, gap.std**2, Estimate.mean(np.abs(gaps)).value]
            body.append(Row((w.DISTANCES[comparison.other[0]].label, label, *cells)))
    columns = tuple(
        Column(f"{key}, {words}", group=f"shares of {words}", decimals=decimals, name=name)
        for words in READINGS.values()
        for key, name, decimals in OF_A_DIFFERENCE
    )
    compared = [(comparison, here) for comparison in linear]
    return StampedTable(
        title="Differences of sigma between the exact distance and its estimates.",
        columns=(*labels("Estimate", "Data"), *columns),
        rows=tuple(body) or (Row(("none", NOT_RUN, *[None] * len(columns))),),
        stamp=stamps.stamp(inputs, study.LINEAR),
        notes=(
            "Mean, variance and mean absolute difference over the groups.",
            ONCE,
            "The published formula of the exact distance ignores the box [0, 1], but attacks stay in it. This explains "
            "part of the differences.",
            EXACT_ALL,
            *sample_note(found, compared),
            *study.not_run(found),
        ),
    )


def of(share: Estimate) -> str:
    """Format a share: ``45 of 60``, or an empty text without groups."""
    return f"{number(share.value * share.n, 0)} of {number(share.n, 0)}" if share.n else ""
