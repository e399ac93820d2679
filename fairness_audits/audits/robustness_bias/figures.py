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
"""Longer names are truncated."""


def curves(bias: RobustnessBias, axis: str, stamp: Sequence[str]) -> Figure:
    """Draw all partitions for one attack and the correctly classified points; ``stamp`` are the lines at its foot.

    Draw and save the figure within :func:`fairness_audits.results.style.paper`.
    """
    every = [one for one in bias.levels if one.denominator == "correct"]
    drawn = new_figure(2.75 * len(every))
    lengths = every[0].lengths.length
    known = lengths[lengths > 0]
    farthest = float(np.quantile(known, NEARLY_ALL)) if len(known) else 1.0
    # The axis ends near the largest length, or at the requested budget if this is smaller.
    tau = np.linspace(0, np.fmin(farthest, bias.budget), GRID)
    for number, levels in enumerate(every):
        axes = drawn.add_subplot(len(every), 1, number + 1)
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
    order, curves = np.argsort(np.nan_to_num(levels.sigma), kind="stable"), levels.curves(tau)
    for place, level in enumerate(order):
        name, curve = levels.partition.levels[level], curves[level]
        if len(order) > MOST_NAMED:
            axes.plot(tau, curve, color=FAINT, linewidth=0.4, alpha=0.6)
            continue
        color, line = line_style(place)
        n, sigma = levels.n[level], levels.sigma[level]
        sigma_text = "" if np.isnan(sigma) else f", $\\sigma$ = {sigma:+.2f}".replace("-", "\u2212")
        label = f"{label_text(name, LETTERS)} ({n:,}{sigma_text})"
        axes.plot(tau, curve, color=color, linestyle=line, label=label, drawstyle="steps-post")
    axes.set_xlim(0, tau[-1])
    axes.set_ylim(0, 1.02)
    if len(order) <= MOST_NAMED:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), labelspacing=0.25, handlelength=2.2)
