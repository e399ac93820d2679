"""Tables of transparency reports and of what the models weigh: hiring, and the least squares of the SSL score."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.described import Described
from pipeline.report.fliptest import lines, pages, trials
from pipeline.report.fliptest.lines import Line
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, p_value
from pipeline.report.table import Cell, Column, Row, Show, Table
from pipeline.types import Array

BOTH = (w.NEGATIVE, w.POSITIVE)
REGRESSION = f"{w.SSL}/linear_regression"
NARCOTICS, AGE = "narcotic arrests", "age at latest arrest"


@registry.table(place=4)
def table_transparency_hiring(inputs: Inputs) -> Table:
    """How women whose outcome would be another differ from their counterparts among men, by every kind of map; and
    which lines are noise, which are as the whole group, and which stand out.
    """
    body = []
    found = trials.places(inputs, block=w.HIRING, method="given")
    for place in found:
        for flipset in BOTH:
            shifts, signs = (
                {line.feature: line for line in lines.report(inputs, place, flipset, ranking)}
                for ranking in lines.RANKS
            )
            for feature, line in shifts.items():
                cells = (*_cells(line), *_cells(signs[feature]))
                label = w.feature_label(feature, w.HIRING)
                body.append(Row((w.map_style(place.transport).label, w.FLIPSETS[flipset], label), cells))
    return Table(
        title="Transparency reports of the hiring model.",
        stub=("Map", "Flipset", "Feature"),
        columns=(
            *(Column(f"shift {key}", "Mean shift", show, d, key) for key, show, d in OF_A_LINE),
            *(Column(f"sign {key}", "Mean sign", show, d, key) for key, show, d in OF_A_LINE),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(w.HIRING),
        notes=(
            "x \u2212 G(x): a woman less her counterpart among men, in standard deviations; and its sign. "
            f"{w.FLIPSETS[w.NEGATIVE]}: women not hired whose counterparts are; {w.FLIPSETS[w.POSITIVE]}: women hired "
            "whose counterparts are not.",
            "Means over the trials \u00b1 standard deviations of the single trials; intervals over maps and people "
            "together. p: whether a random part of all women, as large as the flipset, is as far from the mean of all "
            "women; adjusted by Holm's method for all lines of a report, and twice the median over the trials. Noise: "
            "the interval covers 0, or the members are too few for one. As the whole group: it does not, but p is "
            "above the level; the shift is not shown to be other than that of all women, and does not tell who flips.",
            *pages.health(inputs, found),
        ),
    )


OF_A_LINE: tuple[tuple[str, Show, int], ...] = (
    ("mean", "spread", 2),
    ("interval", "interval", 2),
    ("rank", "value", 0),
    ("p", "text", 3),
    ("is", "text", 0),
)


def _cells(line: Line) -> tuple[Cell, ...]:
    interval = Estimate(line.value, low=line.low, high=line.high)
    p = Estimate(line.p, text=p_value(line.p))
    return Estimate.mean(line.trials), interval, float(line.rank), p, line.standing


@registry.table(place=9)
def table_ssl_weights(inputs: Inputs) -> Table:
    """What the list's own score rests on, by least squares, before the audited model is biased towards narcotic
    arrests.
    """
    dataset = _dataset(inputs)
    weights = _weights(inputs)
    body = []
    correlations = with_race(dataset)
    for feature, of_feature in sorted(weights.items(), key=lambda item: -abs(item[1].mean())):
        label = w.feature_label(feature, w.SSL)
        body.append(Row((label,), (Estimate.mean(of_feature), correlations[feature])))
    return Table(
        title="Least squares of the score of the Strategic Subject List.",
        stub=("Feature",),
        columns=(Column("weight", show="spread", decimals=2), Column("r", name="r with race")),
        rows=tuple(body),
        stamp=inputs.stamp("ssl_regression"),
        notes=(
            "Weights of standardised features, in points of the score: mean \u00b1 standard deviation over random "
            "splits. r: correlation with being black, over the black and white people of the list.",
            f"{100 * dataset.positives:.2f} % of the {dataset.rows:,} black and white people have a "
            "score at or above the threshold of high risk.",
        ),
    )


def weights_by_split(inputs: Inputs) -> pd.DataFrame:
    """Weights of the least squares, one row for each split and one column for each feature; empty if not fitted."""
    if REGRESSION not in inputs.classifiers or w.SSL not in inputs.datasets:
        return pd.DataFrame()
    return pd.DataFrame(_weights(inputs))


def with_race(dataset: Described) -> dict[str, float]:
    """Pearson's correlation of each feature with being in the first group, over the people of both groups."""
    (correlations,) = dataset.correlations.values()
    return dict(zip(dataset.feature_names, map(float, correlations), strict=True))


def _dataset(inputs: Inputs) -> Described:
    if w.SSL not in inputs.datasets:
        raise ValueError(f"the table needs the prepared dataset {w.SSL!r}: found {sorted(inputs.datasets)}")
    return inputs.datasets[w.SSL]


def _weights(inputs: Inputs) -> dict[str, Array]:
    if REGRESSION not in inputs.classifiers:
        raise ValueError(f"the table needs the classifier {REGRESSION!r}: found {sorted(inputs.classifiers)}")
    coef = inputs.classifiers[REGRESSION].parameters["coef"]
    return dict(zip(_dataset(inputs).feature_names, np.asarray(coef, float).T, strict=True))
