"""Simulations: Table 1 and Figure 1 of DiCiccio et al. (2020), levels with few positives, and power."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import binom

from fairness_audits.results.style import FAINT, counts_along, curve, finish, level, new_panels, panel_letter, points
from fairness_audits.results.table import Cell, Column
from pipeline.report import labels as w
from pipeline.report.estimators import LEVEL, estimate
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

SETTINGS = {"fnr_levels": "our choice for section 4.2", "few_positives": "few positives"}
"""Blocks of tests of false negative rates. Tests of AUCs in groups of the same sizes are shown beside them."""
AUCS, RARE = "auc_levels", "auc_few_positives"
BLOCKS = (*SETTINGS, AUCS, RARE)
AUC_TESTS = (w.UNSTUDENTIZED, w.STUDENTIZED)

SMOOTHING = "Smoothed: the variance of the studentised statistic adds one event and one non-event to each group."
DELONG = "For AUCs, the studentised test uses DeLong's variance."
ACROSS = 3
BESIDE = 1.12
"""Ratio of the places of two tests at the same number of rows on the logarithmic axis."""
NEAR_THE_LEVEL = 3
"""Range of the enlarged panel, in multiples of the level."""
HEADROOM = 1.25
PUBLISHED_PANELS = (w.UNSTUDENTIZED, w.STUDENTIZED, w.BOOTSTRAP)


@artefact(
    "In both rows, the protected attribute and the error of the model are uncorrelated but dependent. The attribute is "
    "uniform in the first row, and one plus an exponential variable in the second. FairTest rejects the true "
    "hypothesis of no correlation far too often. It rejects the false hypothesis of independence less often than its "
    "level.",
)
def table_1(inputs: Inputs) -> StampedTable:
    rows = inputs.select(block="null_rejection", statistic="rejection_rate")
    tests = {"Algorithm 1": w.STUDENTIZED, "FairTest": w.FAIRTEST, "unstudentised": w.UNSTUDENTIZED}
    return tabulated(
        title="Comparison of null rejection probabilities.",
        stub=("Hypothesis",),
        columns=(*_rates_of(tests), Column("Desired", decimals=2, cell=lambda part: float(rows["alpha"].iloc[0]))),
        rows=[((name,), rows[rows["case"] == case]) for case, name in w.NULLS.items()],
        stamp=inputs.stamp("null_rejection"),
        notes=(
            f"Shares of {count(rows, 'simulations')} simulations of {count(rows, 'n')} pairs, {count(rows, 'draws')} "
            f"permutations each, with {100 * LEVEL:.0f} % Wilson intervals.",
            "All tests use Pearson's correlation. FairTest pools and shuffles both variables, cuts them in halves and "
            "compares the correlation of the halves with the observed one. The unstudentised test permutes the "
            "errors. Algorithm 1 does the same with the studentised correlation.",
            "In the row \u201cIndependence\u201d, the hypothesis is false, so a rate below the level is a loss of "
            "power.",
        ),
    )


def _rates_of(tests: Mapping[str, str]) -> list[Column]:
    """Return a column for the rate of each test, by its name in the table."""
    return [
        Column(
            name,
            "value and interval",
            decimals=4,
            cell=lambda part, test=test: estimate("share", part[part["test"] == test]),
        )
        for name, test in tests.items()
    ]


def count(rows: pd.DataFrame, column: str) -> str:
    """Format the number in a column: ``10,000``, or ``500 to 4,000`` if the settings differ."""
    return " to ".join(f"{end:,}" for end in _ends(rows[column]))


def share(rows: pd.DataFrame, column: str) -> str:
    """Format the share in a column: ``80 %``, or ``20 % to 80 %`` if the settings differ."""
    return " to ".join(f"{end} %" for end in _ends((100 * rows[column]).round()))


def _ends(values: pd.Series) -> list[int]:
    found = sorted({int(value) for value in values.dropna()})
    return list(dict.fromkeys([found[0], found[-1]]))


@artefact(
    "Both groups have the same false negative rate (first part) or the same AUC (second part). Section 4.2 describes "
    "the first settings, but our copy of the paper lacks their numbers, so we chose them. In the other settings, "
    "group B has few positives.",
)
def table_levels(inputs: Inputs) -> StampedTable:
    rates = pd.concat([inputs.select(block=block, statistic="rejection_rate") for block in SETTINGS])
    aucs = inputs.select(block=AUCS, statistic="rejection_rate")
    rare = inputs.select(block=RARE, statistic="rejection_rate")
    rows: list[tuple[tuple[str, ...], tuple[pd.DataFrame, pd.DataFrame]]] = []
    for (block, n_a, n_b, tpr), setting in rates.groupby(["block", "n_a", "n_b", "rate"], sort=False):
        same_sizes = aucs[(aucs["n_a"] == n_a) & (aucs["n_b"] == n_b)]
        rows.append(((SETTINGS[str(block)], *_sizes(setting), f"{tpr:g}"), (setting, same_sizes)))
    for _, setting in rare.groupby(["n_a", "n_b"], sort=False):
        labels = (f"{share(rare, 'positives_b')} of B positive", *_sizes(setting), "")
        rows.append((labels, (setting.iloc[:0], setting)))
    return tabulated(
        title="Levels of the tests of equal false negative rates and of equal AUCs.",
        stub=("Setting", "n_A", "n_B", "positives of B", "TPR"),
        columns=[
            *_columns(inputs, 0, "Equal FNR", "", w.tests_in(list(rates["test"]))),
            *_columns(inputs, 1, "Equal AUC", "AUC, ", AUC_TESTS),
        ],
        rows=rows,
        stamp=inputs.stamp(BLOCKS),
        split=("Equal AUC",),
        notes=_notes(rates, aucs, rare),
    )


@artefact(
    "The true positive rate is slightly higher in group A, and the groups have unequal variances. A test that rejects "
    "names the group with the higher observed rate. The table shows how often a test rejects and names B.",
)
def table_directions(inputs: Inputs) -> StampedTable:
    rows = inputs.select(block="directions", statistic="wrong_direction")
    place = rows.iloc[0]
    return tabulated(
        title="Directional errors: how often each test names the wrong group.",
        stub=("True difference",),
        columns=_rates_of({w.TESTS[test].label: test for test in w.tests_in(list(rows["test"]))}),
        rows=[((f"{difference:g}",), part) for difference, part in rows.groupby("difference")],
        stamp=inputs.stamp("directions"),
        notes=(
            f"Share of {count(rows, 'simulations')} simulations with p \u2264 {place['alpha']:g} and an observed "
            f"difference of the wrong sign, {count(rows, 'draws')} permutations each, with "
            f"{100 * LEVEL:.0f} % Wilson intervals. Group A has {count(rows, 'n_a')} rows, "
            f"{share(rows, 'positives_a')} positive. Group B has {count(rows, 'n_b')} rows, "
            f"{share(rows, 'positives_b')} positive. The true positive rate is {place['rate']:g} in B, and higher by "
            "the true difference in A.",
            f"By section 2.3, the share is at most half the level, {place['alpha'] / 2:g}, for the studentised test in "
            f"large samples. {SMOOTHING}",
        ),
    )


def _sizes(setting: pd.DataFrame) -> tuple[str, str, str]:
    """Format the numbers of rows of A and B, and the expected number of positives of B."""
    n_a, n_b, positives = (float(setting[key].iloc[0]) for key in ("n_a", "n_b", "positives_b"))
    return f"{n_a:,.0f}", f"{n_b:,.0f}", f"{n_b * positives:,.0f}"


def _columns(inputs: Inputs, side: int, group: str, prefix: str, tests: Sequence[str]) -> Iterator[Column]:
    """Yield columns for the level of each test and the share of undefined samples, from one side of a pair of rows."""
    for test in tests:
        label = w.TESTS[test].label

        def of(pair: Sequence[pd.DataFrame], test: str = test) -> Cell:
            return None if pair[side].empty else estimate("share", pair[side][pair[side]["test"] == test])

        yield Column(f"{prefix}{label}", "value and interval", group=group, name=label, cell=of)

    def undefined(pair: Sequence[pd.DataFrame]) -> Cell:
        return None if pair[side].empty else _undefined(inputs, pair[side])

    yield Column(f"{prefix}undefined", group=group, name="undefined", cell=undefined)


def _undefined(inputs: Inputs, setting: pd.DataFrame) -> float:
    """Return the share of samples in which a test is undefined, the largest over the tests of a setting."""
    keys = ("block", "n_a", "n_b", "rate", "auc")
    place = {key: setting[key].iloc[0] for key in keys if setting[key].notna().all()}
    return float(inputs.select(**place, statistic="undefined")["value"].max())


def _notes(rates: pd.DataFrame, aucs: pd.DataFrame, rare: pd.DataFrame) -> tuple[str, ...]:
    alpha = float(rates["alpha"].iloc[0])
    both = pd.concat([aucs, rare])
    return (
        f"Share of simulations with p \u2264 {alpha:g}, with {100 * LEVEL:.0f} % Wilson intervals. The metric is "
        "equal in both groups, so every rejection is an error and the share should be at most the level.",
        f"{count(rates, 'simulations')} simulations of false negative rates and {count(both, 'simulations')} of AUCs, "
        f"{count(pd.concat([rates, both]), 'draws')} permutations each.",
        f"{share(rates, 'positives_a')} of A are positive and, except in the last rows, {share(rates, 'positives_b')} "
        "of B. The column \u201cpositives of B\u201d has their expected number. Undefined: share of samples in which a "
        "group has no positives or, for the AUC, in which its variance is zero or undefined. Undefined tests do not "
        "reject.",
        f"The AUC is {float(aucs['auc'].iloc[0]):g} in both groups. Scores are normal and have the same distribution "
        f"in both groups given the label. {DELONG}",
        "The exact test rejects less often than its level, especially with few positives.",
        SMOOTHING,
    )


@artefact(
    "The groups have the same false negative rate and different shares of positives. The unstudentised test has far "
    "too many small p-values. We chose the settings, because our copy of the paper lacks them.",
)
def figure_1(inputs: Inputs) -> Picture:
    rows = inputs.select(block="p_values", statistic="p_share")
    alpha, simulations = float(rows["alpha"].iloc[0]), int(rows["simulations"].iloc[0])
    figure, (panels,) = new_panels(2.2, 1, len(PUBLISHED_PANELS), sharey=True)
    for test, axes in zip(PUBLISHED_PANELS, panels, strict=True):
        bins = rows[rows["test"] == test].sort_values("bin_low")
        low, high, value = (bins[name].to_numpy(float) for name in ("bin_low", "bin_high", "value"))
        width = high - low
        for edge in multinomial_band(float(np.median(width)), simulations):
            level(axes, edge, linewidth=0.6, linestyle=(0, (1, 1.5)))
        inside = high <= alpha * (1 + 1e-9)
        look: Any = {"align": "edge", "color": w.TESTS[test].color, "edgecolor": "white", "linewidth": 0.5}
        for chosen, shade in ((inside, 1.0), (~inside, 0.5)):
            axes.bar(low[chosen], (value / width)[chosen], width[chosen], alpha=shade, **look)
        level(axes, 1)
        rejected = float(inputs.values(block="p_values", statistic="rejection_rate", test=test).mean())
        axes.text(
            0.97, 0.95, f"p \u2264 {alpha:g}: {rejected:.3f}", transform=axes.transAxes, ha="right", va="top",
            fontsize=7.5,
        )  # fmt: skip
        axes.set_xlim(0, 1)
    titles = [w.TESTS[test].label for test in PUBLISHED_PANELS]
    finish(figure, panels, "p-value", "density", titles=titles)
    place = rows.iloc[0]
    return Picture(
        figure,
        "p-values of three tests of equal false negative rates.",
        inputs.stamp("p_values"),
        "Three histograms of p-values, with many small ones for the unstudentised test and nearly uniform otherwise.",
        notes=(
            f"{simulations:,} simulations with {count(rows, 'draws')} permutations or resamples each. Group A has "
            f"{count(rows, 'n_a')} rows, {share(rows, 'positives_a')} positive. Group B has {count(rows, 'n_b')} rows, "
            f"{share(rows, 'positives_b')} positive. The true positive rate is {place['rate']:g} in both.",
            f"Dashed: uniform p-values. Dotted: {100 * LEVEL:.0f} % band of their bars. Dark: p \u2264 {alpha:g}, "
            "with the share of simulations.",
        ),
    )


@artefact(
    "This result is not in the paper. The studentised test, LiFT's shortcut and the bootstrap rely on large numbers of "
    "positives. With few positives, they reject equal false negative rates too often. The test that permutes within "
    "the positives and enumerates all outcomes is exact for any number. There is no exact test of equal AUCs: the "
    "studentised test keeps its level if a fifth of the group is positive, and rejects too often if few of many rows "
    "are positive.",
)
def figure_levels(inputs: Inputs) -> Picture:
    rows = _with_positives(inputs.select(block="few_positives", statistic="rejection_rate"))
    aucs, rare = (_with_positives(inputs.select(block=block, statistic="rejection_rate")) for block in (AUCS, RARE))
    aucs = aucs[(aucs["n_a"] == rows["n_a"].iloc[0]) & aucs["n_b"].isin(rows["n_b"])]
    alpha = float(rows["alpha"].iloc[0])
    figure, (panels,) = new_panels(2.7, 1, 3)
    for axes, simulated in zip(panels, (rows, rows, aucs), strict=True):
        band = binomial_band(alpha, int(simulated["simulations"].min()))
        axes.axhspan(*band, color=FAINT, alpha=0.3, linewidth=0, zorder=0)
        level(axes, alpha)
        _curves(axes, simulated, "positives")
        counts_along(axes, simulated["positives"])
    _curves(panels[2], rare, "positives", hollow=True)
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(0, NEAR_THE_LEVEL * alpha)
    panels[2].set_ylim(0, HEADROOM * pd.concat([aucs, rare])["value"].max())
    panels[2].text(
        0.98, 0.98, f"filled: {share(aucs, 'positives_b')} of B positive\nhollow: {share(rare, 'positives_b')}",
        transform=panels[2].transAxes, ha="right", va="top", fontsize=7.5,
    )  # fmt: skip
    titles = ("equal FNR", "equal FNR, near the level", "equal AUC")
    finish(figure, panels, "expected positives of group B", f"share rejected at level {alpha:g}", 3, titles)
    place = rows.iloc[0]
    return Picture(
        figure,
        "Level of each test with few positives.",
        inputs.stamp(("few_positives", AUCS, RARE)),
        "Curves of rejection rates. With few positives, the studentised test, the shortcut and the bootstrap rise "
        "above the level. The exact test stays at or below it. The studentised test of AUCs rises if few of many rows "
        "are positive.",
        notes=(
            f"Dashed: the level. Grey: {100 * LEVEL:.0f} % band of a test with exactly this level. A test above "
            "the band rejects too often.",
            f"Group A has {count(rows, 'n_a')} rows, {share(rows, 'positives_a')} positive. Group B is "
            f"{share(rows, 'positives_b')} positive (hollow markers: {share(rare, 'positives_b')}), and its size grows "
            f"from left to right. (a, b): equal false negative rates, true positive rate {place['rate']:g}, "
            f"{count(rows, 'simulations')} simulations. (c): equal AUCs of {float(aucs['auc'].iloc[0]):g}, "
            f"{count(pd.concat([aucs, rare]), 'simulations')} simulations. {count(rows, 'draws')} permutations each.",
            f"{SMOOTHING} {DELONG}",
        ),
    )


def _with_positives(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the expected number of positives of group B."""
    return rows.assign(positives=rows["n_b"].astype(float) * rows["positives_b"].astype(float))


