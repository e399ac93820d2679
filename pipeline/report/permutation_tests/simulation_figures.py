"""Figures of what was simulated: p-values, levels where positives are few, and power."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import binom

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.permutation_tests.simulation_tables import AUCS, CONFIDENCE, DELONG, RARE, SMOOTHING, count, share
from pipeline.report.picture import Picture
from pipeline.report.style import DASHED, FAINT, INK, curve, finish, new_figure, panel_letter

ACROSS = 3
NEAR_THE_LEVEL = 3
"""How many times the level the enlarged panel reaches."""
HEADROOM = 1.25
PUBLISHED_PANELS = (w.UNSTUDENTIZED, w.STUDENTIZED, w.BOOTSTRAP)


@registry.figure()
def figure_1(inputs: Inputs) -> Picture:
    """Groups with the same false negative rate and different shares of positives. Without studentising, small p-values
    are far too many. The settings are proposed here: those of the paper are lost.
    """
    rows = inputs.select(block="p_values", statistic="p_share")
    alpha, simulations = float(rows["alpha"].iloc[0]), int(rows["simulations"].iloc[0])
    figure = new_figure(2.2)
    panels = figure.subplots(1, len(PUBLISHED_PANELS), sharey=True)
    for test, axes in zip(PUBLISHED_PANELS, panels, strict=True):
        bins = rows[rows["test"] == test].sort_values("bin_low")
        if bins.empty:
            raise ValueError(f"block 'p_values' has no histogram of test {test!r}: found {sorted(set(rows['test']))}")
        width = (bins["bin_high"] - bins["bin_low"]).to_numpy(float)
        height = bins["value"].to_numpy(float) / width
        style = w.style_of_test(test)
        low, high = multinomial_band(float(np.median(width)), simulations)
        for edge in (low, high):
            axes.axhline(edge, color=INK, linewidth=0.6, linestyle=(0, (1, 1.5)))
        inside = bins["bin_high"].to_numpy(float) <= alpha * (1 + 1e-9)
        for chosen, shade in ((inside, 1.0), (~inside, 0.5)):
            axes.bar(
                bins["bin_low"].to_numpy(float)[chosen], height[chosen], width[chosen], align="edge",
                color=style.color, alpha=shade, edgecolor="white", linewidth=0.5,
            )  # fmt: skip
        axes.axhline(1, color=INK, linewidth=0.8, linestyle=DASHED)
        rejected = float(inputs.values(block="p_values", statistic="rejection_rate", test=test).mean())
        axes.text(
            0.97, 0.95, f"p \u2264 {alpha:g}: {rejected:.3f}", transform=axes.transAxes, ha="right", va="top",
            fontsize=7.5,
        )  # fmt: skip
        axes.set_xlim(0, 1)
        axes.set_title(style.label)
    finish(figure, panels, "p-value", "density")
    place = rows.iloc[0]
    return Picture.stamped(
        figure,
        "p-values of three tests of equal false negative rates.",
        inputs.stamp("p_values"),
        "Three histograms: p-values crowd near 0 without studentising, and are nearly uniform with it.",
        notes=(
            f"{simulations:,} simulations of {count(rows, 'n_a')} rows of A, {share(rows, 'positives_a')} positive, "
            f"and {count(rows, 'n_b')} of B, {share(rows, 'positives_b')} positive; true positive rate "
            f"{place['rate']:g} in both; {count(rows, 'draws')} permutations or resamples.",
            f"Dashed: uniform p-values; dotted: {CONFIDENCE * 100:.0f} % of their bars would lie between. Dark: "
            f"p \u2264 {alpha:g}, with the share of simulations in it.",
        ),
    )


@registry.figure(place=3)
def figure_levels(inputs: Inputs) -> Picture:
    """The study's own finding: the studentised test, LiFT's shortcut and the bootstrap rely on large numbers of
    positives and reject equal false negative rates too often where they are few. Permuting within the positives and
    enumerating all outcomes is exact, whatever their number. Of equal AUCs there is no exact test: the studentised one
    has its level where a fifth of the group is positive, and rejects too often where a few positives stand among many
    rows.
    """
    rows = _with_positives(inputs.select(block="few_positives", statistic="rejection_rate"))
    aucs, rare = (_with_positives(inputs.select(block=block, statistic="rejection_rate")) for block in (AUCS, RARE))
    aucs = aucs[(aucs["n_a"] == rows["n_a"].iloc[0]) & aucs["n_b"].isin(rows["n_b"])]
    alpha = float(rows["alpha"].iloc[0])
    figure = new_figure(2.7)
    panels = figure.subplots(1, 3)
    for axes, simulated in zip(panels, (rows, rows, aucs), strict=True):
        band = binomial_band(alpha, int(simulated["simulations"].min()))
        axes.axhspan(*band, color=FAINT, alpha=0.3, linewidth=0, zorder=0)
        axes.axhline(alpha, color=INK, linewidth=0.8, linestyle=DASHED)
        for test in w.tests_in(list(simulated["test"])):
            _curve(axes, simulated[simulated["test"] == test], "positives", test)
        axes.set_xscale("log")
        _count_ticks(axes, simulated["positives"].to_numpy(float))
    for test in w.tests_in(list(rare["test"])):
        _curve(panels[2], rare[rare["test"] == test], "positives", test, hollow=True)
    panels[0].set_ylim(bottom=0)
    panels[1].set_ylim(0, NEAR_THE_LEVEL * alpha)
    panels[2].set_ylim(0, HEADROOM * pd.concat([aucs, rare])["value"].max())
    panels[2].text(
        0.98, 0.98, f"filled: {share(aucs, 'positives_b')} of B positive\nhollow: {share(rare, 'positives_b')}",
        transform=panels[2].transAxes, ha="right", va="top", fontsize=7.5,
    )  # fmt: skip
    for axes, title in zip(panels, ("equal FNR", "equal FNR, near the level", "equal AUC"), strict=True):
        axes.set_title(title)
    finish(figure, panels, "expected positives of group B", f"share rejected at level {alpha:g}", columns=3)
    place = rows.iloc[0]
    return Picture.stamped(
        figure,
        "The level of each test where positives are few.",
        inputs.stamp(("few_positives", AUCS, RARE)),
        "Curves of rejection rates: studentised, shortcut and bootstrap rise above the level as positives get fewer; "
        "the exact test within outcome stays at or below it. The studentised test of AUCs rises where a few positives "
        "stand among many rows.",
        notes=(
            f"Group A has {count(rows, 'n_a')} rows, {share(rows, 'positives_a')} positive; group B is "
            f"{share(rows, 'positives_b')} positive (hollow markers: {share(rare, 'positives_b')}) and grows from left "
            f"to right. (a, b): equal false negative rates, true positive rate {place['rate']:g}, "
            f"{count(rows, 'simulations')} simulations. (c): equal AUCs of {float(aucs['auc'].iloc[0]):g}, "
            f"{count(pd.concat([aucs, rare]), 'simulations')} simulations. {count(rows, 'draws')} permutations.",
            f"Dashed: the level. Grey: where {CONFIDENCE * 100:.0f} % of simulations of a test with exactly that level "
            "would lie. Above it a test rejects too often.",
            f"{SMOOTHING} {DELONG}",
        ),
    )


def _with_positives(rows: pd.DataFrame) -> pd.DataFrame:
    """With the expected number of positives of group B."""
    return rows.assign(positives=rows["n_b"].astype(float) * rows["positives_b"].astype(float))


@registry.figure(place=4)
def figure_power(inputs: Inputs) -> Picture:
    """How often each test finds a true difference, and how near the formula of section 5.1 comes."""
    rows = inputs.select(block="power", statistic="power")
    predicted = inputs.select(block="power", statistic="predicted_power")
    alpha = float(rows["alpha"].iloc[0])
    differences = sorted(set(rows["difference"]))
    down = -(-(len(differences) + 1) // ACROSS)
    figure = new_figure(0.5 + 1.75 * down)
    grid = figure.subplots(down, ACROSS, sharex=True, sharey=True, squeeze=False)
    for letter, difference, axes in zip("abcdefghijk", differences, grid.flat, strict=False):
        axes.axhline(alpha, color=INK, linewidth=0.8, linestyle=DASHED)
        formula = predicted[predicted["difference"] == difference].sort_values("n")
        if difference > 0:
            axes.plot(formula["n"], formula["value"], color=FAINT, linewidth=3, alpha=0.5, label="formula")
        here = rows[rows["difference"] == difference]
        for test in w.tests_in(list(here["test"])):
            _curve(axes, here[here["test"] == test], "n", test)
        axes.set_xscale("log")
        _count_ticks(axes, rows["n"].to_numpy(float))
        axes.tick_params(axis="x", rotation=40, labelbottom=True)
        axes.set_ylim(0, 1.03)
        axes.set_title(f"true difference {difference:g}" if difference else "no difference", fontsize=8.5)
        panel_letter(axes, letter)
    for axes in grid.flat[len(differences) :]:
        axes.set_axis_off()
    grid.flat[-1].legend(*grid.flat[len(differences) - 1].get_legend_handles_labels(), loc="center")
    for axes in grid[:, 0]:
        axes.set_ylabel("share rejected")
    for axes in grid.flat[max(0, len(differences) - ACROSS) : len(differences)]:
        axes.set_xlabel("rows of both groups")
    place = rows.iloc[0]
    return Picture.stamped(
        figure,
        f"The power to detect a difference in {w.metric_label(str(place['metric']))}.",
        inputs.stamp("power"),
        "Rising curves of the share rejected against the number of rows, one panel for each true difference.",
        notes=(
            f"{count(rows, 'simulations')} simulations, groups of equal size; the rate in B is {place['rate']:g}; "
            f"{share(rows, 'positives_a')} of A and {share(rows, 'positives_b')} of B are positive. Dashed: the level "
            f"{alpha:g}. Grey: the normal approximation behind the sample sizes of section 5.1.",
        ),
    )


def multinomial_band(width: float, simulations: int) -> tuple[float, float]:
    """Where the height of one bar of a histogram of uniform p-values lies with probability ``CONFIDENCE``.

    A bar of that ``width`` holds Binomial(simulations, width) of them; its height is their share over the width.
    """
    low, high = binomial_band(width, simulations)
    return low / width, high / width


def binomial_band(expected: float, simulations: int) -> tuple[float, float]:
    """The central interval of Binomial(simulations, expected) / simulations with probability ``CONFIDENCE``."""
    low, high = binom.interval(CONFIDENCE, simulations, expected)
    return float(low) / simulations, float(high) / simulations


def _curve(axes: Axes, rows: pd.DataFrame, against: str, test: str, hollow: bool = False) -> None:
    look, points = w.style_of_test(test), rows.sort_values(against)
    curve(axes, points[against], points["value"], look, markerfacecolor="white" if hollow else look.color)


def _count_ticks(axes: Axes, counts: Sequence[float] | np.ndarray) -> None:
    """Label a logarithmic axis with the counts that occur."""
    places = sorted(set(np.asarray(counts, float)))
    axes.set_xticks(places, [f"{place:,.0f}" for place in places])
    axes.minorticks_off()
