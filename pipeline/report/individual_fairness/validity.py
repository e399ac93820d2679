"""Coverage and level of both tests by simulation: theorems 3.1 and C.1, corollaries 3.2, 3.3 and C.2."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import norm

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.individual_fairness.facts import configured
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import number, plain
from pipeline.report.stamp import Picture
from pipeline.report.style import DASHED, FAINT, INK, MethodStyle, counts_along, curve, finish, level, new_panels
from pipeline.report.table import Column, Table, tabulated
from pipeline.types import AuditResult

BLOCK, AUDIT = "validity", "loss_ratio_validity"
TESTS = {
    "loss": MethodStyle("loss ratio", "#0072B2", "o", "-"),
    "error": MethodStyle("error-rate ratio", "#D55E00", "s", (0, (4, 1.5))),
}
MONTE_CARLO = 0.95
"""Level of the bands for the error of the simulation itself."""


@registry.table(place=7)
def table_validity(inputs: Inputs) -> Table:
    """Samples are drawn from a population of simulated points whose true ratio is known, which is what the theorems on
    coverage and level speak about.
    """
    rows = inputs.select(block=BLOCK, statistic="rejection_rate")
    draws = int(rows["draws"].iloc[0])
    population = int(inputs.select(block=BLOCK, statistic="population")["value"].max())

    def column(name: str, statistic: str, group: str = "", **more: float) -> Column:
        def mean(place: Mapping[str, Any]) -> float:
            return float(inputs.values(**place, statistic=statistic, **more).mean())

        return Column(name, group, of=mean)

    return tabulated(
        title="Level and coverage of both tests, by simulation.",
        stub=("Test", "n"),
        columns=(
            column("two-sided coverage", "coverage_two_sided"),
            column("one-sided coverage", "coverage_one_sided"),
            *(
                column(f"delta = {m:g} truth", "rejection_rate", "Rejected, share of samples, at", delta_over_truth=m)
                for m in map(float, sorted(rows["delta_over_truth"].unique()))
            ),
            column("undefined samples", "undefined"),
            column("distance to normal", "kolmogorov_distance"),
        ),
        rows=[
            ((style.label, f"{int(n):,}"), {"block": BLOCK, "test": test, "n_sample": float(n)})
            for test, style in TESTS.items()
            for n in sorted(rows["n_sample"].unique())
        ],
        stamp=inputs.stamp(BLOCK),
        notes=(
            f"Shares of {draws:,} samples drawn with replacement from {population:,} simulated points, whose "
            f"ratio is known. The simulation's own error of a share near 0.95 is \u00b1{_half_width(0.95, draws):.3f}.",
            _setting(inputs),
            "At delta = truth the share rejected is the Type I error, nominally 0.05; below it is the power.",
            "Undefined: samples in which nobody is misclassified, so that no error-rate ratio exists; they neither "
            "cover nor reject.",
        ),
    )


@registry.figure(place=5)
def figure_validity(inputs: Inputs) -> Picture:
    """Simulation from a population whose true ratio is known, which is what the theorems on coverage, level and
    normality speak about.
    """
    result = _audit(inputs)
    rows = inputs.select(block=BLOCK, audit=AUDIT)
    sizes = np.sort(rows["n_sample"].dropna().unique())
    draws, alpha = int(rows["draws"].max()), float(rows["alpha"].max())
    figure, (panels,) = new_panels(2.75, 1, 4, width_ratios=[1.1, 1.1, 1, 1])
    _shares(panels[0], rows[rows["statistic"] == "coverage_two_sided"], 1 - alpha, draws)
    at_truth = rows[(rows["statistic"] == "rejection_rate") & np.isclose(rows["delta_over_truth"], 1.0)]
    _shares(panels[1], at_truth, alpha, draws)
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    for axes, (test, style) in zip(panels[2:], TESTS.items(), strict=True):
        found, levels = result.arrays[f"quantiles_{test}"].mean(axis=0), result.arrays["quantile_levels"]
        _quantiles(axes, found, levels, sizes, style)
    panels[2].set_ylabel("standardized statistic")
    finish(figure, panels, titles=["coverage", "Type I error", *(style.label for style in TESTS.values())])
    return Picture(
        figure,
        "The tests in a population whose ratio is known.",
        inputs.stamp(BLOCK),
        "Coverage near its nominal level for growing samples, and quantile plots that approach the diagonal.",
        notes=(
            f"(a) Two-sided intervals of level {1 - alpha:g}. (b) Share rejected at delta = truth. Grey: where "
            f"{MONTE_CARLO:.0%} of simulations of an exact test with {draws:,} samples would lie. "
            "(c, d) Quantiles (1 % to 99 %) of \u221an (S\u2099 \u2212 truth) / V\u2099 against the normal ones; "
            "darker for larger n.",
            _setting(inputs),
        ),
    )


def _setting(inputs: Inputs) -> str:
    """The one classifier, its attack, and the ratios that are true of the population."""
    values = configured(inputs, BLOCK, w.SIMULATED, "logistic_grid")
    truths = inputs.select(block=BLOCK, statistic="truth").groupby("test")["value"].mean()
    theta = plain(float(values["method.low"]))
    return (
        "Our own simulation, nothing of it was published: data of equation E.1 (labels centred), one logistic "
        f"classifier with theta_1 = theta_2 = {theta} (intercept: {values['method.intercept']}), attacked for "
        f"{int(values['audit.steps']):,} steps with lambda = {plain(float(values['audit.regularization']))}. Truth: "
        + ", ".join(f"{style.label} {number(float(truths[test]))}" for test, style in TESTS.items())
        + "."
    )


def _audit(inputs: Inputs) -> AuditResult:
    for _, result in sorted(inputs.audits.items()):
        if result.audit == AUDIT:
            return result
    raise ValueError(f"block {BLOCK!r} has no audit {AUDIT!r} with its arrays: found {sorted(inputs.audits)}")


def _half_width(share: float, draws: int) -> float:
    return float(norm.ppf((1 + MONTE_CARLO) / 2) * np.sqrt(share * (1 - share) / draws))


def _shares(axes: Axes, rows: pd.DataFrame, nominal: float, draws: int) -> None:
    half = _half_width(nominal, draws)
    axes.axhspan(nominal - half, nominal + half, color=FAINT, alpha=0.25, linewidth=0)
    level(axes, nominal)
    for test, style in TESTS.items():
        shares = rows[rows["test"] == test].groupby("n_sample")["value"].mean()
        curve(axes, shares.index, shares, style)
    counts_along(axes, rows["n_sample"].unique())
    axes.set_xlabel("sample size $n$")


def _quantiles(axes: Axes, quantiles: np.ndarray, levels: np.ndarray, sizes: np.ndarray, style: MethodStyle) -> None:
    normal = norm.ppf(levels)
    axes.plot(normal[[0, -1]], normal[[0, -1]], color=INK, linewidth=0.8, linestyle=DASHED)
    for i, (found, n) in enumerate(zip(quantiles, sizes, strict=True)):
        alpha = 0.25 + 0.75 * (i + 1) / len(sizes)
        axes.plot(normal, found, color=style.color, alpha=alpha, linewidth=1.0, label=f"n = {int(n):,}")
    axes.set_ylim(1.6 * normal[0], 1.6 * normal[-1])
    axes.set_xlabel("normal quantile")
    axes.legend(loc="upper left", fontsize=6.5, handlelength=1.4, borderpad=0, labelspacing=0.25)
