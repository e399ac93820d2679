"""Figures 4 to 6 of Nanda et al. (2021): distances by group; and the two measures over all budgets."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pipeline.audits.robustness_bias.measures import robustness_bias
from pipeline.methods.sgd_settings import accuracy_curve
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import curves, study, used
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.stamp import Picture
from pipeline.report.style import PAGE_WIDTH, new_figure, panel_letter
from pipeline.types import Array

SENSITIVE = ((w.ADIENCE, w.GENDER), (w.UTKFACE, w.GENDER), (w.UTKFACE, w.RACE))


@registry.figure()
def figure_4(inputs: Inputs) -> Picture:
    """The share of each class whose exact distance to the boundary of a multinomial logistic regression exceeds a
    budget, for each data set. One thin line is one class, the dashed line is their mean.
    """
    found = study.audited(inputs, study.LINEAR)
    title = "Robustness of every class under logistic regression."
    shown = study.run(found)
    if not shown:
        return nothing(inputs, found, title)
    figure, grid = panels(len(shown))
    for axes, one in zip(grid, shown, strict=True):
        axes.set_title(w.dataset_label(one.dataset))
        points = study.at_points(inputs, one)
        group = curves.group(points, w.EXACT, next(iter(points.levels)))
        curves.draw_crowd(axes, group, curves.budgets([group]))
    grid[0].set_ylabel(r"$\widehat{I}_c(\tau)$")
    handles = [
        Line2D([], [], color="#0072B2", linewidth=0.9),
        Line2D([], [], color=curves.MEAN, linestyle=(0, (4, 1.2))),
    ]
    figure.legend(handles, ["one class", "mean of the classes"], loc="outside upper center", ncols=2)
    return Picture(
        figure,
        title,
        used.stamp(inputs, study.LINEAR, distances=[w.EXACT]),
        "For each data set, one falling curve for each class: the share of its points that are further than a budget "
        "from the boundary, and the mean of these curves.",
        notes=("Shares of all members of a class; axes end where nearly all distances do.", *study.not_run(found)),
    )


@registry.figure()
def figure_5(inputs: Inputs) -> Picture:
    """The same by sensitive attribute, for the data sets that have one."""
    every = [one for one in study.audited(inputs, study.LINEAR) if one.dataset in dict(SENSITIVE)]
    found = {one.dataset: one for one in study.run(every)}
    title = "Robustness by sensitive attribute under logistic regression."
    shown = [(found[dataset], partition) for dataset, partition in SENSITIVE if dataset in found]
    if not shown:
        return nothing(inputs, every, title)
    figure, grid = panels(len(shown))
    for axes, (one, partition) in zip(grid, shown, strict=True):
        axes.set_title(f"{w.dataset_label(one.dataset)}, by {partition}")
        group = curves.group(study.at_points(inputs, one), w.EXACT, partition)
        curves.draw_levels(axes, group, curves.budgets([group]))
        axes.legend(loc="upper right", handlelength=2.0)
    grid[0].set_ylabel(r"$\widehat{I}_s(\tau)$")
    return Picture(
        figure,
        title,
        used.stamp(inputs, study.LINEAR, [one.dataset for one in every], [w.EXACT]),
        "Falling curves, one for each gender or race: the share that is further than a budget from the boundary.",
        notes=("Faces of unknown gender or race are left out.", *study.not_run(every)),
    )


COLUMNS = (w.DEEPFOOL, w.CARLINI_WAGNER, w.FMN, w.SMOOTHING)
PANEL = 1.12
ACROSS, ROW = 3, 1.65
"""Panels in a row, and the height of one, inches."""
FIRST_OF_FIGURE_6 = (w.OWN[w.UTKFACE], "resnet50", "alexnet", "vgg19", "densenet121", "squeezenet1_0")
BIAS = (
    *((dataset, None) for dataset in (w.CIFAR10, w.CIFAR100, w.SUPER)),
    *((w.UTKFACE, partition) for partition in (None, w.GENDER, w.RACE)),
    *((w.ADIENCE, partition) for partition in (None, w.GENDER)),
    (w.DIGITS, None),
)
"""Data sets and partitions of the figure of RB; None is the partition into classes."""
FEW = 10
"""Levels that are drawn one by one."""
ROOM = 1.5
"""How far an axis goes beyond its curves, for the legend above them."""


@registry.figure(place=5)
def figure_bias(inputs: Inputs) -> Picture:
    """RB(P, τ) of equation 2: how far the share of a group that is safe from a budget is from that of all other points.
    Its areas, with a sign, are what sigma sums up.
    """
    title = "Robustness bias against the budget."
    every, shown = own_networks(inputs)
    if not shown:
        return nothing(inputs, every, title)
    figure, grid = panels(len(shown))
    for axes, (one, partition) in zip(grid, shown, strict=True):
        points = study.at_points(inputs, one)
        group = curves.group(points, study.upper_bound(one), partition or next(iter(points.levels)), w.CORRECT)
        tau = curves.budgets([group])
        drawn = {
            level: robustness_bias(group.lengths, group.partition, level, tau)
            for level in range(len(group.partition))
            if not group.few(level)
        }
        # Of two levels each is the other's complement: one curve.
        of_two = dict(list(drawn.items())[:1]) if len(group.partition) == 2 else drawn
        by_level(axes, one, partition, tau, of_two, group.partition.levels, drawstyle="steps-post")
        curves.empty(axes, group)
        axes.set_xlim(0, tau[-1])
    grid[0].set_ylabel(r"$RB(P, \tau)$")
    datasets = sorted({one.dataset for one, _ in shown})
    return Picture(
        figure,
        title,
        used.stamp(inputs, study.NETWORKS, datasets, sorted({study.upper_bound(one) for one, _ in shown})),
        "For each data set and partition, one curve for each group over the budget: how far the group's share of "
        "safe points is from that of all other points.",
        notes=(
            f"By {study.upper_bounds(one for one, _ in shown)}; correctly classified points of {OWN_NETWORKS} "
            f"({told(every)}) at its last epoch. {MANY}; groups of fewer than {study.TOO_FEW} points are left out.",
            *study.not_run(every),
        ),
    )


@registry.figure(place=10)
def figure_training(inputs: Inputs) -> Picture:
    """How the test accuracy of each group comes about, epoch by epoch: a group that is classified worse is not yet one
    that is nearer to the boundary.
    """
    title = "Test accuracy by group during training."
    every, shown = own_networks(inputs)
    if not shown:
        return nothing(inputs, every, title)
    figure, grid = panels(len(shown), "epoch")
    for axes, (one, partition) in zip(grid, shown, strict=True):
        history, levels = inputs.classifiers[one.model].history, inputs.datasets[one.data].levels
        partition_name = partition or next(iter(levels))
        step = history["step"]
        drawn = {k: history[accuracy_curve(partition_name, name)][-1] for k, name in enumerate(levels[partition_name])}
        by_level(axes, one, partition, step, drawn, levels[partition_name], above=False, marker=".", markersize=2.5)
        axes.plot(step, history[accuracy_curve()][-1], color=curves.MEAN, linestyle=(0, (4, 1.2)), linewidth=1.3)
        axes.set_ylim(0, 1)
    grid[0].set_ylabel("test accuracy")
    figure.legend([Line2D([], [], color=curves.MEAN, linestyle=(0, (4, 1.2)))], ["all"], loc="outside upper center")
    return Picture(
        figure,
        title,
        used.of_training(used.stamp(inputs, study.NETWORKS, sorted({one.dataset for one, _ in shown}))),
        "For each data set and partition, one rising curve of test accuracy for each group over the epochs, and one of "
        "all test points.",
        notes=(f"After each epoch of {OWN_NETWORKS} ({told(every)}). {MANY}.", *study.not_run(every)),
    )


OWN_NETWORKS = "each data set's own network"
MANY = f"Where there are more than {FEW} classes, one thin line for each"


def own_networks(inputs: Inputs) -> tuple[list[Audited], list[tuple[Audited, str | None]]]:
    """Each data set's own network; and those that have learned, once for each partition."""
    every = [one for one in study.audited(inputs, study.NETWORKS) if one.network == w.OWN[one.dataset]]
    found = {one.dataset: one for one in study.run(every)}
    return every, [(found[dataset], partition) for dataset, partition in BIAS if dataset in found]


