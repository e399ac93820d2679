"""Tables of agreement in sign: Table 1 of Nanda et al. (2021), and every comparison of sections 7 and 8."""

from __future__ import annotations

import numpy as np

from pipeline.audits.robustness_bias.agreement import Agreement, sigma_difference
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, number
from pipeline.report.robustness_bias import agreement, study, used
from pipeline.report.robustness_bias.agreement import Comparison
from pipeline.report.table import Cell, Column, Row, Table

TABLE_1 = {w.ADIENCE: "Adience", w.UTKFACE: "UTKFace", w.CIFAR10: "CIFAR10", w.CIFAR100: "CIFAR100"}
TABLE_1 |= {w.SUPER: "CIFAR100super", w.DIGITS: "Digits"}
ATTACKS = {w.DEEPFOOL: "DeepFool", w.CARLINI_WAGNER: "CarliniWagner"}
OF_A_DIFFERENCE = (
    ("groups", "groups", 0),
    ("mean", "mean", 3),
    ("variance", "variance", 3),
    ("absolute", "mean absolute", 3),
)
NOT_RUN = "not run: data"
ONCE = (
    "A partition into two counts once: its groups always have opposite signs. sigma of 0 agrees with 0 alone; groups "
    "whose sigma is not defined on a side are left out."
)
ACCURACY = (
    "By all members both sides have 0 at the same misclassified points, so part of the agreement is that of accuracy; "
    "by correct members it is not."
)
DEPENDENT = "Groups share their points and networks their data, so the comparisons are not independent."


@registry.table()
def table_1(inputs: Inputs) -> Table:
    """How often sigma by randomized smoothing has the sign of sigma by each attack."""
    found = study.audited(inputs, study.NETWORKS)
    missing = study.absences(found)
    body = []
    for dataset, printed in TABLE_1.items():
        cells: list[Cell] = []
        for attack in ATTACKS:
            sides = [
                agreement.counted(inputs, found, agreement.smoothing_against(attack), [dataset], d)
                for d in w.DENOMINATORS
            ]
            cells += [percent(sides[0]), of(sides[0]), percent(sides[1])]
        body.append(Row((printed,), (*cells, NOT_RUN if dataset in missing else "")))
    compared = [(agreement.smoothing_against(attack), [*TABLE_1]) for attack in ATTACKS]
    columns = [
        column
        for name in ATTACKS.values()
        for column in (
            Column(name, name, decimals=2, name="%"),
            Column(f"{name} groups", name, "text", name="groups"),
            Column(f"{name} correct", name, decimals=2, name="% (correct)"),
        )
    ]
    return Table(
        title="Agreement of randomized smoothing with both attacks.",
        stub=("Data",),
        columns=(*columns, Column("note", show="text", name="")),
        rows=tuple(body),
        stamp=used.stamp(inputs, study.NETWORKS),
        notes=(
            "Share of groups whose sigma has the same sign, over the five networks of torchvision and the data set's "
            "own, at the last epoch. Correct: the same with shares of the correctly classified members, as in the "
            f"authors' program. {ONCE}",
            f"{agreement.sample_note(inputs, found, compared)} {study.failures(found, ATTACKS)}".strip(),
            ACCURACY,
            DEPENDENT,
            *study.not_run(found),
        ),
    )


