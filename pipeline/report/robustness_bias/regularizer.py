"""Section 9 and Figures 17 to 22 of Nanda et al. (2021): networks trained with a penalty on robustness bias."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import ks_2samp

from pipeline.audits.robustness_bias.measures import robustness_bias
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, number, p_value, plain
from pipeline.report.robustness_bias import curves, study
from pipeline.report.robustness_bias.curves import Group, nothing
from pipeline.report.robustness_bias.study import FORMS, NOT_RUN, Audited
from pipeline.report.stamp import Picture
from pipeline.report.style import finish, new_panels
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.types import Array

VARIANTS = "regularizer_variants"
"""Blocks that begin so hold networks that differ in the penalty's distance, not in its weight alone."""
UNITS = {"normalised": "in normalised units", "pixels": "in pixels"}
"""Of tau: normalised, as coded, or pixels."""
ACROSS = 4
PANEL = 1.35
INSIDE, OUTSIDE = "#D55E00", "#0072B2"
OF_DISTANCE = ("tau", "distance", "second_order", "scale")
"""Settings that have no effect where the weight is 0."""


def penalised(inputs: Inputs, dataset: str = "") -> list[Audited]:
    """Every penalised network that was run, by data set, network, group (first without a penalty), form and weights.

    A network of several blocks is there once, that of the block that has all weights, as curves are drawn of it:
    without a penalty its form and its threshold tell no two apart.
    """
    kept: dict[str, Audited] = {}
    every = study.run(study.audited(inputs, study.REGULARIZER, dataset))
    for one in sorted(every, key=lambda one: one.key.startswith(VARIANTS)):
        settings = {**one.method, "penalised_partition": one.penalised[0]}
        telling = sorted((key, value) for key, value in settings.items() if one.alpha or key not in OF_DISTANCE)
        kept.setdefault(repr((one.data, telling)), one)
    datasets, networks = (w.datasets_in(one.dataset for one in every), w.networks_in(one.network for one in every))
    forms = list(FORMS.values())

    def place(one: Audited) -> tuple[object, ...]:
        weights = (one.penalised, one.alpha > 0, forms.index(one.form), one.tau, one.alpha)
        return datasets.index(one.dataset), networks.index(one.network), *weights

    return sorted(kept.values(), key=place)


def without(one: Audited, among: Sequence[Audited]) -> Audited | None:
    """The same network trained without a penalty, if there is one; of several the one for the same group."""
    place = (one.dataset, one.network)
    same = [other for other in among if other.alpha == 0 and (other.dataset, other.network) == place]
    return next((other for other in same if other.penalised == one.penalised), same[0] if same else None)


def by_weight(found: Sequence[Audited], network: str) -> dict[tuple[str, str], list[Audited]]:
    """For each penalised group the networks of one architecture that differ in the weight alone, rising."""
    sets: dict[tuple[str, str], list[Audited]] = {}
    for one in found:
        if one.network == network and not one.key.startswith(VARIANTS):
            sets.setdefault(one.penalised, []).append(one)
    return sets


HELPED, NOTHING_BESIDE = "helped", "nothing to compare with"


@registry.table(place=9)
def table_regularizer(inputs: Inputs) -> Table:
    """Accuracy and robustness bias of the penalised group, for every weight, threshold and form of the distance in the
    penalty.
    """
    found = penalised(inputs)
    body = [_penalty_row(inputs, one, without(one, found) if one.alpha else None) for one in found]
    units = " or ".join(sorted({UNITS[one.method["scale"]] for one in found}))
    return Table(
        title="What the penalty on robustness bias does to the group that it is for.",
        stub=("Data", "Network", "Group", "Distance in the penalty"),
        columns=(
            Column("tau", show="parameter", name="tau, as set"),
            Column("tau in pixels", show="parameter", name="tau, pixels"),
            Column("alpha", show="parameter"),
            Column("accuracy", decimals=1, name="accuracy, %"),
            Column("n", decimals=0),
            Column("sigma"),
            Column("p", show="text"),
            Column("change", name="change of |sigma|"),
            Column("penalised bias", name="RB at tau"),
            Column("bias", name="largest RB"),
            Column("median", name="median distance"),
            Column("reading", show="text"),
        ),
        rows=tuple(body) or (Row((NOT_RUN, "", "", ""), (None,) * 12),),
        stamp=study.stamp(inputs, study.REGULARIZER),
        notes=(
            f"By {study.upper_bounds(found)}, last epoch, correctly classified points, as (9) has them; n: those of "
            "the group with a distance. p: permutation test of sigma = 0, over the points of this network, not "
            "adjusted. Change: |sigma| less that of the same network trained alike with alpha = 0. RB at tau: "
            "RB(P, tau), which (9) penalises, at the penalty's own threshold, without a penalty at that of the "
            "settings. Largest RB: the greatest gap over all thresholds, which is large by chance where n is small.",
            f"Tau as set is {units or 'as configured'}; distances in the table are in pixels. Read a smaller |sigma| "
            f"beside accuracy: {HELPED!r} only where accuracy fell by no more than its standard error (of the test "
            "images, alpha = 0). One training of each: how much trainings differ is not in it.",
            *study.not_run(study.audited(inputs, study.REGULARIZER)),
        ),
    )


