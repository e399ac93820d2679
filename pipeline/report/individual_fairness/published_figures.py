"""Figures 1 to 3 of Maity et al. (2021)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.individual_fairness.facts import configured
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.settings import select
from pipeline.report.style import DASHED, INK, curve, finish, method_style, new_figure

BLUE_TO_RED = "RdBu_r"
GROUPS = (("o", "majority"), ("^", "minority"))
BAND = (10, 90)
INTERCEPTS = ("fitted", "zero")

SHORT_RANGE = 6.0
"""The ratio of an axis's ends below which 1, 2, 5 would leave too few labels."""


@registry.figure()
def figure_1(inputs: Inputs) -> Picture:
    """A classifier with θ₁ = 0 is individually fair whatever θ₂ is. Blue is accepted, red is rejected. Top: the
    authors' generator (labels centred), the intercept fitted to the data as stated. Middle: an intercept of zero, which
    comes near the published picture. Bottom: labels as equation E.1 is printed, which makes every label 1, so that no
    intercept can be fitted. From left to right the metric discounts the true direction and directions 5° and 10° off.
    """
    variants = [
        ("intercept fitted", {"block": "heatmaps", "intercept": "fitted", "metric": "rotated"}),
        ("intercept zero", {"block": "heatmaps", "intercept": "zero", "metric": "rotated"}),
        ("labels as printed", {"block": "heatmaps_printed"}),
    ]
    return _heatmaps(inputs, variants, "The test statistic T_n of logistic classifiers on a grid of coefficients.")


@registry.figure(place=1)
def figure_1_diagonal(inputs: Inputs) -> Picture:
    """The paper's formula for the rotated metric has no cross term; its text and its authors' code rotate. Both agree
    at 0°.
    """
    variants = [
        (f"intercept {intercept}", {"block": "heatmaps", "intercept": intercept, "metric": "diagonal"})
        for intercept in INTERCEPTS
    ]
    return _heatmaps(inputs, variants, "The same heat maps with the diagonal metric of the printed formula.")


@registry.figure()
def figure_2(inputs: Inputs) -> Picture:
    """The attack grows stronger with the number of its steps; the paper takes 500."""
    datasets = inputs.names("dataset", block="audit")
    figure = new_figure(2.7)
    panels = np.atleast_1d(figure.subplots(1, len(datasets)))
    for dataset, axes in zip(datasets, panels, strict=True):
        for method in inputs.names("method", block="audit", dataset=dataset):
            _curve(axes, select(inputs.rows, _curve_setting(dataset, method)), method)
        delta = configured(inputs, "audit", dataset, inputs.names("method", block="audit", dataset=dataset)[0])[
            "audit.delta"
        ]
        axes.axhline(delta, color=INK, linewidth=0.8, linestyle=DASHED)
        axes.annotate(
            f"$\\delta$ = {delta:g}", (1, delta), xycoords=("axes fraction", "data"), xytext=(-1, 2),
            textcoords="offset points", fontsize=7, ha="right", va="bottom",
        )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_log_ticks(axes)
        axes.set_title(w.dataset_label(dataset))
    panels[0].legend(loc="upper left")
    finish(figure, panels, "number of steps $T$", "test statistic $T_n$")
    return Picture.stamped(
        figure,
        "The test statistic as a function of the stopping time.",
        inputs.stamp("audit"),
        "Curves of T_n against the number of steps, one for each method, with the tolerance as a horizontal line.",
        notes=(f"Lines: mean over the repetitions. Bands: from the {BAND[0]} % to the {BAND[1]} % quantile.",),
    )


@registry.figure()
def figure_3(inputs: Inputs) -> Picture:
    """Two groups that differ in the first coordinate; the fair metric ignores that coordinate."""
    name = next((n for n in sorted(inputs.datasets) if n.startswith(f"{w.SIMULATED}@labels=centred")), "")
    if not name:
        raise ValueError(f"figure_3 needs the prepared simulated data: found {sorted(inputs.datasets)}")
    points = inputs.datasets[name].points
    features, label, group = (points[part] for part in ("features", "label", "group"))
    figure = new_figure(2.1)
    axes = figure.subplots()
    for g, (marker, group_name) in enumerate(GROUPS):
        for y in (0, 1):
            members = features[(group == g) & (label == y)]
            color = "#0072B2" if y else "#D55E00"
            axes.scatter(
                members[:, 0], members[:, 1], s=13 if g == 0 else 17, marker=marker, linewidths=0.7,
                facecolors=color if y else "none", edgecolors=color, alpha=0.9,
                label=f"{group_name}, label {y} ({len(members)})",
            )  # fmt: skip
    axes.set_aspect("equal")
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    figure.legend(loc="outside upper center", ncols=4, columnspacing=1.4, handletextpad=0.1)
    return Picture.stamped(
        figure,
        "Simulated data.",
        inputs.stamp("heatmaps"),
        "Scatter plot of two clusters that differ in the first coordinate; the smaller one is the minority.",
        notes=("In brackets: number of points. Labels are decided relative to each group's mean.",),
    )


