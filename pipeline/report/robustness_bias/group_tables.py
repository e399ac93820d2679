"""Tables by group: the partitions, sigma with interval and test, and the variation between training runs."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import DASH, interval, p_value
from fairness_audits.results.table import Cell, Column, Kind, Row
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.network_tables import engines
from pipeline.report.robustness_bias.study import NOT_RUN, Audited
from pipeline.report.table import StampedTable, labels

LEVEL = 0.05
ADJUSTED = "sigma_p_adjusted"
OVER_NETWORKS: tuple[tuple[str, Kind, str], ...] = (
    ("mean", "number", "mean sigma"),
    ("below", "text", "less robust"),
    ("outcome", "text", "closer / farther"),
)
"""Columns that summarise all networks by each distance."""


def over_networks(found: Sequence[Audited], groups: Sequence[tuple[str, str]]) -> dict[Any, dict[str, Any]]:
    """Summarise each group over the networks of one data set at the last epoch, by distance (``deepfool mean``).

    - ``mean``: mean of sigma of all members, over the networks with a defined sigma;
    - ``below``, ``3 of 7``: number of networks under which the group is less robust than the others;
    - ``outcome``, ``3 / 0 of 7``: numbers of networks in which the correctly classified members are significantly
      closer, and farther, than the others, and the number of networks with such members.
    """

    def texts(text: str, *of: pd.Series) -> list[str]:
        """Format the text of each group, or a dash if the last number is 0."""
        return [text.format(*numbers) if numbers[-1] else DASH for numbers in zip(*of, strict=True)]

    index = pd.MultiIndex.from_tuples(groups)
    columns: dict[str, Any] = {}
    for attack in w.ESTIMATES:
        having = [one for one in found if not one.table(attack).empty]
        sigma, among_correct, p = (
            pd.DataFrame({one.network: one.table(attack, denominator=of)[key] for one in having}, index, dtype=float)
            for key, of in (("sigma", w.PAPER), ("sigma", w.CORRECT), (ADJUSTED, w.CORRECT))
        )
        closer, farther = (((p < LEVEL) & side).sum(axis=1) for side in (among_correct < 0, among_correct > 0))
        columns |= {
            f"{attack} mean": sigma.mean(axis=1),
            f"{attack} below": texts("{} of {}", (sigma < 0).sum(axis=1), sigma.count(axis=1)),
            f"{attack} outcome": texts("{} / {} of {}", closer, farther, among_correct.count(axis=1)),
        }
    return pd.DataFrame(columns, index).to_dict("index")


@artefact(
    "Test of Definition 1: sigma is negative if the group is closer to the decision boundary than all other groups "
    "together.",
)
def table_sigma(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs)
    linear = {one.dataset: one for one in study.run(found) if one.block == study.LINEAR}
    networks = [one for one in study.run(found) if one.block == study.NETWORKS]
    columns = (
        Column("exact", group="Logistic regression, exact", decimals=2, name="sigma"),
        Column("exact correct", group="Logistic regression, exact", decimals=2, name="correct"),
        Column("interval", "text", group="Logistic regression, exact"),
        Column("p adjusted", "text", group="Logistic regression, exact", name="adjusted p"),
        *(
            Column(f"{attack} {key}", kind, group=f"Networks, {w.DISTANCES[attack].label}", decimals=2, name=name)
            for attack in w.ESTIMATES
            for key, kind, name in OVER_NETWORKS
        ),
    )
    body, few = [], Counter[str]()
    for dataset in w.datasets_in(one.dataset for one in (*linear.values(), *networks)):
        here, exact = [one for one in networks if one.dataset == dataset], linear.get(dataset)
        for group, line in over_networks(here, (exact or here[0]).groups).items():
            line |= _exact(exact, group)
            names = (w.dataset_label(dataset), w.PARTITIONS[group[0]], w.plainly(group[1]))
            cells = tuple(line.get(column.key, "") for column in columns)
            if all(cell in ("", DASH) or cell != cell for cell in cells):
                few[names[0]] += 1
            else:
                body.append(Row((*names, *cells)))
    return StampedTable(
        title="Robustness of each group relative to the others.",
        columns=(*labels("Data", "Partition", "Group"), *columns),
        rows=tuple(body) or (Row((NOT_RUN, "", "", *[None] * len(columns))),),
        stamp=stamps.stamp(inputs, [study.LINEAR, study.NETWORKS]),
        split=(f"Networks, {w.DISTANCES[w.FMN].label}",),
        notes=(
            "sigma at the last epoch, over all members. Misclassified members have distance 0, so sigma also depends "
            "on accuracy.",
            "Less robust: number of networks with sigma below 0. If a group has the same sign under all "
            "networks, the cause is probably in the data; if the sign varies, in the network.",
            "Correct: sigma of the correctly classified members only, as in Definition 1. The interval, p and closer / "
            "farther are also for these members. Interval: 95 %, bootstrap over points; missing if all distances on "
            "one side are equal.",
            "p: permutation test of sigma = 0, adjusted by Holm's method over all groups and partitions of a data set, "
            "separately for each network and distance. Closer / farther: numbers of networks in which sigma is below / "
            f"above 0 with p below {LEVEL:g}, out of those with correct members.",
            *(
                f"{label}: {count} groups have fewer than {study.TOO_FEW} correctly classified points under every "
                "model and are left out."
                for label, count in few.items()
            ),
            *study.not_run(found),
        ),
    )


@artefact(
    "Variation of sigma between training runs of one network, compared with its variation between groups. The training "
    "runs have different random numbers.",
)
def table_trainings(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs, study.TRAININGS)
    again = study.run(found)
    body, shown = [], list[Audited]()
    for data, network in dict.fromkeys((one.data, one.network) for one in again):
        first = study.audited(inputs, study.NETWORKS, network=network)
        every = [one for one in (*study.run(first), *again) if (one.data, one.network) == (data, network)]
        shown += every
        sigma = np.column_stack([one.sigmas(one.bound).to_numpy(float) for one in every])
        sigma = sigma[np.isfinite(sigma).all(axis=1) & (len(every) > 1)]
        one_sign = (np.sign(sigma) == np.sign(sigma[:, :1])).all(axis=1)
        accuracy, between = Estimate.mean(np.array([one.accuracy for one in every])), Estimate.mean(sigma.mean(axis=1))
        cells: list[Cell] = [
            len(every),
            100 * accuracy.value,
            100 * accuracy.std,
            float(np.sqrt((sigma.std(axis=1, ddof=1) ** 2).mean())) if len(sigma) else None,
            between.std,
            f"{int(one_sign.sum())} of {len(sigma)}",
        ]
        body.append(Row((w.dataset_label(every[0].dataset), w.NETWORKS[network], *cells)))
    return StampedTable(
        title="Several training runs of one network.",
        columns=(
            *labels("Data", "Network"),
            Column("trainings", decimals=0, name="training runs"),
            Column("accuracy", decimals=1, name="accuracy, %"),
            Column("spread", decimals=1, name="SD of accuracy"),
            Column("within", decimals=3, name="SD of sigma over training runs"),
            Column("between", decimals=3, name="SD of sigma over groups"),
            Column("signs", "text", name="same sign"),
        ),
        rows=tuple(body) or (Row((NOT_RUN, "", *[None] * 6)),),
        stamp=stamps.stamp(inputs, study.TRAININGS),
        notes=(
            f"By {study.upper_bounds(again) or 'the tightest attack'}, last epoch, all members.",
            "SD: standard deviation. Over training runs: of sigma of a group, as the root of the mean variance. Over "
            "groups: of the mean sigma. Same sign: groups whose sigma has the same sign in all training runs.",
            *engines(shown),
            *study.not_run(found),
        ),
    )


@artefact(
    "Exact distances of every face under logistic regression, each by the model that was trained on the other folds."
)
def table_folds(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs, study.FOLDS)
    run = study.run(found)
    body = []
    for (partition, level), line in study.over_folds(inputs).iterrows():
        sigma = estimate("mean with error", pd.DataFrame([{"repetition": 0, "value": line["sigma"], **line}]))
        cells = (sigma.value, interval(sigma, 3), float(line["least"]), float(line["largest"]))
        body.append(Row((w.PARTITIONS[partition], w.plainly(level), *cells)))
    return StampedTable(
        title=f"Logistic regression on UTKFace, over {len(run) or 'several'} folds.",
        columns=(
            *labels("Partition", "Group"),
            Column("sigma", decimals=3, name="mean sigma"),
            Column("interval", "text"),
            Column("least", decimals=2, name="smallest of a fold"),
            Column("largest", decimals=2, name="largest of a fold"),
        ),
        rows=tuple(body) or (Row((f"not run at the {w.scales(inputs.scale)}", "", *[None] * 4)),),
        stamp=stamps.stamp(inputs, study.FOLDS),
        notes=(
            "sigma by the exact distance, shares of all members, mean over the folds. Interval: 95 %, from the "
            "bootstrap over points in each fold. No face is in two folds, so these errors are independent given the "
            "models. The interval does not include the variation of a model with its training faces.",
            *study.not_run(found),
        ),
    )


def _exact(one: Audited | None, group: tuple[str, str]) -> dict[str, Cell]:
    if one is None:
        return {"exact": None, "exact correct": None, "interval": DASH, "p adjusted": DASH}
    line = one.table(w.EXACT, denominator=w.CORRECT).loc[group]
    ends = interval(Estimate(line["sigma"], low=line["sigma_ci_low"], high=line["sigma_ci_high"]), 2)
    sigma = {"exact": float(one.sigmas(w.EXACT)[group]), "exact correct": float(line["sigma"])}
    return {**sigma, "interval": ends, "p adjusted": p_value(float(line[ADJUSTED]))}


@artefact(
    "Groups and images of each data set. For missing data, the table says where to get them.",
)
def table_partitions(inputs: Inputs) -> StampedTable:
    found = study.audited(inputs)
    missing = study.absences(found)
    sizes = {}
    body = []
    for name in w.IMAGES:
        data = next((one for one in study.datasets(inputs).values() if one.name == name), None)
        if data is None:
            said = f"{NOT_RUN}: {missing[name]}" if name in missing else "not in this grid"
            body.append(Row((w.dataset_label(name), *[None] * 6, "", said)))
            continue
        sizes[name] = (study.elements(data.levels), study.comparisons(data.levels))
        words = ", ".join(f"{w.PARTITIONS[key]} {len(levels)}" for key, levels in data.levels.items())
        cells = (*sizes[name], data.rows, data.train_rows, data.test_rows, data.unreadable)
        body.append(Row((w.dataset_label(name), *cells, data.origin, words)))
    whole = [sizes[name] for name in w.PUBLISHED_IMAGES if name in sizes]
    if whole:
        total = [sum(column) for column in zip(*whole, strict=True)]
        body.append(Row((study.together(sizes), *total, *[None] * 4, "", "")))
    return StampedTable(
        title="Data sets and their partitions.",
        columns=(
            *labels("Data"),
            *(Column(key, decimals=0) for key in ("groups", "comparisons")),
            Column("images", decimals=0),
            Column("train", decimals=0, name="training images"),
            Column("test", decimals=0, name="test images"),
            Column("odd", decimals=0, name="unreadable files"),
            Column("origin", "text"),
            Column("partitions", "text"),
        ),
        rows=tuple(body),
        stamp=stamps.stamp(inputs, stamps.blocks(inputs)),
        notes=(
            "Comparisons: a partition into two groups counts once, because each group is the complement of the other.",
            "The paper counts 151 groups. CIFAR-10, CIFAR-100 and its superclasses have 10 + 100 + 20 classes, Adience "
            "has 8 + 2 groups, and UTKFace 5 + 2 + 5. Together, these are 152 groups or 150 comparisons. Table 1 of "
            "the paper agrees with 150.",
            "Unreadable files: their name or content could not be read completely. The prepared data list their names.",
        ),
    )