@registry.table(place=1)
def table_agreement(inputs: Inputs) -> Table:
    """How often two distances, or two epochs, agree on who is less robust: exact distances against their estimates on
    linear models, attacks against each other, earlier checkpoints against the last.
    """
    found = study.audited(inputs)
    here = w.datasets_in(one.dataset for one in study.run(found))
    body = []
    for denominator, words in w.DENOMINATORS.items():
        for comparison in agreement.comparisons(found):
            whole = [name for name in w.PUBLISHED_IMAGES if name in here]
            sides = [whole, *([name] for name in w.IMAGES)]
            cells = [share(agreement.counted(inputs, found, comparison, names, denominator)) for names in sides]
            body.append(Row((words, where(comparison), comparison.name), tuple(cells)))
    compared = [(comparison, here) for comparison in agreement.comparisons(found)]
    shown = [one for one in found if one.block in (study.LINEAR, study.NETWORKS)]
    return Table(
        title="Agreement in sign of different distances, and of different epochs.",
        stub=("Shares of", "Networks", "Compared"),
        columns=(
            Column("paper", show="text", name=study.together(here)),
            *(Column(name, show="text", name=w.dataset_label(name)) for name in w.IMAGES),
        ),
        rows=tuple(body),
        stamp=used.stamp(inputs, [study.LINEAR, study.NETWORKS]),
        notes=(
            f"Groups whose sigma has the same sign on both sides. {ONCE}",
            "Shares of all members: as the paper defines I_P; of correct members: as its program computes it. Linear: "
            "logistic regression, of which the exact distance is known. Five: AlexNet, VGG19, ResNet50, DenseNet121, "
            "SqueezeNet1_0. A dash: not measured, or one checkpoint alone.",
            f"{agreement.sample_note(inputs, found, compared)} {study.failures(shown)}".strip(),
            ACCURACY,
            DEPENDENT,
            *study.not_run(found),
        ),
    )


@registry.table(place=2)
def table_sigma_differences(inputs: Inputs) -> Table:
    """How far sigma by each estimate is from sigma by the exact distance, on linear models."""
    found = study.audited(inputs, study.LINEAR)
    here = w.datasets_in(one.dataset for one in study.run(found))
    paper = [name for name in w.PUBLISHED_IMAGES if name in here]
    body = []
    for comparison in agreement.comparisons(found):
        if comparison.block != study.LINEAR:
            continue
        whole = [(study.together(here), paper)] if paper else []
        for label, names in (*whole, *((w.dataset_label(name), [name]) for name in here)):
            cells: list[Cell] = []
            for denominator in w.DENOMINATORS:
                one, other = agreement.pairs(inputs, found, comparison, names, denominator)
                gap = sigma_difference(one, other)
                gaps = np.abs(one - other)
                absolute = float(np.nanmean(gaps)) if np.isfinite(gaps).any() else None
                cells += [gap.total, gap.mean, gap.variance, absolute]
            body.append(Row((w.distance_style(comparison.other[0]).label, label), tuple(cells)))
    columns = tuple(
        Column(f"{key}, {words}", f"shares of {words}", decimals=decimals, name=name)
        for words in w.DENOMINATORS.values()
        for key, name, decimals in OF_A_DIFFERENCE
    )
    compared = [(one, here) for one in agreement.comparisons(found) if one.block == study.LINEAR]
    return Table(
        title="Differences of sigma between the exact distance and its estimates.",
        stub=("Estimate", "Data"),
        columns=columns,
        rows=tuple(body) or (Row(("none", NOT_RUN), (None,) * len(columns)),),
        stamp=used.stamp(inputs, study.LINEAR),
        notes=(
            f"sigma by the exact distance less sigma by the estimate, over the groups. {ONCE}",
            "The exact distance is that of the formula as published, without regard for the box [0, 1], in which the "
            "attacks stay: part of the differences is the box's.",
            f"{agreement.sample_note(inputs, found, compared)} {study.failures(found)}".strip(),
            *study.not_run(found),
        ),
    )


def where(comparison: Comparison) -> str:
    """Over which networks."""
    return "linear" if comparison.block == study.LINEAR else "five"


def percent(found: Agreement) -> Estimate:
    """The share in percent, NaN without groups."""
    return Estimate(100 * found.share, n=found.total)


def of(found: Agreement) -> str:
    """``45 of 60``; nothing without groups."""
    return f"{number(found.agreeing, 0)} of {number(found.total, 0)}" if found.total else ""


def share(found: Agreement) -> Estimate:
    """The share as k of n with Wilson's interval, which is in the CSV."""
    ends = {"low": found.low, "high": found.high} if found.total else {}
    return Estimate(found.share, n=found.total, text=of(found) or "\u2014", **ends)