def heatmap(panel: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """theta_1 (a,), theta_2 (b,), and the statistic (b, a) of one panel's rows.

    Raises ValueError where the grid is not complete.
    """
    grid = panel.pivot(index="theta_2", columns="theta_1", values="value").sort_index().sort_index(axis=1)
    # A statistic that is NaN in the rows is a hole in the picture, not an error; a missing row is one.
    if len(panel) != grid.size:
        raise ValueError(f"expected a full grid of {grid.size} classifiers, found {len(panel)} rows: audit it again")
    return grid.columns.to_numpy(float), grid.index.to_numpy(float), grid.to_numpy(float)


def _heatmaps(inputs: Inputs, variants: Sequence[tuple[str, dict[str, str]]], title: str) -> Picture:
    rows = [(name, select(inputs.rows, {**setting, "statistic": "T_n"})) for name, setting in variants]
    rows = [(name, found) for name, found in rows if not found.empty]
    if not rows:
        raise ValueError(
            "there are no rows of block 'heatmaps', method 'logistic_grid', statistic 'T_n': audit it again"
        )
    angles = sorted(rows[0][1]["angle"].unique())
    delta = float(configured(inputs, "heatmaps", w.SIMULATED, "logistic_grid")["audit.delta"])
    figure = new_figure(2.0 * len(rows) + 0.2)
    grid = figure.subplots(len(rows), len(angles), sharex=True, sharey=True, squeeze=False)
    for r, (name, found) in enumerate(rows):
        values = found["value"].to_numpy(float)
        low, high = np.nanmin(values), np.nanmax(values)
        # Both sides of the tolerance get their half of the colours, however far the statistic reaches.
        norm = TwoSlopeNorm(delta, vmin=min(low, delta - 0.05), vmax=max(high, delta + 0.05))
        for c, angle in enumerate(angles):
            _panel(grid[r, c], found[found["angle"] == angle], norm, delta)
            if r == 0:
                grid[r, c].set_title("true metric" if angle == 0 else f"rotated by {angle:g}\u00b0")
            if r == len(rows) - 1:
                grid[r, c].set_xlabel(r"$\theta_1$")
        grid[r, 0].set_ylabel(f"{name}\n$\\theta_2$")
        _color_bar(figure, list(grid[r]), norm, delta)
    blocks = list(dict.fromkeys(setting["block"] for _, setting in variants if "block" in setting))
    return Picture.stamped(
        figure,
        title,
        inputs.stamp([b for b in blocks if (inputs.rows["block"] == b).any()]),
        "Heat maps over two coefficients, blue where the test accepts, red where it rejects, the boundary in black.",
        notes=(
            f"Black: the boundary of rejection, T_n = {delta:g}. Each row of panels has a colour scale of its own.",
            "Data: equation E.1, with labels centred on the mean of each group, as the authors' generator has them"
            + ("; in the last row the labels are as the equation is printed." if len(rows) > len(INTERCEPTS) else "."),
        ),
    )


def _panel(axes: Axes, panel: pd.DataFrame, norm: TwoSlopeNorm, delta: float) -> None:
    theta_1, theta_2, statistic = heatmap(panel)
    axes.pcolormesh(theta_1, theta_2, statistic, cmap=BLUE_TO_RED, norm=norm, shading="nearest", rasterized=False)
    if np.nanmin(statistic) < delta < np.nanmax(statistic):
        axes.contour(theta_1, theta_2, statistic, levels=[delta], colors="black", linewidths=1.1)
    axes.set_aspect("equal")
    axes.set_xticks([-4, -2, 0, 2, 4])
    axes.set_yticks([-4, -2, 0, 2, 4])
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _color_bar(figure: Figure, axes: list[Axes], norm: TwoSlopeNorm, delta: float) -> None:
    bar = figure.colorbar(ScalarMappable(norm=norm, cmap=BLUE_TO_RED), ax=axes, aspect=16, pad=0.015, shrink=0.95)
    low, high = float(norm.vmin or 0), float(norm.vmax or 0)
    ticks = [low, delta, (delta + high) / 2, high]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.axhline(delta, color="black", linewidth=1.1)
    bar.ax.set_title("$T_n$", fontsize=8.5, pad=5)
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]


def _curve_setting(dataset: str, method: str) -> dict[str, str | float]:
    return {"block": "audit", "dataset": dataset, "method": method, "statistic": "T_n", "metric_split": "test"}


def _curve(axes: Axes, rows: pd.DataFrame, method: str) -> None:
    table = rows.pivot(index="steps", columns="repetition", values="value").sort_index()
    steps, values = table.index.to_numpy(float), table.to_numpy(float)
    mean, band = np.nanmean(values, axis=1), np.nanpercentile(values, BAND, axis=1)
    curve(axes, steps, mean, method_style(method), band, markevery=max(1, len(steps) // 9))


def plain_log_ticks(axes: Axes, which: str = "xy") -> None:
    """Label logarithmic axes with plain numbers: 1, 2, 5 times the powers of ten, more where the range is short."""
    for axis, limits in [pair for name, pair in zip("xy", _axes_and_limits(axes), strict=True) if name in which]:
        short = limits[1] / limits[0] < SHORT_RANGE
        axis.set_major_locator(
            LogLocator(subs=(1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0) if short else (1.0, 2.0, 5.0))
        )
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
        if short:
            axis.set_minor_locator(NullLocator())


def _axes_and_limits(axes: Axes) -> tuple[tuple[Axis, tuple[float, float]], tuple[Axis, tuple[float, float]]]:
    return (axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())
