"""Section 9 and Figures 17 to 22 of Nanda et al. (2021): networks trained with a penalty on robustness bias."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from pipeline.audits.robustness_bias.measures import robustness_bias
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, number, p_value, plain
from pipeline.report.robustness_bias import curves, study, used
from pipeline.report.robustness_bias.agreement import NOT_RUN
from pipeline.report.robustness_bias.curves import Group
from pipeline.report.robustness_bias.distance_figures import nothing
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.stamp import Picture
from pipeline.report.style import finish, new_figure
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.types import Array

VARIANTS = "regularizer_variants"
"""Blocks that begin so hold networks that differ in the penalty's distance, not in its weight alone."""
FORMS = {
    ("logit", False): "logit, as coded",
    ("logit", True): "logit, second order",
    ("margin", False): "margin",
    ("margin", True): "margin, second order",
}

UNITS = {"normalised": "in normalised units", "pixels": "in pixels"}
ACROSS = 4
PANEL = 1.35
INSIDE, OUTSIDE = "#D55E00", "#0072B2"
OF_DISTANCE = ("tau", "distance", "second_order", "scale")
"""Settings that have no effect where the weight is 0."""


@dataclass(frozen=True)
class Penalised:
    """A network with its penalty: weight, threshold, form of the distance, and the group that it is for."""

    audited: Audited
    alpha: float
    tau: float
    form: str
    partition: str
    level: str

    @property
    def group(self) -> tuple[str, str]:
        """The partition and the level."""
        return self.partition, self.level


def penalised(inputs: Inputs, dataset: str = "") -> list[Penalised]:
    """Every penalised network that was run, by data set, network, group (first without a penalty), form and weights.

    A network of several blocks is there once: without a penalty its form and its threshold tell no two apart.
    """
    found: list[Penalised] = []
    for one in study.run(study.audited(inputs, study.REGULARIZER, dataset)):
        method = one.method
        partition = method["penalised_partition"] or one.result.rows["partition"].loc[lambda names: names != ""].iloc[0]
        form = FORMS[method["distance"], bool(method["second_order"])]
        weights = float(method["alpha"]), float(method["tau"])
        found.append(Penalised(one, *weights, form, str(partition), str(method["penalised_level"])))
    found = _once(found)
    networks = w.networks_in(one.audited.network for one in found)
    return sorted(
        found,
        key=lambda one: (
            w.datasets_in([one.audited.dataset, *w.IMAGES]).index(one.audited.dataset),
            networks.index(one.audited.network),
            one.group,
            one.alpha > 0,
            list(FORMS.values()).index(one.form),
            one.tau,
            one.alpha,
        ),
    )


def _once(found: Sequence[Penalised]) -> list[Penalised]:
    """One of each training; of those alike the one of the block that has all weights, as curves are drawn of it."""
    kept: dict[str, Penalised] = {}
    for one in sorted(found, key=lambda one: one.audited.key.startswith(VARIANTS)):
        kept.setdefault(repr((one.audited.data, sorted(_telling(one).items()))), one)
    return list(kept.values())


def _telling(one: Penalised) -> dict[str, object]:
    """The settings that make one training another: without a penalty none of its own."""
    settings = {**one.audited.method, "penalised_partition": one.partition}
    return settings if one.alpha else {key: value for key, value in settings.items() if key not in OF_DISTANCE}


def unit(one: Penalised) -> str:
    """What tau is measured in: ``in normalised units``, as coded, or ``in pixels``."""
    return UNITS[str(one.audited.method["scale"])]


def without(one: Penalised, among: Sequence[Penalised]) -> Penalised | None:
    """The same network trained without a penalty, if there is one; of several the one for the same group."""
    same = [
        other
        for other in among
        if other.alpha == 0
        and (other.audited.dataset, other.audited.network) == (one.audited.dataset, one.audited.network)
    ]
    return next((other for other in same if other.group == one.group), same[0] if same else None)


