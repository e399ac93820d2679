"""Comparison of the kinds of maps: stability under new draws of the fitted people (section 3.2), and all measures.

The measures are whether a map reaches the target group, its cost, and, between equal distributions, how far it is from
the true map T(x) = x on average and from draw to draw.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.style import curve, finish, level, new_panels
from fairness_audits.results.table import Cell, Column, Kind
from fairness_audits.values import Array
from pipeline.report import labels as w
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.validation import HEALTHY, counted, validated
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

Labels = tuple[str, str]
ONES, ZEROS = "ones", "zeros"
POINTS = (ONES, ZEROS)
"""Fixed points, named by the common value of their features. The true map leaves them in place."""
WIDTH_OF_A_GROUP = 0.62
"""Width of the maps at one dimension, as a share of the distance between dimensions."""
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


@artefact(
    "The image of a person with every feature at zero, under maps between two groups with the same distribution: "
    "the less it varies with the draw of everyone else, the more stable the map. A map that mirrors a feature leaves "
    "this person in place as well, and looks stable here.",
    "figure_2",
    point=ZEROS,
    summary=variances,
    label="variance of the image of $0$",
    title="How stable each map is: the variance of one person's counterpart over draws of the others.",
    alternative="Points on a logarithmic scale: variances of each map by the number of features, one panel for each "
    "correlation.",
    note="A point is one feature, a line their mean; maps stand beside each other at each number of features. "
    "Variances over {draws} draws with everyone else drawn anew.",
)
@artefact(
    "Where a person with every feature at one is sent. A map between equal distributions should leave the person "
    "there; the exact map pulls towards the mean, the more the more features there are.",
    "figure_2_mean",
    point=ONES,
    summary=means,
    label="image of $1$",
    title="Where each map sends a person with every feature at one.",
    alternative="Points: the images under each map by the number of features, and their medians, one panel for each "
    "correlation.",
    note="Both groups have the same distribution, so a map that moves nobody would stay on the dashed line. A small "
    "point is one feature in one of {draws} draws, a line their median; maps stand beside each other at each number of "
    "features. Images near \u22121 are those of maps that mirror the feature.",
)
def figure_of_images(
    inputs: Inputs, point: str, summary: Callable[[Array], Array], label: str, title: str, alternative: str, note: str
) -> Picture:
    """Plot a summary over the draws of the images of one point, by the number of features."""
    rows = stability_rows(inputs).astype({"feature": object})
    correlations, maps = sorted(set(rows["correlation"])), w.maps_in(rows["transport"])
    figure, (panels,) = new_panels(2.7, 1, len(correlations), sharey=True)
    for correlation, axes in zip(correlations, panels, strict=True):
        here = rows[rows["correlation"] == correlation]
        dimensions = sorted(set(here["dimension"]))
        for k, transport in enumerate(maps):
            style, part = w.MAPS[transport], here[here["transport"] == transport]
            look = {"linestyle": "none", "marker": style.marker, "markersize": 3.2, "color": style.color}
            places = np.arange(len(dimensions)) + (k - (len(maps) - 1) / 2) * WIDTH_OF_A_GROUP / len(maps)
            line = []
            for place, dimension in zip(places, dimensions, strict=True):
                of_one = part[part["dimension"] == dimension]
                here_images = images(of_one, point) if len(of_one) else np.full((1, 1), np.nan)
                values = summary(here_images)
                # Use the median: the mean of maps that keep and maps that mirror a feature represents neither.
                middle = np.nanmedian(here_images) if point == ONES else np.nanmean(values)
                line.append(float(middle) if len(of_one) else np.nan)
                dots = here_images.ravel() if point == ONES else values
                width = WIDTH_OF_A_GROUP / len(maps) / 3
                spread_out = place + width * np.sin(np.arange(len(dots)) * 2.4) * (point == ONES)
                look["markersize"] = 1.1 if point == ONES else 3.2
                axes.plot(spread_out, dots, alpha=0.35 if point == ONES else 0.55, markeredgewidth=0, **look)
            curve(axes, places, line, style, markersize=3.2)
        axes.set_xticks(range(len(dimensions)), [f"{d:g}" for d in dimensions])
        if point == ZEROS:
            axes.set_yscale("log")
        else:
            level(axes, 1, zorder=0)
    titles = ["independent features" if r == 0 else f"correlation {r:g}" for r in correlations]
    finish(figure, panels, "number of features", label, len(maps), titles)
    draws = rows.groupby(["transport", "dimension", "correlation"])["repetition"].nunique()
    counted = f"{draws.min():,}" if draws.min() == draws.max() else f"{draws.min():,} to {draws.max():,}"
    notes = (note.format(draws=counted),)
    return Picture(figure, title, inputs.stamp(set(rows["block"])), alternative, notes=notes)


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
    "The paper uses the GAN because it found it more stable than the exact map and the method of Seguy et al. Here "
    "every kind of map is held against the others: on the validation of Table 1, and on its stability where the "
    "true map is known.",
)
def table_maps(inputs: Inputs) -> StampedTable:

    def column(key: str, group: str, kind: Kind, decimals: int = 3, name: str = "", printed: bool = True) -> Column:
        return Column(key, kind, lambda measures: measures.get(key), group, decimals, name, printed)

    reach, known, rows = "Validation", "T(x) = x", inputs.rows
    return tabulated(
        title="Which map: fidelity, distance and stability of every kind.",
        stub=("Experiment", "Map"),
        columns=(
            column("healthy", "", "text"),
            column("largest KS", reach, "spread"),
            column("MSE difference", reach, "spread", name="|MSE diff| / MSE"),
            column("distance", reach, "spread", 2, "L1 distance"),
            column("cost ratio", reach, "spread", 2, "cost over exact"),
            column("round trip", reach, "spread", 2, printed=False),
            column("mean at 1", known, "number"),
            column("variance at 0", known, "number"),
        ),
        rows=[*of_validation(inputs), *of_draws(inputs)],
        stamp=inputs.stamp(rows.loc[rows["audit"].isin([trials.QUALITY, trials.STABILITY]), "block"].unique()),
        notes=(
            HEALTHY,
            "|MSE diff| / MSE: mean over features of the absolute difference over the error on real people. Cost over "
            "exact: the map's mean squared L1 distance over that of exact transport between as many members of both "
            "groups; below 1 a map does not go all the way.",
            "T(x) = x: a normal distribution mapped to itself, where the map is known. Mean at 1 and variance at 0: of "
            "the images of the people with all features at 1 and at 0, over draws of everybody else, means over "
            "features.",
        ),
    )
