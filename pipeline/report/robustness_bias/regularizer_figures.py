"""Figures 17 to 22 of Nanda et al. (2021): distances with and without the penalty on robustness bias."""

from __future__ import annotations

from matplotlib.axes import Axes

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import number, plain
from pipeline.report.picture import Picture
from pipeline.report.robustness_bias import curves, regularizer, study, used
from pipeline.report.robustness_bias.curves import Group
from pipeline.report.robustness_bias.distance_figures import nothing
from pipeline.report.robustness_bias.regularizer import Penalised
from pipeline.report.style import finish, new_figure

ACROSS = 4
PANEL = 1.35
INSIDE, OUTSIDE = "#D55E00", "#0072B2"


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
    title = f"The penalty on {w.dataset_label(dataset)}, {w.network_label(network)}."
    sets = regularizer.by_weight(regularizer.penalised(inputs, dataset), network)
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
    title = f"The penalty on UTKFace by race, {w.network_label(network)}."
    sets = regularizer.by_weight(regularizer.penalised(inputs, w.UTKFACE), network)
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
    return Picture.stamped(
        figure,
        title,
        used.stamp(inputs, study.REGULARIZER, [dataset]),
        f"{seen}: the share of correctly classified points further than a budget from the boundary, without the "
        "penalty and with it.",
        notes=(
            f"{study.upper_bounds([first.audited])}; correctly classified points alone, as in (9); sigma is the "
            f"penalised group's. Penalty: threshold {plain(first.tau)} {regularizer.unit(first)}, distance by "
            f"{first.form}. The network without a penalty is trained likewise. One training of each: how much "
            "trainings differ is not in it.",
        ),
    )