def told(found: Sequence[Audited]) -> str:
    """Which data set's network is which."""
    return "; ".join(f"{w.dataset_label(one.dataset)}: {w.NETWORKS[one.network]}" for one in study.run(found))


def by_level(
    axes: Axes,
    one: Audited,
    partition: str | None,
    x: Array,
    drawn: Mapping[int, Array],
    names: Sequence[str],
    above: bool = True,
    **style: Any,
) -> None:
    """A curve (t,) over ``x`` (t,) for each level, with a legend, ``above`` them or below, where they are few."""
    label = w.dataset_label(one.dataset)
    axes.set_title(label if partition is None else f"{label}, by {partition}", fontsize=8)
    few = len(names) <= FEW
    both = " or ".join(map(w.plainly, names)) if len(names) == 2 and len(drawn) == 1 else ""
    for level, values in drawn.items():
        color, line = w.line_style(level) if few else ("#0072B2", "-")
        name = (both or w.plainly(names[level])) if few else None
        width, alpha = (0.9, 1.0) if few else (0.4, 0.5)
        axes.plot(x, values, color=color, linestyle=line, linewidth=width, alpha=alpha, label=name, **style)
    if few:
        if above:
            axes.set_ylim(0, axes.get_ylim()[1] * ROOM)
        columns = 1 + (len(names) > 5)
        axes.legend(
            fontsize=5,
            loc="upper right" if above else "lower right",
            handlelength=1.6,
            ncols=columns,
            labelspacing=0.15,
        )


