"""Figures 4 to 6 of Nanda et al. (2021), distances by group, and the accuracy of each group during training.

The curves I_P(tau) are drawn as step functions of the attacked points.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fairness_audits.audits.robustness_bias.measures import Lengths, Partition, counted, survival
from fairness_audits.results.formats import number
from fairness_audits.results.style import PAGE_WIDTH, line_style, new_figure, panel_letter, step_band
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.estimators import LEVEL, wilson_band
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.stamp import Picture, say
from pipeline.training.sgd_config import accuracy_curve

GRID = 400
"""Number of budgets per curve. Their spacing is finer than the line width."""
NEARLY_ALL = 0.995
"""Quantile of the distances at which the axis ends. A single outlier would compress all other points."""
ACCURACY, ACCURACIES = Normalize(0, 1), colormaps["viridis"]
"""Colours of accuracies, brighter for higher ones. They are safe for colour-blind readers."""
MEAN: Any = {"color": "#C0392B", "linestyle": (0, (4, 1.2))}
ONE_OF_MANY = "#0072B2"
ABSCISSA = rf"$\tau$ ({w.UNITS})"
BANDS = f"Bands: Wilson's pointwise {100 * LEVEL:g} % interval of each share over the test images."
Pair = tuple[str, str | None]
"""A data set and one of its partitions; None means the partition into classes."""


@dataclass(frozen=True)
class Group:
    """The m attacked points of one partition: their lengths and levels."""

    lengths: Lengths
    partition: Partition

    def curves(self, level: int, tau: Array) -> tuple[Array, Array]:
        """Return I_P of a level and of all other levels together, (t,) each, at tau (t,); NaN without points."""
        inside, outside = self.partition.element(level)
        return survival(self.lengths, inside, tau), survival(self.lengths, outside, tau)

    def bands(self, level: int, tau: Array) -> tuple[Array, Array]:
        """Return Wilson's 95 % intervals (2, t) of both curves at each tau (t,)."""
        sizes = [int((member & self.lengths.counts).sum()) for member in self.partition.element(level)]
        inside, outside = map(wilson_band, self.curves(level, tau), sizes)
        return inside, outside


def group(one: Audited, attack: str, partition: str | None = None, denominator: str = w.PAPER) -> Group:
    """Return the attacked points of a network for one distance and one partition, by default into classes."""
    points = one.points
    tried = points.tried[attack]
    lengths = counted(points.distance[attack][tried], points.correct[tried], denominator)
    return Group(lengths, points.parted(partition or next(iter(points.partitions)), tried))


def budgets(groups: Sequence[Group]) -> Array:
    """Return ``GRID`` budgets from 0 to nearly the largest length of the groups."""
    lengths = np.concatenate([one.lengths.length[one.lengths.length > 0] for one in groups])
    return np.linspace(0, float(np.quantile(lengths, NEARLY_ALL)) if len(lengths) else 1.0, GRID)


def draw_levels(axes: Axes, one: Group, tau: Array, banded: Collection[str] = (), suffix: str = "") -> None:
    """Draw a distinct line per level, with labels for a legend, and the intervals of some levels as bands.

    A ``suffix`` is added to the names of the levels with a band, whose lines are then thick.
    """
    for level, name in enumerate(one.partition.levels):
        (color, dashes), thick = line_style(level), name in banded
        label = w.plainly(name) + suffix * thick
        look: Any = {"color": color, "linestyle": dashes, "linewidth": 1.6 if thick and suffix else 1.0, "label": label}
        if thick:
            step_band(axes, tau, one.bands(level, tau)[0], color)
        axes.step(tau, one.curves(level, tau)[0], where="post", **look)
    finish(axes, tau)


def draw_crowd(axes: Axes, one: Group, tau: Array) -> None:
    """Draw a thin line per level, and their mean."""
    curves = np.array([one.curves(level, tau)[0] for level in range(len(one.partition))])
    width, alpha = (0.4, 0.35) if len(curves) > 20 else (0.7, 0.7)
    for curve in curves:
        axes.step(tau, curve, where="post", color=ONE_OF_MANY, linewidth=width, alpha=alpha)
    axes.step(tau, curves[np.isfinite(curves).all(axis=1)].mean(axis=0), where="post", linewidth=1.5, **MEAN)
    finish(axes, tau)


def finish(axes: Axes, tau: Array) -> None:
    """Set the limits and ticks of a panel of curves."""
    axes.set(xlim=(0, tau[-1]), ylim=(0, 1.02), yticks=[0, 0.5, 1])


def nothing(
    inputs: Inputs, found: Sequence[Audited], title: str, why: str = "", attacks: Sequence[str] = ()
) -> Picture:
    """Return a figure without a drawing."""
    why = why or study.why_nothing(inputs, found, attacks)
    blocks, datasets = ({getattr(one, name) for one in found} for name in ("block", "dataset"))
    stamp = stamps.stamp(inputs, sorted(blocks), sorted(datasets))
    return Picture.nothing(title, stamp, why)


