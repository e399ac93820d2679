"""The figure of a loss-ratio audit: how the ratios are distributed, and how T_n grows with the steps."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from pipeline.audits.loss_ratio.ratio_tests import RatioTest
from pipeline.report.style import FAINT, INK, METHODS, WARNING, new_figure, panel_letter
from pipeline.types import Array

BINS = 50
WIDE = 3.0
"""Values that span a larger factor are drawn on a logarithmic axis."""


def figure(steps: Sequence[int], test: RatioTest, ratio: Array | None) -> Figure:
    """The ``test`` at each of the ``steps``, beside the distribution of the ratios (n,) where these are known.

    To be drawn and saved within :func:`pipeline.report.style.paper`.
    """
    drawn = new_figure(2.6)
    if ratio is None:
        _course(drawn.subplots(), steps, test)
        return drawn
    left, right = drawn.subplots(1, 2)
    _distribution(left, test, ratio)
    _course(right, steps, test)
    panel_letter(left, "a")
    panel_letter(right, "b")
    return drawn


def bins(ratios: Array) -> Array:
    """About BINS bins of equal width on the logarithmic axis, with 1 as one of the edges: better off to its left."""
    positive = ratios[ratios > 0]
    lowest, highest = np.log(positive.min(initial=1.0)), np.log(positive.max(initial=1.0))
    width = max(highest - lowest, 1e-3) / BINS
    # One bin more at each end, so that no rounding leaves the extreme ratios outside.
    return np.exp(width * np.arange(np.floor(lowest / width) - 1, np.ceil(highest / width) + 2))


def _distribution(axes: Axes, test: RatioTest, ratio: Array) -> None:
    ratios = ratio[np.isfinite(ratio)]
    axes.hist(ratios, bins=bins(ratios).tolist(), color=METHODS["baseline"].color, alpha=0.75, linewidth=0)
    axes.axvline(1.0, color=FAINT, linewidth=0.8)
    axes.axvline(test.delta, color=WARNING, linestyle="--", label=f"tolerance {test.delta:g}")
    axes.axvline(float(test.mean[-1]), color=INK, linestyle=":", label=f"mean $S_n$ = {float(test.mean[-1]):.3g}")
    _scale(axes, "x", np.append(ratios, test.delta))
    axes.set_xlabel("loss on the comparable individual / own loss")
    axes.set_ylabel("audited rows")
    _legend(axes)


def _course(axes: Axes, steps: Sequence[int], test: RatioTest) -> None:
    color = METHODS["baseline"].color
    level = f"{100 * (1 - test.alpha):g} %"
    axes.fill_between(steps, test.ci_low, test.ci_high, color=color, alpha=0.2, linewidth=0, label=f"{level} interval")
    axes.plot(steps, test.mean, color=color, label="$S_n$")
    axes.plot(steps, test.statistic, color=INK, linestyle="-.", label="$T_n$")
    axes.axhline(test.delta, color=WARNING, linestyle="--", label=f"tolerance {test.delta:g}")
    _scale(axes, "x", np.array(steps))
    _scale(axes, "y", np.concatenate([test.ci_low, test.ci_high, [test.delta]]))
    axes.set_xlabel("gradient steps")
    axes.set_ylabel("mean loss ratio")
    _legend(axes)


def _legend(axes: Axes) -> None:
    """In one line above the panel, where it can cover nothing."""
    space = {"handlelength": 1.9, "handletextpad": 0.4, "columnspacing": 1.0, "borderaxespad": 0.2}
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, **space)


def _scale(axes: Axes, which: str, values: Array) -> None:
    """Logarithmic where the values span a wide factor, with ticks in plain numbers."""
    finite = values[np.isfinite(values)]
    if finite.min() <= 0 or finite.max() <= WIDE * finite.min():
        return
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    if finite.max() < 1e5:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