def nothing(inputs: Inputs, found: Sequence[Audited], title: str, why: str = "") -> Picture:
    """A figure of which there is nothing to draw, and in one line why."""
    why = why or study.why_nothing(inputs, found)
    figure = new_figure(1.0)
    curves.say(figure.subplots(), why)
    blocks, datasets = ({getattr(one, name) for one in found} for name in ("block", "dataset"))
    stamp = used.stamp(inputs, sorted(blocks), sorted(datasets))
    return Picture(figure, title, stamp, f"No drawing: {why}", absent=why)


def panels(count: int, abscissa: str = curves.ABSCISSA) -> tuple[Figure, list[Axes]]:
    """A figure of lettered panels, up to three a row, no more of them than there is to draw."""
    down, across = -(-count // ACROSS), min(count, ACROSS)
    figure = new_figure(ROW * down + 0.6, PAGE_WIDTH * max(across, 2) / ACROSS)
    grid = list(figure.subplots(down, across, squeeze=False).ravel())
    for axes in grid[count:]:
        axes.set_axis_off()
    for letter, axes in zip("abcdefghi", grid[:count], strict=False):
        axes.set_xlabel(abscissa)
        if count > 1:
            panel_letter(axes, letter)
    return figure, grid[:count]


@registry.figure(
    "figure_6",
    "How robust the races in UTKFace are under each network, by three stand-ins for the distance to the boundary.",
    dataset=w.UTKFACE,
    partition=w.RACE,
    order=FIRST_OF_FIGURE_6,
    title="UTKFace partitioned by race.",
)
@registry.figure(
    "figure_digits_curves",
    "What Figure 6 shows, for the handwritten digits by class.",
    place=3,
    dataset=w.DIGITS,
    partition=None,
    order=(),
    title="The digits partitioned by class.",
)
def grid(inputs: Inputs, dataset: str, partition: str | None, order: Sequence[str], title: str) -> Picture:
    """Curves of every level of a partition (None: the classes), one row for each network."""
    found = study.audited(inputs, study.NETWORKS, dataset)
    shown = study.run(found)
    if not shown:
        return nothing(inputs, found, title)
    shown.sort(key=lambda one: order.index(one.network) if one.network in order else len(order))
    figure = new_figure(PANEL * len(shown) + 0.5)
    grid = figure.subplots(len(shown), len(COLUMNS), squeeze=False, sharey=True)
    for r, one in enumerate(shown):
        points = study.at_points(inputs, one)
        for c, attack in enumerate(COLUMNS):
            axes = grid[r, c]
            if attack not in points.distance:
                curves.say(axes, "not measured")
                continue
            group = curves.group(points, attack, partition or next(iter(points.levels)))
            if not curves.empty(axes, group):
                curves.draw_levels(axes, group, curves.budgets([group]))
            curves.letters(axes, w.NETWORKS[one.network])
            if r == 0:
                axes.set_title(w.DISTANCES[attack].label)
        grid[r, 0].set_ylabel(r"$\widehat{I}_P(\tau)$")
    for axes in grid[-1]:
        axes.set_xlabel(curves.ABSCISSA)
    handles, labels = max((axes.get_legend_handles_labels() for axes in grid.ravel()), key=lambda found: len(found[1]))
    figure.legend(
        handles, labels, loc="outside upper center", ncols=min(len(labels), 10), handlelength=2.0, columnspacing=1.0
    )
    return Picture(
        figure,
        title,
        used.stamp(inputs, study.NETWORKS, [dataset], COLUMNS),
        "One row for each network, one column for each distance; in each panel one falling curve for each group: the "
        "share of its points that are further than a budget from the boundary.",
        notes=(
            "Last epoch; shares of all members of a group. Attacks bound the distance from above, smoothing "
            "bounds that of the smoothed network from below; each panel has its own axis.",
        ),
    )
