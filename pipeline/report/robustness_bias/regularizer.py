"""Section 9 and Figures 17 to 22 of Nanda et al. (2021): networks trained with a penalty on robustness bias."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairness_audits.results.formats import DASH, interval, number, p_value, parameter
from fairness_audits.results.style import INK, finish, new_panels, step_band
from fairness_audits.results.table import Column, Row, rows_of
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import curves, stamps, study
from pipeline.report.robustness_bias.curves import Group, nothing
from pipeline.report.robustness_bias.study import FORMS, NOT_RUN, Audited
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, labels

VARIANTS = "regularizer_variants"
"""Block of networks with different distances in the penalty. The form "logit, as coded" is also in other blocks."""
UNITS = {"normalised": "in normalised units", "pixels": "in pixels"}
"""Printed units of tau: normalised, as in the authors' code, or pixels."""
PANEL = 1.9
INSIDE, OUTSIDE = "#D55E00", "#0072B2"
Pair = tuple[Audited, Audited]
"""A network without the penalty, and the same training with it."""


def penalised(inputs: Inputs, dataset: str = "", block: str = study.REGULARIZER) -> list[Audited]:
    """Return the penalised networks that have learned, sorted by data set, network, group, penalty, form and weights.

    Networks without a penalty come first within a group. A network in several blocks is taken from the block with all
    weights, because the curves use that block.
    """
    forms = list(FORMS.values())
    every = study.run(study.audited(inputs, block, dataset))
    every = [one for one in every if not (one.key.startswith(VARIANTS) and one.form == forms[0])]
    datasets, networks = (w.datasets_in(one.dataset for one in every), w.networks_in(one.network for one in every))

    def place(one: Audited) -> tuple[object, ...]:
        weights = (one.penalised, one.alpha > 0, forms.index(one.form), one.tau, one.alpha)
        return datasets.index(one.dataset), networks.index(one.network), *weights

    return sorted(every, key=place)


def without(one: Audited, among: Sequence[Audited]) -> Audited | None:
    """Return the same training of the network without a penalty, if any; preferably the one for the same group."""
    place = (one.dataset, one.network, one.training)
    same = [other for other in among if other.alpha == 0 and (other.dataset, other.network, other.training) == place]
    return next((other for other in same if other.penalised == one.penalised), same[0] if same else None)


def by_weight(found: Sequence[Audited], network: str) -> dict[tuple[str, str], list[Audited]]:
    """Return, per penalised group, the networks of one architecture that differ only in the weight, ascending."""
    sets: dict[tuple[str, str], list[Audited]] = {}
    for one in found:
        if one.network == network and not one.key.startswith(VARIANTS):
            sets.setdefault(one.penalised, []).append(one)
    return sets


@artefact(
    "Accuracy and sigma of the penalised group for each weight alpha, threshold tau and form of the distance in the "
    "penalty.",
)
def table_regularizer(inputs: Inputs) -> StampedTable:
    found = penalised(inputs)

    def change(one: Audited) -> float | None:
        before = without(one, found)
        return abs(sigma(one, one.penalised)) - abs(sigma(before, one.penalised)) if one.alpha and before else None

    columns = (
        Column("Data", "label", lambda one: w.dataset_label(one.dataset)),
        Column("Network", "label", lambda one: w.NETWORKS[one.network]),
        Column("Group", "label", lambda one: w.plainly(one.penalised[1])),
        Column("Distance in the penalty", "label", lambda one: one.form if one.alpha else DASH),
        Column("tau", "parameter", lambda one: one.tau if one.alpha else None),
        Column("alpha", "parameter", lambda one: one.alpha),
        Column("accuracy", cell=lambda one: 100 * one.accuracy, decimals=1, name="accuracy, %"),
        Column("n", cell=lambda one: float(measures(one)["n"]), decimals=0),
        Column("sigma", cell=lambda one: float(measures(one)["sigma"])),
        Column("p", "text", lambda one: p_value(float(measures(one)["sigma_p"]))),
        Column("change", cell=change, name="change of |sigma|"),
    )
    units = " or ".join(sorted({UNITS[one.method["scale"]] for one in found}))
    return StampedTable(
        title="Effect of the penalty on the penalised group.",
        columns=columns,
        rows=rows_of(columns, found) or (Row((NOT_RUN, "", "", "", *[None] * 7)),),
        stamp=stamps.stamp(inputs, study.REGULARIZER),
        notes=(
            f"By {study.upper_bounds(found)}, last epoch, correctly classified points, as in equation 9.",
            "n: points of the group with a distance. p: permutation test of sigma = 0 over the points of this network, "
            "not adjusted. Change: |sigma| minus |sigma| of the same network with alpha = 0.",
            f"Tau is {units or 'as configured'}. A smaller |sigma| may cost accuracy. Each network was trained once, "
            "so the numbers do not show the variation between training runs.",
            *study.not_run(study.audited(inputs, study.REGULARIZER)),
        ),
    )


