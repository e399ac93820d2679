"""Real data: test AUCs, Figures 2 and 3 of DiCiccio et al. (2020) by gender and race, sample sizes of section 5.1."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from fairness_audits.audits.permutation.power import rate_variance, sample_size
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import MINUS
from fairness_audits.results.style import FAINT, INK, MethodStyle, counts_along, curve, finish, logarithmic, new_panels
from fairness_audits.results.table import Column
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.permutation_tests.simulations import count
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

Of = tuple[tuple[float, float], tuple[float, float]]
"""The rates of both groups, and the variances of their estimates multiplied by the number of all rows."""
RATES = ("tpr", "fpr")
AT_THRESHOLD = 0.5
DIFFERENCES = (0.01, 0.02, 0.05, 0.1)
POWERS = {0.5: "Rows for power 0.5, as published", 0.8: "Rows for power 0.8"}

SPREADS = "Mean \u00b1 standard deviation over random splits."
STRIPS = (w.EXACT, w.STUDENTIZED)
BAND = (10, 90)
QUARTILES = (25, 75)
DISTANCE = MethodStyle("difference of the rates", "#0072B2", "", "-")
BOUND = MethodStyle("\u00b1 95th percentile", "#D55E00", "", (0, (4, 1.5)))
UNDETECTED = 1.25
"""Height of the markers of undetected differences, as a multiple of the largest drawn value."""


@artefact(
    "Logistic regression with an L2 penalty that is chosen on validation rows. Gender and race are not features. The "
    "published values are missing from our copy of the paper.",
)
def table_auc(inputs: Inputs) -> StampedTable:

    def mean(statistic: str) -> Callable[[pd.DataFrame], float]:
        return lambda part: float(np.nanmean(_values(part, statistic)))

    return tabulated(
        title="Test AUCs of the logistic regressions.",
        stub=("Data set", "Group"),
        columns=(
            Column("AUC", "spread", cell=lambda part: Estimate.mean(_values(part, "auc"))),
            Column("standard error", name="standard error of one split", cell=mean("auc_std_error")),
            Column("test rows", decimals=0, cell=mean("n")),
            Column("positives", decimals=0, cell=mean("positives")),
        ),
        rows=[
            ((w.dataset_label(dataset), group), part)
            for dataset in inputs.names("dataset", block="auc")
            for group, part in _groups(inputs, dataset)
        ],
        stamp=inputs.stamp("auc"),
        notes=(SPREADS, "Standard error: DeLong's standard error for one test set, mean over the splits."),
    )


@artefact(
    "Number of rows at which the test detects a true difference of a given size with probability 0.5 or 0.8.",
)
def table_sample_size(inputs: Inputs) -> StampedTable:
    rows = inputs.select(block="thresholds")
    alpha = float(rows["alpha"].dropna().iloc[0])

    def needed(difference: float, power: float) -> Callable[[Of], float]:
        return lambda of: float(sample_size(difference, of[1], alpha=alpha, power=power))

    return tabulated(
        title="Sample sizes by the formula of section 5.1.",
        stub=("Data set", "Attribute", "Metric"),
        columns=(
            Column("A", group="Measured", cell=lambda of: of[0][0]),
            Column("B", group="Measured", cell=lambda of: of[0][1]),
            Column("A \u2212 B", group="Measured", cell=lambda of: of[0][0] - of[0][1]),
            *(
                Column(f"{d:g} ({power:g})", group=group, decimals=0, name=f"{d:g}", cell=needed(d, power))
                for power, group in POWERS.items()
                for d in DIFFERENCES
            ),
        ),
        rows=[
            ((w.dataset_label(d), w.ATTRIBUTES[a], w.METRICS[metric]), _of_the_groups(inputs, d, a, metric))
            for d in inputs.names("dataset", block="thresholds")
            for a in w.attributes_in(inputs.names("attribute", block="thresholds", dataset=d))
            for metric in RATES
        ],
        stamp=inputs.stamp("thresholds"),
        notes=(
            "Total number of rows, with groups and labels in the proportions of the test rows, for a two-sided test "
            f"at level {alpha:g}. With power 0.5, the difference equals the critical value. This is the published "
            f"formula. Rates are means over random splits at threshold {AT_THRESHOLD:g}.",
        ),
    )


def _of_the_groups(inputs: Inputs, dataset: str, attribute: str, metric: str) -> Of:
    """Return the rates f in A and B, and f (1 - f) / pi of each. pi is the share of all rows behind the rate."""
    place = {"block": "thresholds", "dataset": dataset, "attribute": attribute, "metric": metric}
    test_rows = inputs.datasets[dataset].test_rows

    def mean(statistic: str) -> float:
        return float(inputs.values(**place, threshold=AT_THRESHOLD, statistic=statistic).mean())

    rates = mean("estimate_a"), mean("estimate_b")
    shares = mean("n_a") / test_rows, mean("n_b") / test_rows
    return rates, (float(rate_variance(rates[0], shares[0])), float(rate_variance(rates[1], shares[1])))


def _groups(inputs: Inputs, dataset: str) -> list[tuple[str, pd.DataFrame]]:
    """Return the AUC rows of everyone, then of each group by attribute."""
    rows = inputs.select(block="auc", dataset=dataset)
    groups = [("everyone", rows[rows["attribute"].isna()])]
    for attribute in w.attributes_in(list(rows["attribute"].dropna())):
        for name, part in rows[rows["attribute"] == attribute].groupby("group"):
            groups.append((f"{w.ATTRIBUTES[attribute]}: {name}", part))
    return groups


def _values(rows: pd.DataFrame, statistic: str) -> np.ndarray:
    return rows.loc[rows["statistic"] == statistic, "value"].to_numpy(float)


def difference_of(inputs: Inputs, dataset: str, attribute: str) -> str:
    """Return the order of the difference, ``male \u2212 female``; by level number if the data set names no levels."""
    for prepared in inputs.datasets.values():
        if prepared.name == dataset and attribute in prepared.levels:
            low, high = prepared.levels[attribute]
            return f"{high} {MINUS} {low}"
    return f"level 1 {MINUS} level 0"


def by_setting(rows: pd.DataFrame, against: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ascending settings (k,) and their values (k, m), one column per split and sample."""
    keys = [key for key in ("repetition", "sample") if key in rows and rows[key].notna().any()]
    table = rows.pivot(index=against, columns=keys, values="value").sort_index()
    return table.index.to_numpy(float), table.to_numpy(float)