def _penalty_row(inputs: Inputs, one: Audited, before: Audited | None) -> Row:
    """One network, beside that without the penalty (None: there is none, or this is it)."""
    line = one.table(one.bound, denominator=w.CORRECT).loc[one.penalised]
    own = float(line["sigma"])
    change = abs(own) - abs(sigma(before, one.penalised)) if before else math.nan
    group = _group(inputs, one)
    level = group.partition.levels.index(one.penalised[1])
    inside, outside = (group.lengths.length[side & group.lengths.counts] for side in group.partition.element(level))
    tau = threshold(inputs, one)
    at_tau = float(robustness_bias(group.lengths, group.partition, level, np.array([tau]))[0])
    if not len(inside) or not outside.any():
        said = "no distance outside the group" if len(inside) else "no member with a distance"
    elif one.alpha:
        fell = math.nan if before is None else before.accuracy - one.accuracy
        said = reading(change, fell, math.nan if before is None else _error(before))
    else:
        said = ""
    cells: tuple[Cell, ...] = (
        one.tau if one.alpha else None,
        tau if one.alpha else None,
        one.alpha,
        100 * one.accuracy,
        len(inside),
        own,
        p_value(float(line["sigma_p"])),
        change if one.alpha else None,
        at_tau if math.isfinite(tau) else None,
        bias(inside, outside),
        one.overall(one.bound, "median_distance"),
        said,
    )
    labels = (w.dataset_label(one.dataset), w.NETWORKS[one.network], w.plainly(one.penalised[1]))
    return Row((*labels, one.form if one.alpha else DASH), cells)


def threshold(inputs: Inputs, one: Audited) -> float:
    """The penalty's tau in pixels; NaN where the channels are normalised by different numbers: there is no one length.

    A change of length r in pixels is r / std long in normalised units.
    """
    if one.method["scale"] == "pixels":
        return one.tau
    std = inputs.datasets[one.data].std
    return one.tau * std[0] if len(set(std)) == 1 else math.nan


def reading(change: float, fell: float, error: float) -> str:
    """In words: how |sigma| changed and whether accuracy, which ``fell`` by so much, kept within its standard error.

    NaN: there is no sigma or no network without the penalty.
    """
    if not (math.isfinite(change) and math.isfinite(fell)):
        return NOTHING_BESIDE
    if change >= 0:
        return "|sigma| no smaller"
    return HELPED if fell <= error else "|sigma| smaller, accuracy lower"


def _error(before: Audited) -> float:
    """The standard error of the accuracy without the penalty, on all test images."""
    return math.sqrt(before.accuracy * (1 - before.accuracy) / before.images)


def sigma(one: Audited, group: tuple[str, str]) -> float:
    """sigma of a group under one network, by its upper bound, of correctly classified points."""
    return float(one.sigmas(one.bound, denominator=w.CORRECT)[group])


def bias(inside: Array, outside: Array) -> float:
    """max over tau of RB(P, tau) of lengths in the group and outside: the Kolmogorov-Smirnov distance of both."""
    return float(ks_2samp(inside, outside).statistic) if len(inside) and len(outside) else math.nan