@artefact(
    "Several training runs of a network without the penalty and with it, for a group that is closer to the boundary "
    "than the others. Both training runs of a pair have the same seeds.",
)
def table_penalties(inputs: Inputs) -> StampedTable:
    found = penalised(inputs, block=study.PENALTIES)
    kinds: dict[tuple[str, str, str, float, float], list[Pair]] = {}
    for before, one in paired(found):
        names = (w.dataset_label(one.dataset), w.NETWORKS[one.network], w.plainly(one.penalised[1]))
        kinds.setdefault((*names, one.tau, one.alpha), []).append((before, one))
    body = []
    for kind, pairs in kinds.items():
        sides = np.array([[sigma(one, one.penalised) for one in pair] for pair in pairs])
        gain = estimate("mean", sides[:, 1] - sides[:, 0])
        significant = sum(biased(before) for before, _ in pairs)
        accuracies = 100 * np.array([[one.accuracy for one in pair] for pair in pairs]).mean(axis=0)
        shown = (*sides.mean(axis=0), gain.value)
        body.append(Row((*kind, f"{significant} of {len(pairs)}", *shown, interval(gain, 3), *accuracies.tolist())))
    return StampedTable(
        title="The penalty on robustness bias in pairs of training runs.",
        columns=(
            *labels("Data", "Network", "Group"),
            Column("tau", "parameter"),
            Column("alpha", "parameter"),
            Column("biased", "text", name="closer without"),
            Column("before", group="sigma", decimals=3, name="without"),
            Column("after", group="sigma", decimals=3, name="with"),
            Column("gain", group="sigma", decimals=3, name="with minus without"),
            Column("ends", "text", group="sigma", name="interval"),
            Column("accuracy before", group="accuracy, %", decimals=1, name="without"),
            Column("accuracy after", group="accuracy, %", decimals=1, name="with"),
        ),
        rows=tuple(body) or (Row((f"not run at the {w.scales(inputs.scale)}", "", "", *[None] * 9)),),
        stamp=stamps.stamp(inputs, study.PENALTIES),
        notes=(
            f"By {study.upper_bounds(found) or 'the tightest attack'}, last epoch, correctly classified points. Means "
            "over pairs of training runs, with Student's 95 % interval."
            + " Pairs with another tau have other seeds."
            * (len({kind[3] for kind in kinds}) > 1),
            f"Closer without: training runs without the penalty after which the group is significantly closer to the "
            f"boundary than the others (p < {study.SIGNIFICANT:g}, permutation test over points, not adjusted).",
            *study.not_run(study.audited(inputs, study.PENALTIES)),
        ),
    )


def paired(found: Sequence[Audited]) -> list[Pair]:
    """Return each network that was trained with the penalty after the same training without it, if there is one."""
    pairs = [(without(one, found), one) for one in found if one.alpha]
    return [(before, one) for before, one in pairs if before is not None]