def quantiles(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Compute quantiles (percent) of values (k, m) over m. An undetected difference (NaN) counts as largest.

    Omitting undetected differences would make small samples look too good. A quantile that falls on one is NaN.
    """
    ordered = np.sort(np.where(np.isnan(values), np.inf, values), axis=1)
    last = ordered.shape[1] - 1
    found = np.stack([ordered[:, math.floor(level / 100 * last + 0.5)] for level in levels])
    return np.where(np.isinf(found), np.nan, found)


@artefact(
    "Left: difference in recall. Right: difference in the false positive rate. The unstudentised permutation test "
    "rejects equal rates if the absolute difference exceeds the 95th percentile of the permutations, above or below. "
    "The bars show where the "
    "exact and the studentised test reject. At extreme thresholds, the studentised test may reject because a group has "
    "no variance.",
    "figure_2",
    attribute="sex",
)
@artefact("As Figure 2, with groups by race.", "figure_2_race", attribute="race")
def thresholds(inputs: Inputs, attribute: str) -> Picture:
    """Plot the signed difference and the 95th percentile of the permutations, on both sides, by threshold."""
    place = {"block": "thresholds", "attribute": attribute}
    datasets = inputs.names("dataset", **place)
    height, ratios = 2.35 * len(datasets) + 0.3, [7, 1] * len(datasets)
    figure, grid = new_panels(height, 2 * len(datasets), len(RATES), sharex=True, height_ratios=ratios)
    panels, uppers, strips = list(product(datasets, RATES)), grid[::2], grid[1::2]
    for (dataset, metric), upper, strip in zip(panels, uppers.flat, strips.flat, strict=True):
        setting = {**place, "dataset": dataset, "metric": metric}
        _distance(upper, inputs, setting)
        _strips(strip, inputs, setting)
    for strip in strips[:, 1:].flat:
        strip.set_yticklabels([])
    titles = [f"{w.dataset_label(dataset)}, {w.METRICS[metric]}" for dataset, metric in panels]
    rows = inputs.select(**place, statistic="percentile_95")
    splits = rows["repetition"].nunique()
    shades = {f"rejects in 1 of {splits} splits": 1 / splits, "in all": 1.0} if splits > 1 else {"rejects": 1.0}
    key = [Patch(facecolor=INK, alpha=shade, linewidth=0, label=label) for label, shade in shades.items()]
    handles = [*uppers[0, 0].get_legend_handles_labels()[0], *key]
    finish(figure, uppers, y="difference of the rates", columns=len(handles), titles=titles, handles=handles)
    for axes in grid[-1]:
        axes.set_xlabel(r"threshold $\tau$")
    groups = "; ".join(f"{w.dataset_label(d)}: {difference_of(inputs, d, attribute)}" for d in datasets)
    return Picture(
        figure,
        f"Equalized odds and permutation tests by {w.ATTRIBUTES[attribute]}.",
        inputs.stamp("thresholds"),
        "Curves of the difference of rates between two groups against the threshold, with the 95th percentile of the "
        "permutation distribution and bars where exact and studentised tests reject.",
        notes=(
            f"Solid: mean difference over {splits} random splits, with its sign, and a band from the {BAND[0]} % to "
            f"the {BAND[1]} % quantile. Dashed: 95th percentile of the absolute difference over {count(rows, 'draws')} "
            "permutations of the groups. The paper's equalized-odds distance has no sign.",
            f"Bars: a test rejects at level {float(rows['alpha'].iloc[0]):g}; darker if it rejects in more splits. "
            "Each threshold is tested separately, without correction for their number.",
            f"Groups: {groups}.",
        ),
    )


def _distance(axes: Axes, inputs: Inputs, setting: dict[str, str]) -> None:
    threshold, distance = by_setting(inputs.select(**setting, statistic="difference"), "threshold")
    _, bound = by_setting(inputs.select(**setting, statistic="percentile_95"), "threshold")
    curve(axes, threshold, np.nanmean(distance, axis=1), DISTANCE, np.nanpercentile(distance, BAND, axis=1))
    for sign in (1, -1):
        curve(axes, threshold, sign * np.nanmean(bound, axis=1), BOUND, label=BOUND.label if sign == 1 else None)
    axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
    axes.set_xlim(0, 1)


def _strips(axes: Axes, inputs: Inputs, setting: dict[str, str]) -> None:
    for row, test in enumerate(STRIPS):
        threshold, p = by_setting(inputs.select(**setting, statistic="rejected", test=test), "threshold")
        # A test that is undefined at a threshold counts as not rejecting.
        rejected = np.nan_to_num(p).mean(axis=1)
        edges = np.concatenate([[threshold[0]], (threshold[1:] + threshold[:-1]) / 2, [threshold[-1]]])
        for left, right, shade in zip(edges[:-1], edges[1:], rejected, strict=True):
            if shade > 0:
                axes.broken_barh(
                    [(left, right - left)], (row - 0.38, 0.76), facecolors=w.TESTS[test].color, alpha=shade,
                    linewidth=0,
                )  # fmt: skip
    axes.set_yticks(range(len(STRIPS)), ["exact", "studentised"], fontsize=6.5)
    axes.set_ylim(len(STRIPS) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


@artefact(
    "The smallest difference over all thresholds that each test detects, by sample size. As published, it is not "
    "corrected for the selection over thresholds. One curve is corrected by Holm's method.",
    "figure_3",
    attribute="sex",
)
@artefact("As Figure 3, with groups by race.", "figure_3_race", attribute="race")
def sample_sizes(inputs: Inputs, attribute: str) -> Picture:
    """Plot the smallest detected difference against the sample size."""
    place = {"block": "sample_size", "attribute": attribute}
    datasets = inputs.names("dataset", **place)
    figure, grid = new_panels(2.0 * len(datasets) + 0.4, len(datasets), len(RATES), sharex="row")
    panels = list(product(datasets, RATES))
    for (dataset, metric), axes in zip(panels, grid.flat, strict=True):
        _detected(axes, inputs, {**place, "dataset": dataset, "metric": metric})
    titles = [f"{w.dataset_label(dataset)}, {w.METRICS[metric]}" for dataset, metric in panels]
    finish(figure, grid, "rows sampled", "smallest detected difference", 4, titles)
    rows = inputs.select(**place, statistic="minimum_difference")
    samples = len(rows[["dataset", "repetition", "sample"]].drop_duplicates()) // len(datasets)
    return Picture(
        figure,
        f"Smallest detected difference by sample size, for groups by {w.ATTRIBUTES[attribute]}.",
        inputs.stamp("sample_size"),
        "Falling curves on logarithmic axes of the smallest difference that each test detects by number of rows.",
        notes=(
            f"Medians over {samples:,} samples, with bands from the {QUARTILES[0]} % to the {QUARTILES[1]} % quantile.",
            "A sample in which nothing is detected counts as larger than any number. If this holds for at least half "
            "of the samples, a triangle at the top shows their share. Thresholds with fewer than "
            f"{count(rows, 'smallest_cell')} rows in a cell are left out.",
            "Holm: corrected for the number of thresholds. Formula: the difference that a test at threshold 0.5 "
            "detects with probability 0.5, by section 5.1.",
        ),
    )


def _detected(axes: Axes, inputs: Inputs, setting: dict[str, str]) -> None:
    style = w.TESTS[w.EXACT]
    holm: dict[str, Any] = {"linestyle": (0, (1, 1.2)), "markerfacecolor": "white", "label": f"{style.label}, Holm"}
    missed = []
    for test, corrected, more in ((w.STUDENTIZED, "", {}), (w.EXACT, "", {}), (w.EXACT, "_corrected", holm)):
        n, least = by_setting(inputs.select(**setting, statistic=f"minimum_difference{corrected}", test=test), "n")
        low, median, high = quantiles(least, (QUARTILES[0], 50, QUARTILES[1]))
        curve(axes, n, median, w.TESTS[test], None if corrected else (low, high), **more)
        missed.append(pd.Series(np.isnan(least).mean(axis=1), n)[np.isnan(median)])
    n, formula = by_setting(inputs.select(**setting, statistic="detectable"), "n")
    axes.plot(n, np.nanmedian(formula, axis=1), color=FAINT, linewidth=2.6, alpha=0.55, zorder=0, label="formula")
    top = UNDETECTED * axes.dataLim.ymax
    looks = ((w.STUDENTIZED, None), (w.EXACT, None), (w.EXACT, holm["markerfacecolor"]))
    for place, ((test, face), shares) in enumerate(zip(looks, missed, strict=True)):
        for at, share in shares.items():
            color, height = w.TESTS[test].color, top * UNDETECTED**place
            axes.plot(at, height, "^", color=color, markerfacecolor=face or color, markersize=4)
            axes.annotate(
                f"{100 * share:.0f} %", (at, height), (4, 0), "data", "offset points", fontsize=5.5, va="center",
                color=color,
            )  # fmt: skip
    counts_along(axes, n, color=INK)
    logarithmic(axes, "y")
