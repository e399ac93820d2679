"""Figures of section 3.2: how far a map depends on the draw of the people that it was fitted on."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import chi2

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.inputs import Inputs, points
from pipeline.report.stamp import Picture
from pipeline.report.style import curve, finish, level, new_panels
from pipeline.types import Array

ONES, ZEROS = "ones", "zeros"
POINTS = {ONES: 1.0, ZEROS: 0.0}
"""The fixed people, and the value of all their features, which is that of their images under the true map."""
WIDTH_OF_A_GROUP = 0.62
"""Of the distance between two dimensions, for the maps beside each other."""


@registry.figure()
def figure_2(inputs: Inputs) -> Picture:
    """The image of a person with every feature at zero, under maps between two groups with the same distribution: the
    less it varies with the draw of everyone else, the more stable the map.
    """
    return _figure(
        inputs,
        ZEROS,
        variances,
        "variance of the image of $0$",
        "How stable each map is: the variance of one person's counterpart over draws of the others.",
        "Points on a logarithmic scale: variances of each map by the number of features, one panel for each "
        "correlation.",
        ("A point is one feature, a line their mean; variances over {draws} draws with everyone else drawn anew.",),
    )


@registry.figure(place=1)
def figure_2_mean(inputs: Inputs) -> Picture:
    """Where a person with every feature at one is sent. A map between equal distributions should leave the person
    there; the exact map pulls towards the mean, the more the more features there are.
    """
    return _figure(
        inputs,
        ONES,
        means,
        "mean image of $1$",
        "Regression to the mean: where each map sends a person with every feature at one.",
        "Points: mean images of each map by the number of features, one panel for each correlation.",
        (
            "Both groups have the same distribution, so a map that moves nobody would stay on the dashed line. A point "
            "is one feature, a line their mean, over {draws} draws.",
        ),
    )


def images(rows: pd.DataFrame, point: str) -> Array:
    """Images (draws, features) of one fixed point under the maps of the given rows.

    Raises ValueError where the rows hold more than one map, so that a draw has two images.
    """
    here = rows[rows["point"] == point]
    if here.duplicated(["repetition", "feature"]).any():
        raise ValueError("several images of one point in one draw: expected the rows of one map and one distribution")
    return here.pivot(index="repetition", columns="feature", values="value").to_numpy(float)


def variances(image: Array) -> Array:
    """Sample variance (n - 1) over the draws of each feature: (draws, d) -> (d,)."""
    return np.asarray(np.nanvar(image, axis=0, ddof=1))


def means(image: Array) -> Array:
    """Mean over the draws of each feature: (draws, d) -> (d,)."""
    return np.asarray(np.nanmean(image, axis=0))


def errors(rows: pd.DataFrame) -> pd.Series:
    """Root mean square of T(x) - x over the features of the fixed people, by draw, for the rows of one map.

    Its mean square over the draws is the square of the mean's distance from x, plus the variance about the mean.
    """
    squared = (rows["value"] - rows["point"].astype(object).map(POINTS).astype(float)) ** 2
    return squared.groupby(rows["repetition"]).mean().pow(0.5)


def stability_rows(inputs: Inputs, statistic: str = "image") -> pd.DataFrame:
    """Every image of the fixed points, or another statistic, with dimension and correlation as numbers."""
    rows = inputs.select(audit=trials.STABILITY, statistic=statistic)
    numbers = {name: pd.to_numeric(rows[name]).astype(float) for name in ("dimension", "correlation")}
    return rows.assign(**numbers)


def _figure(
    inputs: Inputs, point: str, summary: Callable[[Array], Array], label: str, title: str, alternative: str,
    notes: Sequence[str],
) -> Picture:  # fmt: skip
    rows = stability_rows(inputs).astype({"feature": object})
    correlations = sorted(set(rows["correlation"]))
    maps = w.maps_in(rows["transport"])
    figure, (panels,) = new_panels(2.7, 1, len(correlations), sharey=True)
    for correlation, axes in zip(correlations, panels, strict=True):
        dimensions = sorted(set(rows.loc[rows["correlation"] == correlation, "dimension"]))
        for k, transport in enumerate(maps):
            offset = (k - (len(maps) - 1) / 2) * WIDTH_OF_A_GROUP / max(len(maps), 1)
            part = rows[(rows["correlation"] == correlation) & (rows["transport"] == transport)]
            _points(axes, part, point, summary, dimensions, transport, offset)
        axes.set_xticks(range(len(dimensions)), [f"{d:g}" for d in dimensions])
        if point == ZEROS:
            axes.set_yscale("log")
        else:
            level(axes, 1, zorder=0)
    titles = ["independent features" if r == 0 else f"correlation {r:g}" for r in correlations]
    finish(figure, panels, "number of features", label, len(maps), titles)
    draws = rows.groupby(["transport", "dimension", "correlation"])["repetition"].nunique()
    counted = f"{draws.min():,}" if draws.min() == draws.max() else f"{draws.min():,} to {draws.max():,}"
    return Picture(
        figure,
        title,
        inputs.stamp(set(rows["block"])),
        alternative,
        notes=(*(note.format(draws=counted) for note in notes), *_fewer(inputs, rows, int(draws.min()))),
    )


def _fewer(inputs: Inputs, rows: pd.DataFrame, draws: int) -> tuple[str, ...]:
    """That the paper has more draws, where it has, and what that leaves open, by the chi-squared law of a variance."""
    blocks = set(rows["block"])
    published = [point["repetitions"] for point in points(inputs.config["published"]) if point["block"] in blocks]
    if max(published) <= draws:
        return ()
    low, high = (draws - 1) / chi2.ppf([0.975, 0.025], draws - 1)
    return (
        f"The paper has {max(published):,} draws. With {draws:,}, the 95 % interval of one variance reaches from "
        f"{low:.2g} to {high:.2g} times its estimate.",
    )


def _points(
    axes: Axes, rows: pd.DataFrame, point: str, summary: Callable[[Array], Array], dimensions: Sequence[float],
    transport: str, offset: float,
) -> None:  # fmt: skip
    style, line = w.MAPS[transport], []
    look = {"linestyle": "none", "marker": style.marker, "markersize": 3.2, "color": style.color}
    for place, dimension in enumerate(dimensions):
        here = rows[rows["dimension"] == dimension]
        values = summary(images(here, point)) if len(here) else np.full(1, np.nan)
        line.append(float(np.nanmean(values)) if len(here) else np.nan)
        axes.plot(np.full(len(values), place + offset), values, alpha=0.55, markeredgewidth=0, **look)
    curve(axes, np.arange(len(dimensions)) + offset, line, style, markersize=3.2)