def by_weight(found: Sequence[Penalised], network: str) -> dict[tuple[str, str], list[Penalised]]:
    """For each penalised group the networks of one architecture that differ in the weight alone, rising."""
    sets: dict[tuple[str, str], list[Penalised]] = {}
    for one in found:
        if one.audited.network == network and not one.audited.key.startswith(VARIANTS):
            sets.setdefault(one.group, []).append(one)
    return sets


HELPED, NOTHING_BESIDE = "helped", "nothing to compare with"


@registry.table(place=9)
def table_regularizer(inputs: Inputs) -> Table:
    """Accuracy and robustness bias of the penalised group, for every weight, threshold and form of the distance in the
    penalty.
    """
    found = penalised(inputs)
    body = [_penalty_row(inputs, one, without(one, found) if one.alpha else None) for one in found]
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
        stamp=used.stamp(inputs, study.REGULARIZER),
        notes=(
            f"By {study.upper_bounds(one.audited for one in found)}, last epoch, correctly classified points, as (9) "
            "has them; n: those of the group with a "
            "distance. p: permutation test of sigma = 0, over the points of this network, not adjusted. Change: "
            "|sigma| less that of the same network trained alike with alpha = 0. RB at tau: RB(P, tau), which (9) "
            "penalises, at the penalty's own threshold, without a penalty at that of the settings. Largest RB: the "
            "greatest gap over all thresholds, which is large by chance where n is small.",
            f"Tau as set is {_units(found)}; distances in the table are in pixels. Read a smaller |sigma| beside "
            f"accuracy: {HELPED!r} only where accuracy fell by no more than its standard error (of the test images, "
            "alpha = 0). One training of each: how much trainings differ is not in it.",
            *study.not_run(study.audited(inputs, study.REGULARIZER)),
        ),
    )


def _penalty_row(inputs: Inputs, one: Penalised, before: Penalised | None) -> Row:
    """One network, beside that without the penalty (None: there is none, or this is it)."""
    attack = study.upper_bound(one.audited)
    line = one.audited.table(attack, denominator=w.CORRECT).loc[one.group]
    own, accuracy = float(line["sigma"]), one.audited.accuracy
    change = abs(own) - abs(sigma(before, one.group)) if before else math.nan
    group = curves.group(study.at_points(inputs, one.audited), attack, one.partition, w.CORRECT)
    level = group.partition.levels.index(one.level)
    inside, outside = (group.lengths.length[side & group.lengths.counts] for side in group.partition.element(level))
    tau = threshold(inputs, one)
    at_tau = float(robustness_bias(group.lengths, group.partition, level, np.array([tau]))[0])
    fell = math.nan if before is None else before.audited.accuracy - accuracy
    labels = (
        w.dataset_label(one.audited.dataset),
        w.NETWORKS[one.audited.network],
        w.plainly(one.level),
        one.form if one.alpha else DASH,
    )
    cells: tuple[Cell, ...] = (
        one.tau if one.alpha else None,
        tau if one.alpha else None,
        one.alpha,
        100 * accuracy,
        len(inside),
        own,
        p_value(float(line["sigma_p"])),
        change if one.alpha else None,
        at_tau if math.isfinite(tau) else None,
        bias(inside, outside),
        one.audited.overall(attack, "median_distance"),
        _undefined(inside, outside) or (reading(change, fell, _error(inputs, before)) if one.alpha else ""),
    )
    return Row(labels, cells)


def threshold(inputs: Inputs, one: Penalised) -> float:
    """The penalty's tau in pixels; NaN where the channels are normalised by different numbers: there is no one length.

    A change of length r in pixels is r / std long in normalised units.
    """
    if one.audited.method["scale"] == "pixels":
        return one.tau
    std = inputs.datasets[one.audited.data].std
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


def _error(inputs: Inputs, before: Penalised | None) -> float:
    """The standard error of the accuracy without the penalty, on all test images."""
    if before is None:
        return math.nan
    accuracy, images = before.audited.accuracy, before.audited.images
    return math.sqrt(accuracy * (1 - accuracy) / images)