EXACT = tuple((dataset, None) for dataset in w.IMAGES)
SENSITIVE = ((w.ADIENCE, w.GENDER), (w.UTKFACE, w.GENDER), (w.UTKFACE, w.RACE))


@artefact(
    "Share of each class whose exact distance to the boundary of a multinomial logistic regression exceeds a budget, "
    "for each data set. Each thin line is a class. The dashed line is their mean.",
    "figure_4",
    pairs=EXACT,
    title="Robustness of each class under logistic regression.",
)
@artefact(
    "As Figure 4, by sensitive attribute, for the data sets that have one.",
    "figure_5",
    pairs=SENSITIVE,
    title="Robustness by sensitive attribute under logistic regression.",
)
def exact(inputs: Inputs, pairs: Sequence[Pair], title: str) -> Picture:
    """Draw the curves of every level by the exact distance, one panel per data set and partition."""
    every = [one for one in study.audited(inputs, study.LINEAR) if one.dataset in dict(pairs)]
    shown = parted(every, pairs)
    if not shown:
        return nothing(inputs, every, title)
    figure, grid = panels(len(shown))
    for axes, (one, partition) in zip(grid, shown, strict=True):
        axes.set_title(place(one, partition))
        levels = group(one, w.EXACT, partition)
        if partition is None:
            draw_crowd(axes, levels, budgets([levels]))
        else:
            draw_levels(axes, levels, budgets([levels]), levels.partition.levels)
            axes.legend(loc="upper right", handlelength=2.0)
    grid[0].set_ylabel(r"$\widehat{I}_P(\tau)$")
    if pairs is EXACT:
        handles = [Line2D([], [], color=ONE_OF_MANY, linewidth=0.9), Line2D([], [], **MEAN)]
        figure.legend(handles, ["one class", "mean of the classes"], loc="outside upper center", ncols=2)
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.LINEAR, [one.dataset for one in every]),
        "For each data set and partition, a falling curve for each group: the share of its points that are farther "
        "than a budget from the boundary.",
        notes=(
            "Shares are over all members of a group. The axes cover nearly all distances. Images of unknown gender or "
            "race are left out.",
            *(() if pairs is EXACT else (BANDS,)),
            *study.not_run(every),
        ),
    )


def parted(found: Sequence[Audited], pairs: Sequence[Pair]) -> list[tuple[Audited, str | None]]:
    """Return these data sets and partitions with the network that has learned; data sets without one are omitted."""
    learned = {one.dataset: one for one in study.run(found)}
    return [(learned[dataset], partition) for dataset, partition in pairs if dataset in learned]


def place(one: Audited, partition: str | None) -> str:
    """Format a panel title: ``UTKFace, by race``."""
    return w.dataset_label(one.dataset) + (f", by {partition}" if partition else "")


PANEL = 1.12
ACROSS, ROW = 3, 1.65
"""Number of panels in a row, and the height of a row in inches."""
TRAINED = (
    *((dataset, None) for dataset in (w.CIFAR10, w.CIFAR100, w.SUPER)),
    *((w.UTKFACE, partition) for partition in (None, w.GENDER, w.RACE)),
    *((w.ADIENCE, partition) for partition in (None, w.GENDER)),
    (w.DIGITS, None),
)
BANDED = 6
"""Largest number of curves in a panel whose bands can be told apart."""
FEW = 10
"""Largest number of levels that are all named."""


@artefact("Test accuracy of each group after each epoch.")
def figure_training(inputs: Inputs) -> Picture:
    title = "Test accuracy by group during training."
    every = [one for one in study.audited(inputs, study.NETWORKS) if one.network == w.OWN[one.dataset]]
    shown = parted(every, TRAINED)
    if not shown:
        return nothing(inputs, every, title)
    figure, grid = panels(len(shown), "epoch")
    for axes, (one, partition) in zip(grid, shown, strict=True):
        history, name = inputs.classifiers[one.model].history, partition or next(iter(one.levels))
        drawn = {w.plainly(level): history[accuracy_curve(name, level)][-1] for level in one.levels[name]}
        axes.set_title(place(one, partition), fontsize=8)
        draw_training(axes, history["step"], history[accuracy_curve()][-1], drawn)
    bar = figure.colorbar(ScalarMappable(ACCURACY, ACCURACIES), ax=grid, fraction=0.02, pad=0.01, aspect=50)
    bar.set_label("test accuracy")
    text = "; ".join(f"{w.dataset_label(one.dataset)}: {w.NETWORKS[one.network]}" for one in study.run(every))
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.NETWORKS, sorted({one.dataset for one, _ in shown})),
        "Heat maps of test accuracy, one for each data set and partition, with a row for all test points and for each "
        "group, and a column for each epoch. Later epochs are brighter.",
        notes=(
            "Numbers: accuracy after the last epoch.",
            f"Networks: {text}. If a data set has more than {FEW} classes, they are sorted by their accuracy after the "
            "last epoch, and the figure names the first and the last.",
            *study.not_run(every),
        ),
    )