@registry.figure(
    "figure_17",
    "Distances of a class and of all others for a Deep CNN on CIFAR-10, trained without the penalty on robustness "
    "bias and with it. The published figure has such a pair for each of the ten classes; here for those that were "
    "penalised in this run. It does not say which weight and threshold it has.",
    dataset=w.CIFAR10,
    network="deep_cnn",
)
@registry.figure("figure_18", "The same for ResNet50.", dataset=w.CIFAR10, network="resnet50")
@registry.figure("figure_19", "The same for VGG19.", dataset=w.CIFAR10, network="vgg19")
@registry.figure(
    "figure_digits_regularizer",
    "What Figures 17 to 19 show, for the handwritten digits, with several weights of the penalty.",
    place=4,
    dataset=w.DIGITS,
    network="utk_classifier",
)
def classes(inputs: Inputs, dataset: str, network: str) -> Picture:
    """The penalised group beside all others, one panel for each group and weight."""
    title = f"The penalty on {w.dataset_label(dataset)}, {w.NETWORKS[network]}."
    sets = by_weight(penalised(inputs, dataset), network)
    if not sets:
        return nothing(inputs, study.audited(inputs, study.REGULARIZER, dataset, network), title)
    panels = [one for several in sets.values() for one in several]
    weights = max(map(len, sets.values()))
    across = weights * max(1, min(ACROSS // weights, len(sets)))
    down = -(-len(panels) // across)
    figure, grid = new_panels(PANEL * down + 0.6, down, across, sharey=True)
    groups = [_group(inputs, one) for one in panels]
    for axes, one, group in zip(grid.flat, panels, groups, strict=False):
        # Panels of one group share their axis: that is what the penalty is to change.
        same = [other for p, other in zip(panels, groups, strict=True) if p.penalised == one.penalised]
        tau, level = curves.budgets(same), group.partition.levels.index(one.penalised[1])
        curves.empty(axes, group, level)
        inside, outside = group.curves(level, tau)
        axes.step(tau, inside, where="post", color=INSIDE, label="the group")
        axes.step(tau, outside, where="post", color=OUTSIDE, linestyle=(0, (4, 1.2)), label="all others")
        curves.finish(axes, tau)
        axes.set_title(_title(one), fontsize=7.5)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel(r"$\widehat{I}_P(\tau)$")
    for axes in grid.flat[max(0, len(panels) - across) : len(panels)]:
        axes.set_xlabel(curves.ABSCISSA)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    seen = "Two falling curves in each panel, the penalised group and all others"
    return _stamped(figure, title, inputs, dataset, panels, seen)


@registry.figure(
    "figure_20",
    "Distances by race in UTKFace for the UTK Classifier, trained without the penalty and with it, for one race. The "
    "published figure does not say which races its penalty is for.",
    network="utk_classifier",
)
@registry.figure("figure_21", "The same for ResNet50.", network="resnet50")
@registry.figure("figure_22", "The same for VGG19.", network="vgg19")
def races(inputs: Inputs, network: str) -> Picture:
    """All races, without the penalty on the left and with it on the right."""
    title = f"The penalty on UTKFace by race, {w.NETWORKS[network]}."
    sets = by_weight(penalised(inputs, w.UTKFACE), network)
    panels = next((several for (partition, _), several in sets.items() if partition == w.RACE), [])
    if not panels:
        return nothing(inputs, study.audited(inputs, study.REGULARIZER, w.UTKFACE, network), title)
    figure, (grid,) = new_panels(2.5, 1, len(panels), sharey=True)
    groups = [_group(inputs, one) for one in panels]
    for axes, one, group in zip(grid, panels, groups, strict=True):
        curves.draw_levels(axes, group, curves.budgets(groups))
        axes.set_title(_title(one), fontsize=7.5)
    finish(figure, grid, curves.ABSCISSA, r"$\widehat{I}_P(\tau)$", columns=len(groups[0].partition))
    seen = "Falling curves in each panel, one for each race"
    return _stamped(figure, title, inputs, w.UTKFACE, panels, seen)


def _group(inputs: Inputs, one: Audited) -> Group:
    return curves.group(inputs, one, one.bound, one.penalised[0], w.CORRECT)


def _title(one: Audited) -> str:
    penalty = rf"$\alpha$ = {plain(one.alpha)}" if one.alpha else "no penalty"
    return rf"{w.plainly(one.penalised[1])}, {penalty}: $\sigma$ = {number(sigma(one, one.penalised), 2)}"


def _stamped(figure: Figure, title: str, inputs: Inputs, dataset: str, panels: Sequence[Audited], seen: str) -> Picture:
    last = panels[-1]
    return Picture(
        figure,
        title,
        study.stamp(inputs, study.REGULARIZER, [dataset]),
        f"{seen}: the share of correctly classified points further than a budget from the boundary, without the "
        "penalty and with it.",
        notes=(
            f"{study.upper_bounds([last])}; correctly classified points alone, as in (9); sigma is the "
            f"penalised group's. Penalty: threshold {plain(last.tau)} {UNITS[last.method['scale']]}, distance by "
            f"{last.form}. The network without a penalty is trained likewise. One training of each: how much "
            "trainings differ is not in it.",
        ),
    )
