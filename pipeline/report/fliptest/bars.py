"""Transparency reports as ranked bars: the largest on top, noise set apart from what stands out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pipeline.report.fliptest import words as w
from pipeline.report.fliptest.lines import MEAN, SIGN, Line
from pipeline.report.style import FAINT, INK

AXES = {MEAN: "mean of $x - G(x)$, standard deviations", SIGN: "mean of sign$(x - G(x))$"}
MIXED = "mean of $x - G(x)$, standard deviations or shares"
CATEGORIES = "Numbers are in standard deviations, 0/1 columns as they are: a difference of shares."
NOISE = "interval covers 0, or no more than the whole group shifts"


def draw(axes: Axes, lines: Sequence[Line], ranking: str, color: str, dataset: str) -> None:
    """Horizontal bars with intervals; dots are the other trials. Noise is an empty bar with a grey name."""
    if not lines:
        axes.text(0.5, 0.5, "no members", ha="center", va="center", transform=axes.transAxes, color=FAINT)
        axes.set_axis_off()
        return
    for place, line in enumerate(lines):
        look: Any = {"facecolor": color}
        if line.noise:
            look = {"facecolor": "white", "edgecolor": color, "hatch": "/////"}
        axes.barh(place, line.value, height=0.62, linewidth=0.6, alpha=0.45 if line.noise else 0.75, zorder=1, **look)
        if np.isfinite([line.low, line.high]).all():
            axes.plot([line.low, line.high], [place, place], color=INK, linewidth=1.1, solid_capstyle="butt", zorder=3)
        others = line.others[np.isfinite(line.others)]
        axes.plot(
            others, np.full(len(others), place + 0.0), linestyle="none", marker="o", markersize=2.4, zorder=4,
            markerfacecolor="white", markeredgecolor=INK, markeredgewidth=0.5,
        )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=0.6, zorder=2)
    axes.set_yticks(range(len(lines)), [w.feature_label(line.feature, dataset) for line in lines])
    for label, line in zip(axes.get_yticklabels(), lines, strict=True):
        label.set_color(FAINT if line.noise else INK)
        label.set_fontstyle("italic" if line.noise else "normal")
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if ranking == SIGN:
        axes.set_xlim(-1.08, 1.08)
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_xlabel(AXES[ranking])


def handles(some_noise: bool, several_trials: bool) -> list[Line2D | Patch]:
    """The legend of what is not a colour: intervals, other trials, noise."""
    found: list[Line2D | Patch] = [Line2D([], [], color=INK, linewidth=1.1, label="bootstrap interval")]
    if several_trials:
        look: Any = {"markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 0.5}
        found.append(Line2D([], [], linestyle="none", marker="o", markersize=2.4, label="other trials", **look))
    if some_noise:
        found.append(Patch(facecolor="white", edgecolor=FAINT, hatch="/////", linewidth=0.6, label=NOISE))
    return found
