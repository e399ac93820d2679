"""Tables by group: the partitions, sigma with its interval and test, and what holds under every network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.audits.robustness_bias.partitions import comparisons, elements
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, Estimate, interval, number, p_value
from pipeline.report.robustness_bias import study, used
from pipeline.report.robustness_bias.agreement import NOT_RUN
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.table import Cell, Column, Row, Show, Table
from pipeline.types import Array

ESTIMATES = (w.DEEPFOOL, w.CARLINI_WAGNER, w.FMN, w.SMOOTHING)
LEVEL = 0.05
ADJUSTED = "sigma_p_adjusted"
PARTS = ("sigma", "sigma correct", "p adjusted", "failed")
"""What the CSV has of each network by each distance."""
OVER_NETWORKS: tuple[tuple[str, Show, str], ...] = (
    ("mean", "value", "mean sigma"),
    ("mean correct", "value", "correct"),
    ("outcome", "text", "closer / farther"),
)
"""What is printed of all networks by each distance."""
MANY = 20
"""Groups of a data set beyond which they are summed up alone."""


@dataclass(frozen=True)
class Across:
    """One data set's groups by one distance, (groups, networks) each.

    ``sigma`` is of all members; ``given`` sigma of the correctly classified ones, with adjusted ``p``-values, as
    Definition 1 has it; ``failed`` attacks. ``networks`` are those that were audited by this distance.
    """

    networks: tuple[str, ...]
    sigma: Array
    given: Array
    p: Array
    failed: Array

    def means(self, row: int) -> list[float]:
        """The means of a group's sigma over the networks where it is defined, of all members and of correct ones."""
        known = [values[row][np.isfinite(values[row])] for values in (self.sigma, self.given)]
        return [float(values.mean()) if len(values) else math.nan for values in known]

    def known(self, row: int) -> Array:
        """A group's sigma under every network where it is defined."""
        values = self.sigma[row]
        return np.asarray(values[np.isfinite(values)])

    def outcome(self, row: int) -> str:
        """``3 / 0 of 7``: networks in which a group is significantly closer, and farther, than the others.

        Among correctly classified points, and of the networks in which it has such.
        """
        significant, given = self.p[row] < LEVEL, self.given[row]
        closer, farther = (int((significant & side).sum()) for side in (given < 0, given > 0))
        total = int(np.isfinite(given).sum())
        return f"{closer} / {farther} of {total}" if total else DASH

    def below(self, row: int) -> str:
        """``3 of 7``: networks under which a group is less robust than the others."""
        known = self.known(row)
        return f"{int((known < 0).sum())} of {len(known)}" if len(known) else DASH

    def spread(self, row: int) -> str:
        """The least and the largest sigma of a group over the networks."""
        known = self.known(row)
        return f"{number(known.min(), 2)} to {number(known.max(), 2)}" if len(known) else DASH

    def one_sign(self) -> str:
        """``5 of 10``: groups whose sigma has one sign under every network, of those with two networks or more."""
        signs = [set(np.sign(self.known(row)).tolist()) for row in range(len(self.sigma)) if len(self.known(row)) > 1]
        return f"one sign: {sum(len(found) == 1 for found in signs)} of {len(signs)}" if signs else DASH


def across(found: Sequence[Audited], attack: str) -> Across:
    """What the networks of one data set say of its groups by one distance, at their last epoch."""
    having = [one for one in found if attack in one.attacks]
    shape = (len(found[0].groups) if found else 0, 0)
    stacked = []
    for key, denominator in (("sigma", w.PAPER), ("sigma", w.CORRECT), (ADJUSTED, w.CORRECT), ("failed", w.CORRECT)):
        columns = [one.table(attack, denominator=denominator)[key].to_numpy(float) for one in having]
        stacked.append(np.column_stack(columns) if columns else np.zeros(shape))
    return Across(tuple(one.network for one in having), *stacked)


