"""The curves I_P(tau): drawn as the steps that they are, of the points that were attacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from pipeline.audits.robustness_bias.measures import Lengths, Partition, counted, survival
from pipeline.report import words as w
from pipeline.report.robustness_bias.study import TOO_FEW, Points
from pipeline.report.style import FAINT, INK, WARNING
from pipeline.types import Array

GRID = 400
"""Budgets at which a curve is drawn where it has more corners than these: its steps are then finer than its line."""
NEARLY_ALL = 0.995
"""Curves are drawn up to this quantile of the distances: one far point would leave the others a corner."""
MEAN = "#C0392B"
ABSCISSA = rf"$\tau$ ({w.UNITS})"


@dataclass(frozen=True)
class Group:
    """The m attacked points of one partition: their lengths, and the level of each."""

    lengths: Lengths
    partition: Partition

    def few(self, level: int) -> bool:
        """Whether too few points of a level count for a difference to be seen."""
        own = self.lengths.counts & self.partition.element(level)[0]
        return int(own.sum()) < TOO_FEW

    def curve(self, level: int, tau: Array) -> Array:
        """I_P (t,) at each tau (t,); NaN for a level without points."""
        return survival(self.lengths, self.partition.element(level)[0], tau)

    def others(self, level: int, tau: Array) -> Array:
        """The same of all points of other levels."""
        return survival(self.lengths, self.partition.element(level)[1], tau)

    def mean(self, tau: Array) -> Array:
        """The mean of the levels' curves (t,)."""
        curves = np.array([self.curve(level, tau) for level in range(len(self.partition))])
        return np.asarray(curves[np.isfinite(curves).all(axis=1)].mean(axis=0))


def group(points: Points, attack: str, partition: str, denominator: str = w.PAPER) -> Group:
    """The attacked points of a network, for one distance and one partition."""
    tried = points.tried[attack]
    lengths = counted(points.distance[attack][tried], points.correct[tried], denominator)
    return Group(lengths, Partition(partition, points.levels[partition], points.codes[partition][tried]))


def budgets(groups: Sequence[Group]) -> Array:
    """From 0 to nearly the largest length of any of the groups: every length up to it, where they are at most ``GRID``.

    Between these no curve changes; of more lengths ``GRID`` values in equal steps.
    """
    lengths = np.concatenate([one.lengths.length[one.lengths.length > 0] for one in groups] or [np.zeros(0)])
    end = float(np.quantile(lengths, NEARLY_ALL)) if len(lengths) else 1.0
    corners = np.unique(np.concatenate([[0.0], lengths[lengths < end], [end]]))
    return corners if len(corners) <= GRID else np.linspace(0, end, GRID)


def line(axes: Axes, tau: Array, values: Array, **style: Any) -> None:
    """A function that keeps each of its ``values`` (t,) from ``tau`` (t,) up to the next."""
    axes.plot(tau, values, drawstyle="steps-post", **style)


def empty(axes: Axes, one: Group, level: int | None = None) -> bool:
    """Whether no point (of a level, or at all) has a length above 0; the panel then says so and stays as it is."""
    found = one.lengths.length > 0
    if (found if level is None else found & one.partition.element(level)[0]).any():
        return False
    text = "no distance found" + ("" if level is None else " in the group")
    # On white and to the right, where the curves of others are low.
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axes.text(
        0.97, 0.65, text, ha="right", va="center", transform=axes.transAxes, fontsize=7, color=WARNING, bbox=behind
    )
    return True


def draw_levels(axes: Axes, one: Group, tau: Array, labels: bool = True) -> None:
    """One line for each level, all distinct, and a legend of them."""
    for level, name in enumerate(one.partition.levels):
        color, dashes = w.line_style(level)
        label = w.plainly(name) if labels else None
        line(axes, tau, one.curve(level, tau), color=color, linestyle=dashes, linewidth=1.0, label=label)
    finish(axes, tau)


def draw_crowd(axes: Axes, one: Group, tau: Array) -> None:
    """One thin blue line for each level, and their mean in red."""
    many = len(one.partition.levels) > 20
    for level in range(len(one.partition.levels)):
        width, alpha = (0.4, 0.35) if many else (0.7, 0.7)
        line(axes, tau, one.curve(level, tau), color="#0072B2", linewidth=width, alpha=alpha)
    line(axes, tau, one.mean(tau), color=MEAN, linewidth=1.5, linestyle=(0, (4, 1.2)))
    finish(axes, tau)


def finish(axes: Axes, tau: Array) -> None:
    """Limits and ticks of a panel of curves."""
    axes.set_xlim(0, tau[-1])
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.5, 1])


def say(axes: Axes, text: str, warn: bool = True) -> None:
    """A panel without numbers says why."""
    axes.set_axis_off()
    style: Any = {"ha": "center", "va": "center", "transform": axes.transAxes, "fontsize": 7.5, "wrap": True}
    axes.text(0.5, 0.5, text, color=WARNING if warn else FAINT, **style)


def letters(axes: Axes, name: str) -> None:
    """The name of a panel inside its upper right corner."""
    axes.text(0.98, 0.97, name, ha="right", va="top", transform=axes.transAxes, fontsize=7.5, color=INK)