@artefact("Power of each test, compared with the formula of section 5.1.")
def figure_power(inputs: Inputs) -> Picture:
    rows = inputs.select(block="power", statistic="power")
    predicted = inputs.select(block="power", statistic="predicted_power")
    alpha = float(rows["alpha"].iloc[0])
    differences = sorted(set(rows["difference"]))
    # The formula is one-sided, which matters where nothing is to be found.
    found = predicted.assign(value=predicted["value"].where(predicted["difference"] > 0, alpha))
    formula = found.set_index(["difference", "n"])["value"].sort_index()
    down = -(-(len(differences) + 1) // ACROSS)
    figure, grid = new_panels(0.5 + 1.75 * down, down, ACROSS, sharex=True)
    whole, *panels = grid.flat
    for difference in filter(None, differences):
        one = formula[difference]
        whole.plot(one.index, one, color=FAINT, linewidth=2.5, alpha=0.5)
        middle = (one - 0.5).abs().idxmin()
        whole.annotate(
            f"{difference:g}", (middle, one[middle]), (9, -11), "data", "offset points", fontsize=7, ha="center"
        )
    level(whole, alpha)
    reach = 0.0
    for difference, axes in zip(differences, panels, strict=False):
        level(axes, 0)
        of_one = rows[rows["difference"] == difference]
        tests = w.tests_in(list(of_one["test"]))
        for k, test in enumerate(tests):
            found = of_one[of_one["test"] == test].sort_values("n")
            rates = [estimate("share", found.iloc[[i]]) for i in range(len(found))]
            value, *ends = np.array([(one.value, one.low, one.high) for one in rates]).T
            # Side by side, so that equal shares do not hide each other.
            place = found["n"].to_numpy(float) * BESIDE ** (k - (len(tests) - 1) / 2)
            points(whole, place, value, w.TESTS[test], ends, markersize=2.2)
            expected = formula[difference].loc[found["n"]].to_numpy(float)
            points(axes, place, value - expected, w.TESTS[test], np.array(ends) - expected)
            reach = max(reach, *np.abs(np.array(ends) - expected).ravel())
        axes.set_title(f"difference {difference:g}" if difference else "no difference", fontsize=8.5)
    for axes in panels[: len(differences)]:
        axes.set_ylim(-1.05 * reach, 1.05 * reach)
    for axes in panels[len(differences) :]:
        axes.set_axis_off()
    for letter, axes in zip("abcdefghijkl", [whole, *panels[: len(differences)]], strict=False):
        counts_along(axes, rows["n"])
        axes.tick_params(axis="x", rotation=40, labelbottom=True)
        panel_letter(axes, letter)
    whole.set(ylim=(0, 1.03), ylabel="share rejected")
    whole.set_title("by true difference", fontsize=8.5)
    for axes in (panels[0], *grid[1:, 0]):
        axes.set_ylabel("share \u2212 formula")
    for axes in [whole, *panels][max(0, len(differences) + 1 - ACROSS) : len(differences) + 1]:
        axes.set_xlabel("rows of both groups")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=ACROSS)
    place = rows.iloc[0]
    return Picture(
        figure,
        f"Power to detect a difference in {w.METRICS[str(place['metric'])]}.",
        inputs.stamp("power"),
        "Share rejected against the number of rows, as points on the rising curves of a formula. Then, for each true "
        "difference, the share minus the formula, near 0.",
        notes=(
            f"(a) shows the share rejected, the other panels compare it with the formula. Dashed: the level {alpha:g}. "
            "Grey: the formula, a normal approximation, labelled with the true difference. Other panels: the share "
            f"minus the formula, or minus the level if there is no difference. Bars: {100 * LEVEL:.0f} % Wilson "
            "intervals. At each number of rows, the tests are drawn side by side.",
            f"{count(rows, 'simulations')} simulations with groups of equal size. The rate in B is {place['rate']:g}. "
            f"{share(rows, 'positives_a')} of A and {share(rows, 'positives_b')} of B are positive.",
        ),
    )


def multinomial_band(width: float, simulations: int) -> tuple[float, float]:
    """Return the interval of the height of a histogram bar of uniform p-values with probability ``LEVEL``.
    A bar of this ``width`` holds Binomial(simulations, width) p-values. Its height is their share divided by the width.
    """
    low, high = binomial_band(width, simulations)
    return low / width, high / width


def binomial_band(expected: float, simulations: int) -> tuple[float, float]:
    """Return the central interval of Binomial(simulations, expected) / simulations with probability ``LEVEL``."""
    low, high = binom.interval(LEVEL, simulations, expected)
    return float(low) / simulations, float(high) / simulations


def _curves(axes: Axes, rows: pd.DataFrame, against: str, hollow: bool = False) -> None:
    """Plot a curve for each test."""
    for test in w.tests_in(list(rows["test"])):
        look, points = w.TESTS[test], rows[rows["test"] == test].sort_values(against)
        curve(axes, points[against], points["value"], look, markerfacecolor="white" if hollow else look.color)