@artefact(
    "Sigma of a penalised group without the penalty and with it. Each line is a network, and both ends were trained "
    "with the same seeds.",
)
def figure_penalties(inputs: Inputs) -> Picture:
    title = "The penalty and the robustness bias of the penalised group."
    every = [one for block in (study.REGULARIZER, study.PENALTIES) for one in penalised(inputs, block=block)]
    kinds: dict[tuple[str, str], list[Pair]] = {}
    for pair in paired(every):
        if pair[1].form == next(iter(FORMS.values())):
            kinds.setdefault((pair[1].dataset, pair[1].penalised[1]), []).append(pair)
    if not kinds:
        return nothing(inputs, study.audited(inputs, study.REGULARIZER), title)
    figure, panels = curves.panels(len(kinds), "")
    for axes, ((dataset, level), pairs) in zip(panels, sorted(kinds.items()), strict=True):
        better = 0
        for before, one in pairs:
            ends = [sigma(each, one.penalised) for each in (before, one)]
            closer = abs(ends[1]) < abs(ends[0])
            better += closer
            color, line = (OUTSIDE, "-") if closer else (INSIDE, (0, (4, 1.2)))
            axes.plot([0, 1], ends, color=color, linestyle=line, marker="o", markersize=2.5, linewidth=1.0)
        axes.axhline(0, color=INK, linewidth=0.6)
        axes.set(xlim=(-0.2, 1.2), xticks=[0, 1], xticklabels=["without", "with"])
        axes.set_title(f"{w.dataset_label(dataset)}, {w.plainly(level)}")
        axes.set_xlabel(f"closer to 0 in {better} of {len(pairs)}")
    for axes in panels[:: curves.ACROSS]:
        axes.set_ylabel(r"$\sigma$ of the penalised group")
    handles = [Line2D([], [], color=OUTSIDE), Line2D([], [], color=INSIDE, linestyle=(0, (4, 1.2)))]
    figure.legend(handles, ["closer to 0 with the penalty", "farther from 0"], loc="outside upper center", ncols=2)
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, [study.REGULARIZER, study.PENALTIES]),
        "A panel for each penalised group. Each network is a line from sigma without the penalty to sigma with it.",
        notes=(
            f"By {study.upper_bounds(every)}, last epoch, correctly classified points. Networks with several weights "
            "of the penalty have a line for each.",
            *study.not_run(every),
        ),
    )


def measures(one: Audited) -> pd.Series:
    """Return the statistics of the correctly classified points of the penalised group, by the main distance."""
    return one.table(one.bound, denominator=w.CORRECT).loc[one.penalised]


def biased(one: Audited) -> bool:
    """Return whether the penalised group is significantly closer to the boundary than the others."""
    return bool(measures(one)["sigma_p"] < study.SIGNIFICANT and measures(one)["sigma"] < 0)


def sigma(one: Audited, group: tuple[str, str]) -> float:
    """Return sigma of the correctly classified points of a group under one network, by its upper bound."""
    return float(one.sigmas(one.bound, denominator=w.CORRECT)[group])