@registry.table(place=5)
def table_sigma(inputs: Inputs) -> Table:
    """Definition 1 as a test: for every group how much closer to the boundary it is than all others, and whether that
    is significant.
    """
    found = study.audited(inputs)
    linear = {one.dataset: one for one in study.run(found) if one.block == study.LINEAR}
    networks = [one for one in study.run(found) if one.block == study.NETWORKS]
    names = w.networks_in(one.network for one in networks)
    body = []
    for dataset in w.datasets_in(one.dataset for one in (*linear.values(), *networks)):
        here = [one for one in networks if one.dataset == dataset]
        by_distance = [across(here, attack) for attack in ESTIMATES]
        for row, group in enumerate((linear.get(dataset) or here[0]).groups):
            cells = _exact(linear.get(dataset), group)
            for several in by_distance:
                cells += [*several.means(row), several.outcome(row)] if several.networks else [None, None, DASH]
            cells += [cell for name in names for several in by_distance for cell in _single(several, name, row)]
            labels = (w.dataset_label(dataset), w.PARTITIONS[group[0]], w.plainly(group[1]))
            body.append(Row(labels, tuple(cells)))
    columns = (
        Column("exact", "Logistic regression, exact", decimals=2, name="sigma"),
        Column("exact correct", "Logistic regression, exact", decimals=2, name="correct"),
        Column("interval", "Logistic regression, exact", "text"),
        Column("p adjusted", "Logistic regression, exact", "text", name="p, adjusted"),
        *(
            Column(f"{attack} {key}", f"Networks, {w.DISTANCES[attack].label}", show, 2, name)
            for attack in ESTIMATES
            for key, show, name in OVER_NETWORKS
        ),
        *(Column(f"{name} {attack} {part}", printed=False) for name in names for attack in ESTIMATES for part in PARTS),
    )
    return Table(
        title="Robustness of every group relative to the others.",
        stub=("Data", "Partition", "Group"),
        columns=columns,
        rows=tuple(body) or (Row((NOT_RUN, "", ""), (None,) * len(columns)),),
        stamp=used.stamp(inputs, [study.LINEAR, study.NETWORKS]),
        notes=(
            "sigma at the last epoch, shares of all members: misclassified ones have length 0, so accuracy has a part "
            "in it. Correct: sigma of the correctly classified members alone, as Definition 1 has it; so have "
            "interval, p and closer / farther. Interval: 95 %, bootstrap over points; none where a side has equal "
            "lengths alone. p: permutation test of sigma = 0, adjusted by Holm's method over all groups of all "
            "partitions of a data set, for each network and distance apart. Closer / farther: networks in which sigma "
            f"is below / above 0 with p below {LEVEL:g}, of those with correct members. Each network's own sigma, and "
            "the failed attacks of each group, are in the CSV.",
            study.failures([*linear.values(), *networks]),
            *study.not_run(found),
        ),
    )


@registry.table(place=4)
def table_findings(inputs: Inputs) -> Table:
    """What section 8.2 concludes from its heat maps, counted: groups that are less robust whatever the network, and
    groups for which it depends on the network.
    """
    found = study.audited(inputs, study.NETWORKS)
    shown = study.run(found)
    body = []
    for dataset in w.datasets_in(one.dataset for one in shown):
        here = [one for one in shown if one.dataset == dataset]
        by_distance = [across(here, attack) for attack in ESTIMATES]
        summary: list[Cell] = [cell for several in by_distance for cell in (several.one_sign(), "")]
        body.append(Row((w.dataset_label(dataset), "all groups", ""), tuple(summary)))
        groups = here[0].groups
        for row, (partition, level) in enumerate(groups if len(groups) <= MANY else ()):
            cells: list[Cell] = []
            for several in by_distance:
                cells += [several.below(row), several.spread(row)] if several.networks else [DASH, DASH]
            labels = (w.dataset_label(dataset), w.PARTITIONS[partition], w.plainly(level))
            body.append(Row(labels, tuple(cells)))
    columns = tuple(
        Column(f"{attack} {key}", w.DISTANCES[attack].label, "text", name=name)
        for attack in ESTIMATES
        for key, name in (("below", "less robust"), ("range", "sigma"))
    )
    return Table(
        title="What depends on the data, and what on the network.",
        stub=("Data", "Partition", "Group"),
        columns=columns,
        rows=tuple(body) or (Row((NOT_RUN, "", ""), (None,) * len(columns)),),
        stamp=used.stamp(inputs, study.NETWORKS),
        notes=(
            "Less robust: networks with sigma below 0 at the last epoch, of all audited, shares of all members, so "
            "accuracy has a part in it; sigma: least and largest over the networks. A group that is less (or more) "
            "robust under all of them speaks for the data, one that varies for the network. All groups: groups with "
            f"one sign under every network. Data sets with more than {MANY} groups are summed up alone.",
            *study.not_run(found),
        ),
    )


