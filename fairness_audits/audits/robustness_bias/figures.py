"""Figure of a robustness audit: the curves I_P(tau) of the groups, one panel for each partition."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairness_audits.audits.robustness_bias.core import Levels, RobustnessBias
from fairness_audits.results.markup import label_text
from fairness_audits.results.style import FAINT, line_style, new_figure, panel_letter, print_stamp
from fairness_audits.values import Array

GRID = 600
NEARLY_ALL = 0.995
"""Curves end at this quantile of the distances, because a single far image would squeeze all others."""
MOST_NAMED = 20
"""Largest number of levels with names. Partitions with more levels have thin lines without names."""
LETTERS = 22
"""Number of letters in a line of a name."""
LEAST, HEADS, LINE = 2.75, 0.9, 0.165
"""Least height of a panel in inches, height of its title and axis, and of a line of the legend."""


def curves(bias: RobustnessBias, axis: str, stamp: Sequence[str]) -> Figure:
    """Draw all partitions for one attack and the correctly classified points; ``stamp`` are the lines at its foot.

    Draw and save the figure within :func:`fairness_audits.results.style.paper`.
    """
    every = [one for one in bias.levels if one.denominator == "correct"]
    heights = [max(LEAST, HEADS + LINE * sum(name.count("\n") + 1 for name in _names(one))) for one in every]
    drawn = new_figure(sum(heights))
    panels = drawn.subplots(len(every), 1, squeeze=False, height_ratios=heights)
    lengths = every[0].lengths.length
    known = lengths[lengths > 0]
    farthest = float(np.quantile(known, NEARLY_ALL)) if len(known) else 1.0
    # The axis ends near the largest length, or at the requested budget if this is smaller.
    tau = np.linspace(0, np.fmin(farthest, bias.budget), GRID)
    for number, levels in enumerate(every):
        axes = panels[number, 0]
        _panel(axes, levels, tau)
        axes.set_ylabel("$I_P(\\tau)$: share with distance > $\\tau$")
        axes.set_xlabel(f"$\\tau$ ({axis})")
        axes.set_title(label_text(levels.partition.name, LETTERS))
        if len(every) > 1:
            panel_letter(axes, chr(ord("a") + number % 26))
    print_stamp(drawn, stamp, emphatic=False)
    return drawn


def _panel(axes: Axes, levels: Levels, tau: Array) -> None:
    """Draw one curve for each level; the legend starts with the level closest to the boundary."""
    names, curves = _names(levels), levels.curves(tau)
    order = np.argsort(np.nan_to_num(levels.sigma), kind="stable")
    for place, level in enumerate(order):
        curve = curves[level]
        if len(order) > MOST_NAMED:
            axes.plot(tau, curve, color=FAINT, linewidth=0.4, alpha=0.6)
            continue
        color, line = line_style(place)
        axes.plot(tau, curve, color=color, linestyle=line, label=names[level], drawstyle="steps-post")
    axes.set_xlim(0, tau[-1])
    axes.set_ylim(0, 1.02)
    if len(order) <= MOST_NAMED:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), labelspacing=0.25, handlelength=2.2)


def _names(levels: Levels) -> list[str]:
    """Return the entries of the legend: each level with its number of points and sigma; none for too many levels."""
    if len(levels.partition) > MOST_NAMED:
        return []
    found = []
    for name, n, sigma in zip(levels.partition.levels, levels.n, levels.sigma, strict=True):
        told = "" if np.isnan(sigma) else f", $\\sigma$ = {sigma:+.2f}".replace("-", "\u2212")
        found.append(f"{label_text(name, LETTERS)} ({n:,}{told})")
    return found
