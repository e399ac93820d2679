"""Comparison of the kinds of maps: stability under new draws of the fitted people (section 3.2), and all measures.

The measures are whether a map reaches the target group, its cost, and, between equal distributions, how far it is from
the true map T(x) = x on average and from draw to draw.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.style import FAINT, INK, finish, level, new_panels, points
from fairness_audits.results.table import Cell, Column, Kind
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.estimators import LEVEL, estimate
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.validation import HEALTHY, counted, validated
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

Labels = tuple[str, str]
ONES, ZEROS = "ones", "zeros"
POINTS = (ZEROS, ONES)
"""Fixed points, named by the common value of their features. The true map leaves them in place."""
WIDTH_OF_A_GROUP = 0.8
"""Width of the maps at one dimension, as a share of the distance between dimensions."""
HALF = 0.08
"""Half of the width of one map."""
DOT: Any = {"alpha": 0.4, "markeredgewidth": 0, "linestyle": "none"}
FEWEST = 3
"""Smallest number of draws with a jackknife error."""
means: Callable[[Array], Any] = partial(np.nanmean, axis=0)
variances: Callable[[Array], Any] = partial(np.nanvar, axis=0, ddof=1)
"""Mean and sample variance (n - 1) over the draws of each feature: (draws, d) -> (d,)."""


def images(rows: pd.DataFrame, point: str) -> Array:
    """Return the images (draws, features) of one fixed point under the map of these rows.

    Raises ValueError if the rows hold several maps, so a draw has several images.
    """
    here = rows[rows["point"] == point]
    if here.duplicated(["repetition", "feature"]).any():
        raise ValueError("several images of one point in one draw: expected the rows of one map and one distribution")
    return here.pivot(index="repetition", columns="feature", values="value").to_numpy(float)


def stability_rows(inputs: Inputs) -> pd.DataFrame:
    """Return the images of the fixed points, with dimension and correlation as numbers."""
    rows = inputs.select(audit=trials.STABILITY, statistic="image")
    numbers = {name: pd.to_numeric(rows[name]).astype(float) for name in ("dimension", "correlation")}
    return rows.assign(**numbers)


def oriented(zeros: Array, ones: Array) -> Array:
    """Return whether each of n maps keeps the direction of every feature: the images (n, d) of 1 exceed those of 0."""
    if zeros.shape != ones.shape:
        return np.zeros(len(zeros), bool)
    return np.asarray((ones > zeros).all(axis=1), bool)


def jackknife(statistic: Callable[..., float], *maps: Array) -> float:
    """Compute the jackknife standard error of a statistic of some maps, from their images (n, d) of the same n draws.

    The error is sqrt((n - 1) / n sum (g_-i - g)^2), where g_-i is the statistic without draw i and g the mean of the
    g_-i. NaN for fewer than three draws, or if some g_-i is not finite.
    """
    if len({one.shape for one in maps}) > 1 or len(maps[0]) < FEWEST:
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.array([statistic(*(np.delete(one, i, axis=0) for one in maps)) for i in range(len(maps[0]))])
    return float(np.sqrt((len(left) - 1) * left.var())) if np.isfinite(left).all() else math.nan


def log_variance(images: Array) -> float:
    """Compute the log of the variance of images (n, d) over the draws, averaged over the features."""
    return float(np.log(variances(images).mean()))


@artefact(
    "Top: counterparts of a person whose features are all 0, under maps between two groups with the same distribution, "
    "as in the paper. The less the counterpart varies when all other people are drawn again, the more stable the map. "
    "A map that mirrors a feature does not move this person and looks stable. Bottom: the same for a person whose "
    "features are all 1, whom such a map moves.",
)
def figure_2(inputs: Inputs) -> Picture:
    rows = stability_rows(inputs)
    figure, grid, panels = _panels(rows, POINTS)
    for axes, point, here in panels:
        axes.set_yscale("log")
        for place, transport, of_map in here:
            found = images(of_map, point)
            style, values = w.MAPS[transport], variances(found)
            axes.plot(_beside(place, len(values)), values, style.marker, color=style.color, **DOT, markersize=2.6)
            log = {"repetition": 0, "value": log_variance(found), "error": jackknife(log_variance, found)}
            mean = estimate("mean with error", pd.DataFrame([log]))
            ends = np.exp([[mean.low], [mean.high]])
            points(axes, [place], [np.exp(mean.value)], style, ends, markersize=4.2, markeredgecolor=INK)
    for row, value in zip(grid, (0, 1), strict=True):
        row[0].set_ylabel(f"variance of the image of ${value}$")
    return Picture(
        figure,
        "Stability of each map: variance of a person's counterpart over draws of all other people.",
        inputs.stamp(set(rows["block"])),
        "Variances of each map by number of features on a logarithmic scale, one panel for each correlation and "
        "person.",
        notes=(
            f"Small points: single features. Large points: their mean with a {100 * LEVEL:g} % interval (jackknife "
            f"over draws, on the logarithmic scale). Variances are over {_draws(rows)} draws. At each number of "
            "features, the maps are drawn side by side.",
        ),
    )


@artefact(
    "A map between equal distributions should not move this person. "
    "The exact map pulls the person towards the mean, more so with more features.",
)
def figure_2_mean(inputs: Inputs) -> Picture:
    rows = stability_rows(inputs)
    figure, grid, panels = _panels(rows, (ONES,))
    for axes, _, here in panels:
        level(axes, 1, zorder=0)
        for place, transport, of_map in here:
            style, start, found = w.MAPS[transport], *(images(of_map, point) for point in POINTS)
            axes.plot(_beside(place, found.size), found.ravel(), style.marker, color=style.color, **DOT, markersize=1.2)
            # The median of the images, because their mean may lie where no image does.
            axes.hlines(np.nanmedian(found), place - HALF, place + HALF, color=INK, linewidth=1.2, zorder=3)
            # The exact map sends people to other people, so two points do not show its direction. It cannot mirror.
            if transport != w.EXACT and (mirrored := int((~oriented(start, found)).sum())):
                at, look = (place, 0.02), {"fontsize": 6, "color": style.color, "ha": "center", "va": "bottom"}
                axes.text(*at, f"{mirrored}\nmirror", transform=axes.get_xaxis_transform(), **look)
    grid[0, 0].set_ylabel("image of $1$")
    return Picture(
        figure,
        "Counterpart of a person whose features are all 1, by map.",
        inputs.stamp(set(rows["block"])),
        "Images under each map by number of features, with their medians, one panel for each correlation.",
        notes=(
            "Dashed: a map that moves nobody. Each point is one feature in one draw. Black: the median.",
            f"There are {_draws(rows)} draws. At each number of features, the maps are drawn side by side. Mirror: "
            "number of draws in which the map reverses a feature, that is, its image of 1 is not above its image of 0.",
        ),
    )


Strip = tuple[float, str, pd.DataFrame]
"""The place of a map at one number of features, its name, and its rows."""


def _panels(rows: pd.DataFrame, shown: Sequence[str]) -> tuple[Figure, Any, list[tuple[Axes, str, list[Strip]]]]:
    """Make a panel for each point and correlation, and return it with its point and the maps to draw in it."""
    correlations, maps = sorted(set(rows["correlation"])), w.maps_in(rows["transport"])
    figure, grid = new_panels(0.7 + 2.0 * len(shown), len(shown), len(correlations), sharey="row")
    panels = []
    for point, row in zip(shown, grid, strict=True):
        for correlation, axes in zip(correlations, row, strict=True):
            here = rows[rows["correlation"] == correlation].astype({"feature": object})
            dimensions = sorted(set(here["dimension"]))
            axes.set_xticks(range(len(dimensions)), [f"{d:g}" for d in dimensions])
            axes.tick_params(axis="x", length=0)
            for place in range(len(dimensions) - 1):
                axes.axvline(place + 0.5, color=FAINT, linewidth=0.4)
            strips = [
                (number + (k - (len(maps) - 1) / 2) * WIDTH_OF_A_GROUP / len(maps), transport, of_map)
                for number, dimension in enumerate(dimensions)
                for k, transport in enumerate(maps)
                if len(of_map := here[(here["dimension"] == dimension) & (here["transport"] == transport)])
            ]
            panels.append((axes, point, strips))
    titles = ["independent features" if r == 0 else f"correlation {r:g}" for r in correlations]
    looks = [w.MAPS[name] for name in maps]
    handles = [Line2D([], [], color=x.color, marker=x.marker, linestyle="none", label=x.label) for x in looks]
    finish(figure, grid, "number of features", columns=len(maps), titles=titles, handles=handles)
    return figure, grid, panels


def _beside(place: float, count: int) -> Array:
    """Return places (count,) around a place, so that points do not hide each other."""
    return place + HALF * 0.8 * np.sin(np.arange(count) * 2.4)


def _draws(rows: pd.DataFrame) -> str:
    draws = rows.groupby(["transport", "dimension", "correlation"], observed=True)["repetition"].nunique()
    return f"{draws.min():,}" if draws.min() == draws.max() else f"{draws.min():,} to {draws.max():,}"


def of_validation(inputs: Inputs) -> Iterator[tuple[Labels, dict[str, Cell]]]:
    """Yield the measures of the validated maps, by experiment and map."""
    for one in validated(inputs):
        by_trial = {
            "largest KS": one.overall("ks_max"),
            "MSE difference": one.regression_error,
            "distance": one.overall("map_l1"),
            "cost ratio": one.cost_ratio,
            "round trip": one.overall("round_trip_l1"),
        }
        measures = {key: Estimate.mean(values.to_numpy(float)) for key, values in by_trial.items()}
        yield (one.label, w.MAPS[one.transport].label), {"healthy": counted(one.healthy), **measures}


def of_draws(inputs: Inputs) -> Iterator[tuple[Labels, dict[str, Cell]]]:
    """Yield the stability of maps of a normal distribution to itself, by number of features and map."""
    for (correlation, dimension), rows in stability_rows(inputs).groupby(["correlation", "dimension"]):
        correlated = f", r = {correlation:g}" if correlation else ""
        experiment = f"Normal, {dimension:g} feature{'s' * (dimension != 1)}{correlated}"
        for transport in w.maps_in(rows["transport"]):
            part = rows[rows["transport"] == transport]
            mean, variance = means(images(part, ONES)), variances(images(part, ZEROS))
            measures = {"mean at 1": float(np.nanmean(mean)), "variance at 0": float(np.nanmean(variance))}
            yield (experiment, w.MAPS[transport].label), {"healthy": "", **measures}


@artefact(
    "The paper uses the GAN because it found the GAN more stable than the exact map and the map of Seguy et al. The "
    "first part compares all kinds of maps by the validation of Table 1. The second part compares their stability "
    "where the true map is known.",
)
def table_maps(inputs: Inputs) -> StampedTable:

    def column(key: str, group: str, kind: Kind, decimals: int = 3, name: str = "", printed: bool = True) -> Column:
        return Column(key, kind, lambda measures: measures.get(key), group, decimals, name, printed)

    reach, known, rows = "Validation", "T(x) = x", inputs.rows
    return tabulated(
        title="Fidelity, distance and stability of each kind of map.",
        stub=("Experiment", "Map"),
        columns=(
            column("healthy", "", "text", name="valid maps"),
            column("largest KS", reach, "spread"),
            column("MSE difference", reach, "spread", name="|MSE diff| / MSE"),
            column("distance", reach, "spread", 2, "L1 distance"),
            column("cost ratio", reach, "spread", 2, "cost over exact"),
            column("round trip", reach, "spread", 2, printed=False),
            column("mean at 1", known, "number"),
            column("variance at 0", known, "number"),
        ),
        rows=[*of_validation(inputs), *of_draws(inputs)],
        split=(known,),
        stamp=inputs.stamp(rows.loc[rows["audit"].isin([trials.QUALITY, trials.STABILITY]), "block"].unique()),
        notes=(
            HEALTHY,
            "|MSE diff| / MSE: absolute difference divided by the error on real people, mean over features. Cost over "
            "exact: mean squared L1 distance of the map divided by that of exact transport between equally many people "
            "of both groups. A map with a ratio below 1 stops short of the target.",
            "T(x) = x: a normal distribution is mapped to itself, so the true map is known. Mean at 1 and variance at "
            "0: mean image of a person whose features are all 1, and variance of the image of a person whose features "
            "are all 0, over draws of all other people, means over features.",
        ),
    )
