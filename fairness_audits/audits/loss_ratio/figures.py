"""Figure of a loss-ratio audit: the mean ratio S_n and its lower bound T_n against the steps."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest
from fairness_audits.results.formats import level
from fairness_audits.results.style import INK, METHODS, WARNING, counts_along, logarithmic, new_figure

WIDE = 3.0
"""Ratios that span a larger factor have a logarithmic axis."""
TICKS = 12
"""Largest number of labelled steps."""


def figure(steps: Sequence[int], test: RatioTest, unit: str = "gradient steps") -> Figure:
    """Draw the ``test`` at each of the ``steps``; draw and save within :func:`fairness_audits.results.style.paper`."""
    drawn = new_figure(2.6)
    axes, color = drawn.subplots(), METHODS["baseline"].color
    axes.fill_between(
        steps, test.ci_low, test.ci_high, color=color, alpha=0.2, linewidth=0, label=f"{level(test.alpha)} interval"
    )
    axes.plot(steps, test.mean, color=color, label="$S_n$")
    axes.plot(steps, test.statistic, color=INK, linestyle="-.", label="$T_n$")
    axes.axhline(test.delta, color=WARNING, linestyle="--", label=f"tolerance {test.delta:g}")
    counts_along(axes, steps[:: -math.ceil(len(steps) / TICKS)])
    ratios = np.concatenate([test.ci_low, test.ci_high, [test.delta]])
    ratios = ratios[np.isfinite(ratios)]
    if ratios.min() > 0 and ratios.max() > WIDE * ratios.min():
        logarithmic(axes, "y")
    axes.set_xlabel(unit)
    axes.set_ylabel("mean loss ratio")
    # Place the legend in one line above the panel, where it covers nothing.
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
    return drawn