@artefact(
    "Distances of a class and of all other classes for a Deep CNN on CIFAR-10, trained without and with the penalty. "
    "The published figure shows all ten classes and does not state weight and threshold. Here, we show the classes "
    "that this run penalised.",
    "figure_17",
    dataset=w.CIFAR10,
    network="deep_cnn",
)
@artefact("As Figure 17, for ResNet50.", "figure_18", dataset=w.CIFAR10, network="resnet50")
@artefact("As Figure 17, for VGG19.", "figure_19", dataset=w.CIFAR10, network="vgg19")
@artefact(
    "As Figure 17, for the handwritten digits, with several weights of the penalty.",
    "figure_digits_regularizer",
    dataset=w.DIGITS,
    network="utk_classifier",
)
@artefact(
    "Distances by race in UTKFace for the UTK Classifier, trained without and with the penalty for one race. The "
    "published figure does not state which races were penalised.",
    "figure_20",
    dataset=w.UTKFACE,
    network="utk_classifier",
    partition=w.RACE,
)
@artefact("As Figure 20, for ResNet50.", "figure_21", dataset=w.UTKFACE, network="resnet50", partition=w.RACE)
@artefact("As Figure 20, for VGG19.", "figure_22", dataset=w.UTKFACE, network="vgg19", partition=w.RACE)
def penalty(inputs: Inputs, dataset: str, network: str, partition: str = "") -> Picture:
    """Draw a row per penalised group and a panel per weight: the group and all others, or all groups of a
    ``partition``.
    """
    title = f"The penalty on {w.dataset_label(dataset)}{partition and f' by {partition}'}, {w.NETWORKS[network]}."
    sets = by_weight(penalised(inputs, dataset), network)
    rows = [several for (name, _), several in sets.items() if partition in ("", name)]
    if not rows:
        return nothing(inputs, study.audited(inputs, study.REGULARIZER, dataset, network), title)
    figure, grid = new_panels(PANEL * len(rows) + 0.35, len(rows), max(map(len, rows)), sharey=True)
    for several, panels in zip(rows, grid, strict=True):
        groups = [curves.group(one, one.bound, one.penalised[0], w.CORRECT) for one in several]
        # The panels of a group share their axis to show the effect of the penalty.
        tau = curves.budgets(groups)
        for axes, one, group in zip(panels, several, groups, strict=False):
            if partition:
                curves.draw_levels(axes, group, tau, [one.penalised[1]], ", penalised")
            else:
                _beside_others(axes, group, one.penalised[1], tau)
            axes.set_title(_title(one), fontsize=7.5)
        panels[0].legend(loc="upper right", handlelength=2.4)
        for axes in panels[len(several) :]:
            axes.set_axis_off()
    finish(figure, grid, curves.ABSCISSA, r"$\widehat{I}_P(\tau)$")
    last = rows[-1][-1]
    changes = [_change(*pair) for several in rows for pair in paired(several)]
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.REGULARIZER, [dataset]),
        f"Falling curves in each panel for {'each group' if partition else 'the penalised group and all others'}: "
        "the share of correctly classified points farther than a budget from the boundary, without the penalty and "
        "with it.",
        notes=(
            f"By {study.upper_bounds([last])}, over correctly classified points. sigma is that of the penalised group, "
            f"with its 95 % interval. Penalty as in equation 9: threshold {parameter(last.tau)} "
            f"{UNITS[last.method['scale']]}, distance by {last.form}. Each network was trained once, so the figure "
            "does not show the variation between training runs.",
            f"The penalty changes |sigma|: {'; '.join(changes)}.",
            curves.BANDS,
            *study.not_run(study.audited(inputs, study.REGULARIZER, dataset, network)),
        ),
    )


def _beside_others(axes: Axes, group: Group, level: str, tau: Array) -> None:
    place = group.partition.levels.index(level)
    sides = zip(group.curves(place, tau), group.bands(place, tau), strict=True)
    looks = ((w.plainly(level), INSIDE, "-"), ("all others", OUTSIDE, (0, (4, 1.2))))
    for (share, band), (label, color, line) in zip(sides, looks, strict=True):
        step_band(axes, tau, band, color)
        axes.step(tau, share, where="post", color=color, linestyle=line, label=label)
    curves.finish(axes, tau)


def _change(before: Audited, one: Audited) -> str:
    group = one.penalised
    change = abs(sigma(one, group)) - abs(sigma(before, group))
    how = "worse, larger" if change > 0 else "smaller"
    size = number(abs(change), 2)
    change_of = "unchanged to two decimals" if float(size) == 0 else f"{how} by {size}"
    return f"{w.plainly(group[1])}, alpha = {parameter(one.alpha)}: {change_of}"


def _title(one: Audited) -> str:
    penalty = rf"$\alpha$ = {parameter(one.alpha)}" if one.alpha else "no penalty"
    value, *ends = (number(float(measures(one)[name]), 2) for name in ("sigma", "sigma_ci_low", "sigma_ci_high"))
    return rf"{penalty}: $\sigma$ = {value} [{', '.join(ends)}]"