def _undefined(inside: Array, outside: Array) -> str:
    """Why there is no sigma; nothing where there is one."""
    if not len(inside):
        return "no member with a distance"
    return "" if outside.any() else "no distance outside the group"


def _units(found: Sequence[Penalised]) -> str:
    """The unit of tau: that of the penalty's distance."""
    return " or ".join(sorted({unit(one) for one in found})) or "as configured"


def sigma(one: Penalised, group: tuple[str, str]) -> float:
    """sigma of a group under one network, by its upper bound, of correctly classified points."""
    return float(one.audited.sigmas(study.upper_bound(one.audited), denominator=w.CORRECT)[group])


def bias(inside: Array, outside: Array) -> float:
    """max over tau of RB(P, tau) of lengths in the group and outside: the Kolmogorov-Smirnov distance of both."""
    from scipy.stats import ks_2samp

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
    figure = new_figure(PANEL * down + 0.6)
    grid = figure.subplots(down, across, squeeze=False, sharey=True)
    groups = [_group(inputs, one) for one in panels]
    for axes, one, group in zip(grid.ravel(), panels, groups, strict=False):
        # Panels of one group share their axis: that is what the penalty is to change.
        tau = curves.budgets([other for p, other in zip(panels, groups, strict=True) if p.group == one.group])
        level = group.partition.levels.index(one.level)
        curves.empty(axes, group, level)
        curves.line(axes, tau, group.curve(level, tau), color=INSIDE, label="the group")
        curves.line(axes, tau, group.others(level, tau), color=OUTSIDE, linestyle=(0, (4, 1.2)), label="all others")
        curves.finish(axes, tau)
        _title(axes, one)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    for row in grid:
        row[0].set_ylabel(r"$\widehat{I}_P(\tau)$")
    for axes in grid.ravel()[max(0, len(panels) - across) : len(panels)]:
        axes.set_xlabel(curves.ABSCISSA)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return _stamped(
        figure, title, inputs, dataset, panels, "Two falling curves in each panel, the penalised group and all others"
    )


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
    figure = new_figure(2.5)
    grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    groups = [_group(inputs, one) for one in panels]
    tau = curves.budgets(groups)
    for axes, one, group in zip(grid, panels, groups, strict=True):
        curves.draw_levels(axes, group, tau)
        _title(axes, one)
    finish(figure, grid, curves.ABSCISSA, r"$\widehat{I}_P(\tau)$", columns=len(groups[0].partition))
    return _stamped(figure, title, inputs, w.UTKFACE, panels, "Falling curves in each panel, one for each race")


def _group(inputs: Inputs, one: Penalised) -> Group:
    return curves.group(study.at_points(inputs, one.audited), study.upper_bound(one.audited), one.partition, w.CORRECT)


def _title(axes: Axes, one: Penalised) -> None:
    sigma = one.audited.sigmas(study.upper_bound(one.audited), denominator=w.CORRECT)[one.group]
    penalty = rf"$\alpha$ = {plain(one.alpha)}" if one.alpha else "no penalty"
    axes.set_title(rf"{w.plainly(one.level)}, {penalty}: $\sigma$ = {number(sigma, 2)}", fontsize=7.5)


def _stamped(figure, title: str, inputs: Inputs, dataset: str, panels: list[Penalised], seen: str) -> Picture:  # type: ignore[no-untyped-def]
    first = panels[-1]
    return Picture(
        figure,
        title,
        used.stamp(inputs, study.REGULARIZER, [dataset]),
        f"{seen}: the share of correctly classified points further than a budget from the boundary, without the "
        "penalty and with it.",
        notes=(
            f"{study.upper_bounds([first.audited])}; correctly classified points alone, as in (9); sigma is the "
            f"penalised group's. Penalty: threshold {plain(first.tau)} {unit(first)}, distance by "
            f"{first.form}. The network without a penalty is trained likewise. One training of each: how much "
            "trainings differ is not in it.",
        ),
    )