@registry.table(place=11)
def table_trainings(inputs: Inputs) -> Table:
    """What changes from training to training beside what differs between groups: one network, trained several times
    with draws of its own.
    """
    again = study.run(study.audited(inputs, study.TRAININGS))
    body = []
    for data, network in dict.fromkeys((one.data, one.network) for one in again):
        first = study.audited(inputs, study.NETWORKS, network=network)
        every = [one for one in (*study.run(first), *again) if (one.data, one.network) == (data, network)]
        sigma = np.column_stack([one.sigmas(study.upper_bound(one)).to_numpy(float) for one in every])
        kept = np.isfinite(sigma).all(axis=1) & (len(every) > 1)
        one_sign = (np.sign(sigma[kept]) == np.sign(sigma[kept][:, :1])).all(axis=1)
        within, between = sigma[kept].std(axis=1, ddof=1), sigma[kept].mean(axis=1)
        cells: list[Cell] = [
            len(every),
            100 * float(np.mean([one.accuracy for one in every])),
            100 * float(np.std([one.accuracy for one in every], ddof=1)) if len(every) > 1 else None,
            float(np.sqrt((within**2).mean())) if kept.any() else None,
            float(between.std(ddof=1)) if kept.sum() > 1 else None,
            f"{int(one_sign.sum())} of {int(kept.sum())}",
        ]
        body.append(Row((w.dataset_label(every[0].dataset), w.NETWORKS[network]), tuple(cells)))
    return Table(
        title="Several trainings of one network.",
        stub=("Data", "Network"),
        columns=(
            Column("trainings", decimals=0),
            Column("accuracy", decimals=1, name="accuracy, %"),
            Column("spread", decimals=1, name="its spread"),
            Column("within", decimals=3, name="sigma, spread over trainings"),
            Column("between", decimals=3, name="spread over groups"),
            Column("signs", show="text", name="one sign"),
        ),
        rows=tuple(body) or (Row((NOT_RUN, ""), (None,) * 6),),
        stamp=used.stamp(inputs, study.TRAININGS),
        notes=(
            f"By {study.upper_bounds(again) or 'the tightest attack'}, last epoch, shares of all members. Spreads are "
            "standard deviations: of a group's sigma over the trainings (root of the mean variance), and of the mean "
            "sigma over the groups. One sign: groups whose sigma has one sign in all trainings.",
            *study.not_run(study.audited(inputs, study.TRAININGS)),
        ),
    )


def _exact(one: Audited | None, group: tuple[str, str]) -> list[Cell]:
    if one is None:
        return [None, None, DASH, DASH]
    line = one.table(w.EXACT, denominator=w.CORRECT).loc[group]
    ends = Estimate(line["sigma"], low=line["sigma_ci_low"], high=line["sigma_ci_high"])
    of_all = float(one.sigmas(w.EXACT)[group])
    return [of_all, float(line["sigma"]), interval(ends, 2), p_value(float(line[ADJUSTED]))]


def _single(several: Across, network: str, row: int) -> list[Cell]:
    if network not in several.networks:
        return [""] * len(PARTS)
    column = several.networks.index(network)
    return [float(part[row, column]) for part in (several.sigma, several.given, several.p, several.failed)]


@registry.table(place=7)
def table_partitions(inputs: Inputs) -> Table:
    """Which groups are compared with the others, and of which images. Data that could not be had are listed with how to
    get them.
    """
    found = study.audited(inputs)
    blocks = sorted({study.block_of(name) for name in inputs.config["experiment"]["grid"]})
    missing = study.absences(found)
    sizes = {}
    body = []
    for name in w.IMAGES:
        data = next((one for one in inputs.datasets.values() if one.name == name), None)
        if data is None:
            said = f"{NOT_RUN}: {missing[name]}" if name in missing else "not in this grid"
            body.append(Row((w.dataset_label(name),), (None,) * 6 + ("", said)))
            continue
        sizes[name] = (elements(data.levels), comparisons(data.levels))
        words = ", ".join(f"{w.PARTITIONS[key]} {len(levels)}" for key, levels in data.levels.items())
        cells = (*sizes[name], data.rows, data.train_rows, data.test_rows, data.unreadable)
        body.append(Row((w.dataset_label(name),), (*cells, data.origin, words)))
    whole = [sizes[name] for name in w.PUBLISHED_IMAGES if name in sizes]
    if whole:
        total = [sum(column) for column in zip(*whole, strict=True)]
        body.append(Row((study.together(sizes),), (*total, *(None,) * 4, "", "")))
    return Table(
        title="The data and their partitions.",
        stub=("Data",),
        columns=(
            *(Column(key, decimals=0) for key in ("groups", "comparisons")),
            Column("images", decimals=0),
            Column("train", decimals=0, name="to train"),
            Column("test", decimals=0, name="to test"),
            Column("odd", decimals=0, name="odd files"),
            Column("origin", show="text"),
            Column("partitions", show="text"),
        ),
        rows=tuple(body),
        stamp=used.of_training(used.stamp(inputs, blocks), "dataset"),
        notes=(
            "Comparisons: a partition into two counts once, as its groups are each other's complement. The paper "
            "counts 151; 10 + 100 + 20 classes of CIFAR-10, CIFAR-100 and its superclasses, 8 and 2 groups of Adience, "
            "5, 2 and 5 of UTKFace are 152 groups or 150 comparisons, and the counts behind Table 1 are those of 150.",
            "Odd files: with a name or content that could not be read in full; they are named in the prepared data.",
        ),
    )