def draw_training(axes: Axes, epoch: Array, all_points: Array, drawn: Mapping[str, Array]) -> None:
    """Draw a row of accuracies (t,) over the epochs (t,) for all points and, below it, for each level."""
    names = list(drawn)
    if len(names) > FEW:
        names.sort(key=lambda name: -drawn[name][-1])
    # The row of all points is as high as a tenth of the others, however many there are.
    height = max(1.0, len(names) / FEW)
    look: Any = {"cmap": ACCURACIES, "norm": ACCURACY, "rasterized": False}
    step = epoch[-1] - epoch[-2] if len(epoch) > 1 else 1
    edges = np.append(epoch, epoch[-1] + step) - step / 2
    axes.pcolormesh(edges, [-1.3 * height, -0.3 * height], all_points[None], **look)
    axes.pcolormesh(edges, np.arange(len(names) + 1), np.array([drawn[name] for name in names]), **look)
    axes.invert_yaxis()
    named = range(len(names)) if len(names) <= FEW else (0, len(names) - 1)
    places = [-0.8 * height, *(place + 0.5 for place in named)]
    last = [all_points[-1], *(drawn[names[place]][-1] for place in named)]
    axes.set_yticks(places, ["all", *(names[place] for place in named)], fontsize=5.5)
    for place, value in zip(places, last, strict=True):
        axes.annotate(
            number(value, 2), (1, place), (2, 0), ("axes fraction", "data"), "offset points", va="center", fontsize=5.5
        )
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.spines[:].set_visible(False)


def panels(count: int, abscissa: str = ABSCISSA) -> tuple[Figure, list[Axes]]:
    """Make a figure with ``count`` lettered panels, up to three in a row."""
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


@artefact(
    "Robustness by race in UTKFace, for each network and each kind of distance.",
    "figure_6",
    dataset=w.UTKFACE,
    partition=w.RACE,
    title="UTKFace partitioned by race.",
)
@artefact(
    "As Figure 6, for the handwritten digits by class.",
    "figure_digits_curves",
    dataset=w.DIGITS,
    partition=None,
    title="The digits partitioned by class.",
)
def grid(inputs: Inputs, dataset: str, partition: str | None, title: str) -> Picture:
    """Draw the curves of every level of a partition (None: the classes), one row per network."""
    found = study.audited(inputs, study.NETWORKS, dataset)
    shown = study.run(found)
    if not shown:
        return nothing(inputs, found, title)
    banded = len(group(shown[0], shown[0].bound, partition).partition) <= BANDED
    figure = new_figure(PANEL * len(shown) + 0.5)
    grid = figure.subplots(len(shown), len(w.ESTIMATES), squeeze=False, sharey=True)
    for r, one in enumerate(shown):
        blind = one.blind.get(one.epochs[-1], "")
        measured = {
            attack: group(one, attack, partition)
            for attack in w.ESTIMATES
            if attack in one.attacks and not (blind and attack == w.SMOOTHING)
        }
        # Attacks bound the same distance, so their panels have the same axis.
        attacked = budgets([levels for attack, levels in measured.items() if attack != w.SMOOTHING])
        for axes, attack in zip(grid[r], w.ESTIMATES, strict=True):
            if r == 0:
                axes.set_title(w.DISTANCES[attack].label)
            if attack not in measured:
                say(axes, fill(blind, 22) if blind and attack == w.SMOOTHING else "not measured")
                continue
            levels = measured[attack]
            tau = budgets([levels]) if attack == w.SMOOTHING else attacked
            draw_levels(axes, levels, tau, levels.partition.levels if banded else ())
        grid[r, 0].set_ylabel(w.NETWORKS[one.network] + "\n" + r"$\widehat{I}_P(\tau)$")
    for column in grid.T:
        for axes in [axes for axes in column if axes.axison][-1:]:
            axes.set_xlabel(ABSCISSA)
    handles, labels = max((axes.get_legend_handles_labels() for axes in grid.flat), key=lambda found: len(found[1]))
    columns = min(len(labels), 10)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=2.0, columnspacing=1.0)
    return Picture(
        figure,
        title,
        stamps.stamp(inputs, study.NETWORKS, [dataset]),
        "One row for each network and one column for each distance. Each panel has a falling curve for each group: the "
        "share of its points that are farther than a budget from the boundary.",
        notes=(
            "Last epoch. Shares are over all members of a group.",
            "Attacks give upper bounds of the distance. Smoothing gives lower bounds of the distance of the smoothed "
            "network. The attacks of a network have the same axis, and smoothing has its own.",
            *((BANDS,) if banded else ()),
            *study.incomplete(found, w.ESTIMATES),
            *study.not_run(found),
        ),
    )
