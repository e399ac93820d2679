"""Figures 1 to 3 of Maity et al. (2021), and further figures on tolerance, attack settings and subspaces."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from scipy.interpolate import interp1d

from fairness_audits.messages import enumerated
from fairness_audits.results.formats import parameter
from fairness_audits.results.style import INK, curve, finish, level, logarithmic, method_style, new_panels, step_band
from pipeline.report import labels as w
from pipeline.report.comparison import AS_STATED
from pipeline.report.estimators import LEVEL, wilson_band
from pipeline.report.individual_fairness import facts as q
from pipeline.report.individual_fairness.facts import configured
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.selection import Setting, parse_setting, select
from pipeline.report.stamp import Picture

BLUE_TO_RED = "RdBu_r"
GROUPS = (("o", "majority"), ("^", "minority"))
BAND = (10, 90)
TICKS = (-4, -2, 0, 2, 4)
CROSS: Any = {"linestyle": "none", "marker": "x", "markersize": 5, "markeredgewidth": 1.4, "zorder": 4}
READ: Any = {"linestyle": "none", "marker": "D", "markersize": 4.5, "markerfacecolor": "white", "color": "black"}
"""Markers of the authors' models in Figure 2, and of the values read off the published Figure 1."""
STABILITY = 2.0
"""Bound of stability: the iteration x <- x - 2 lambda eta (x - x0) contracts if 2 lambda eta < 2, diverges above 2."""


@artefact("The attack grows stronger with the number of steps. The paper takes 500 steps.")
def figure_2(inputs: Inputs, found: pd.DataFrame) -> Picture:
    datasets = inputs.names("dataset", block="audit")
    figure, panels = new_panels(2.7, 1, len(datasets))
    for dataset, axes in zip(datasets, panels.flat, strict=True):
        methods = inputs.names("method", block="audit", dataset=dataset)
        place = {"block": "audit", "dataset": dataset, "statistic": "T_n", "metric_split": "test"}
        for method in methods:
            table = select(inputs.rows, {**place, "method": method}).pivot(
                index="steps", columns="repetition", values="value"
            )
            steps, values = table.index.to_numpy(float), table.to_numpy(float)
            band = np.nanpercentile(values, BAND, axis=1)
            every, style = max(1, len(steps) // 9), method_style(method)
            curve(axes, steps, np.nanmean(values, axis=1), style, band, markevery=every)
            axes.plot(steps, np.nanmedian(values, axis=1), color=style.color, linewidth=0.7)
            axes.plot(*released(found, dataset, method), color=style.color, **CROSS)
        delta = configured(inputs, "audit", dataset, methods[0])["audit.delta"]
        level(axes, delta)
        axes.annotate(
            f"$\\delta$ = {delta:g}", (0, delta), xycoords=("axes fraction", "data"), xytext=(3, 2),
            textcoords="offset points", fontsize=7, ha="left", va="bottom",
        )  # fmt: skip
        logarithmic(axes)
    kinds = [
        Line2D([], [], color=INK, linewidth=0.7, label="median"),
        Line2D([], [], color=INK, label="the authors' models", **CROSS),
    ]
    panels[0, 0].legend(handles=[*panels[0, 0].get_legend_handles_labels()[0], *kinds], loc="upper left")
    finish(figure, panels, "number of steps $T$", "test statistic $T_n$", titles=[*map(w.dataset_label, datasets)])
    return Picture(
        figure,
        "The test statistic as a function of the number of attack steps.",
        inputs.stamp("audit"),
        "Curves of T_n against the number of steps, a mean and a median for each method, with the tolerance as a "
        "horizontal line and crosses for the authors' models.",
        notes=(
            "Lines with markers: mean over the repetitions. Thin lines: median. Bands: from the "
            f"{BAND[0]} % to the {BAND[1]} % quantile.",
            "Crosses: mean over the ten models of each method that the authors released, on all test rows.",
        ),
    )


def published(found: pd.DataFrame, artefact: str) -> list[tuple[Setting, float]]:
    """Return the settings and the values that are listed for an artefact."""
    own = found[(found["artefact"] == artefact) & found["value"].notna() & (found["reading"] == AS_STATED)]
    return [(parse_setting(line["setting"]), float(line["value"])) for line in own.to_dict("records")]


def released(found: pd.DataFrame, dataset: str, method: str) -> tuple[list[float], list[float]]:
    """Return the numbers of steps and T_n of the models that the authors released."""
    shown = [
        (float(of["steps"]), value)
        for of, value in published(found, "figure_2")
        if "steps" in of and (of["dataset"], of["method"]) == (dataset, method)
    ]
    return [steps for steps, _ in shown], [value for _, value in shown]


@artefact("The two groups differ in the first coordinate, which the fair metric ignores.")
def figure_3(inputs: Inputs) -> Picture:
    name = next((n for n in sorted(inputs.datasets) if n.startswith(f"{w.SIMULATED}@labels=centred")), "")
    if not name:
        problem = f"figure_3 needs the prepared simulated data: found {sorted(inputs.datasets)}"
        raise inputs.absence(problem, dataset=w.SIMULATED)
    points = inputs.datasets[name].points
    features, label, group = (points[part] for part in ("features", "label", "group"))
    figure, ((axes,),) = new_panels(2.1, 1, 1)
    for g, (marker, group_name) in enumerate(GROUPS):
        for y in (0, 1):
            members = features[(group == g) & (label == y)]
            color = "#0072B2" if y else "#D55E00"
            axes.scatter(
                members[:, 0], members[:, 1], s=13 if g == 0 else 17, marker=marker, linewidths=0.7,
                facecolors=color if y else "none", edgecolors=color, alpha=0.9,
                label=f"{group_name}, label {y} ({len(members)})",
            )  # fmt: skip
    axes.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    figure.legend(loc="outside upper center", ncols=4, columnspacing=1.4, handletextpad=0.1)
    return Picture(
        figure,
        "Simulated data.",
        inputs.stamp("heatmaps"),
        "Scatter plot of two clusters that differ in the first coordinate; the smaller one is the minority.",
        notes=("In brackets: number of points. The labels depend on the position relative to the mean of the group.",),
    )


def heatmap(panel: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return theta_1 (a,), theta_2 (b,) and the statistic (b, a) of one panel's rows.

    Raises ValueError if the grid is incomplete.
    """
    grid = panel.pivot(index="theta_2", columns="theta_1", values="value").sort_index().sort_index(axis=1)
    # A NaN in the rows leaves a hole in the picture. Only a missing row is an error.
    if len(panel) != grid.size:
        raise ValueError(f"expected a full grid of {grid.size} classifiers, found {len(panel)} rows: audit it again")
    return grid.columns.to_numpy(float), grid.index.to_numpy(float), grid.to_numpy(float)


HEAT_MAPS = {
    "intercept fitted": {"block": "heatmaps", "intercept": "fitted"},
    "intercept zero": {"block": "heatmaps", "intercept": "zero"},
    "labels as printed": {"block": "heatmaps_printed"},
}
"""Settings of the rows of panels."""


@artefact(
    "A classifier with θ₁ = 0 is individually fair for every θ₂. The test rejects red classifiers but not blue "
    "ones. Top: the authors' generator (labels centred) and a fitted intercept, as stated. Middle: an intercept of "
    "zero, which comes close to the published figure. Bottom: labels as printed in equation E.1. They are all 1, so no "
    "intercept can be fitted. Left: the metric ignores the true direction. Centre and right: it ignores a direction "
    "that is off by 5° and 10°.",
)
def figure_1(inputs: Inputs, found: pd.DataFrame) -> Picture:
    rows = [(name, inputs.select(**setting, statistic="T_n")) for name, setting in HEAT_MAPS.items()]
    angles = sorted(rows[0][1]["angle"].unique())
    delta = float(configured(inputs, "heatmaps", w.SIMULATED, "logistic_grid")["audit.delta"])
    edges = [value for of, value in published(found, "figure_1") if str(of["statistic"]).startswith("boundary")]
    logs = np.log(np.concatenate([part["value"].to_numpy(float) for _, part in rows]))
    # Each side of the tolerance has half of the colours, whatever the range of the statistic.
    center = float(np.log(delta))
    low, high = min(float(np.nanmin(logs)), center - 0.05), max(float(np.nanmax(logs)), center + 0.05)
    norm = TwoSlopeNorm(center, vmin=low, vmax=high)
    figure, grid = new_panels(2.0 * len(rows) + 0.2, len(rows), len(angles), sharex=True, sharey=True)
    for r, (name, part) in enumerate(rows):
        for c, angle in enumerate(angles):
            _panel(grid[r, c], part[part["angle"] == angle], norm, center)
        grid[r, 0].set_ylabel(f"{name}\n$\\theta_2$")
        grid[r, 0].plot(edges, [0.0] * len(edges), **READ)
    bar = _color_bar(figure, grid.flat, norm, np.exp, aspect=40, shrink=0.95)
    bar.ax.axhline(center, color="black", linewidth=1.1)
    bar.ax.set_title("$T_n$", fontsize=8.5, pad=5)
    titles = ["true metric" if angle == 0 else f"rotated by {angle:g}\u00b0" for angle in angles]
    finish(figure, grid, r"$\theta_1$", titles=titles)
    return Picture(
        figure,
        "The test statistic T_n of logistic classifiers on a grid of coefficients.",
        inputs.stamp(["heatmaps", "heatmaps_printed"]),
        "Heat maps over two coefficients, red where the test rejects, blue where it does not, the boundary in black.",
        notes=(
            f"Black line: the boundary of rejection, T_n = {delta:g}. All panels have one logarithmic colour scale.",
            "White diamonds: the boundary at \u03b8\u2082 = 0 in the left panel of the published figure.",
            "Data: equation E.1. In the top rows, labels are centred on the mean of each group, as in the authors' "
            "generator. In the last row, they are as printed.",
        ),
    )


def _panel(axes: Axes, panel: pd.DataFrame, norm: TwoSlopeNorm, center: float) -> None:
    """Draw the logarithm of T_n, with a line at the logarithm of the tolerance."""
    theta_1, theta_2, statistic = heatmap(panel)
    logs = np.log(statistic)
    axes.pcolormesh(theta_1, theta_2, logs, cmap=BLUE_TO_RED, norm=norm, shading="nearest", rasterized=False)
    if np.nanmin(logs) < center < np.nanmax(logs):
        axes.contour(theta_1, theta_2, logs, levels=[center], colors="black", linewidths=1.1)
    axes.set(aspect="equal", xticks=TICKS, yticks=TICKS)
    axes.spines[["top", "right"]].set_visible(True)


def _color_bar(figure: Figure, axes: Any, norm: TwoSlopeNorm, of: Callable[[float], float], **more: Any) -> Colorbar:
    """Draw a colour bar whose tick labels are transformed by ``of``."""
    bar = figure.colorbar(ScalarMappable(norm=norm, cmap=BLUE_TO_RED), ax=list(axes), pad=0.015, **more)
    low, center, high = (float(end) for end in (norm.vmin, norm.vcenter, norm.vmax) if end is not None)
    ticks = [low, center, (center + high) / 2, high]
    bar.set_ticks(ticks, labels=[f"{of(tick):.3g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    return bar


@artefact("A steep fall of a curve at a tolerance shows that the conclusion depends on this value.")
def figure_tolerance(inputs: Inputs) -> Picture:
    datasets = inputs.names("dataset", block="audit")
    tests = ((q.T_N, "loss ratio"), (q.ERROR_T_N, "error-rate ratio"))
    figure, grid = new_panels(3.8, len(tests), len(datasets), sharey=True)
    panels = [(quantity, test, dataset) for quantity, test in tests for dataset in datasets]
    for (quantity, test, dataset), axes in zip(panels, grid.flat, strict=True):
        methods = inputs.names("method", block="audit", dataset=dataset)
        found = {method: quantity.values(inputs, dataset, method) for method in methods}
        right = max(1.6, 1.15 * max(np.nanmax(v, initial=1.0) for v in found.values()))
        for method, values in found.items():
            style = method_style(method)
            delta, share = rejection_curve(values, right)
            axes.step(delta, share, where="post", color=style.color, linestyle=style.line, label=style.label)
            step_band(axes, delta, wilson_band(share, int(np.isfinite(values).sum())), style.color)
        level(axes, x=configured(inputs, "audit", dataset, methods[0])["audit.delta"])
        axes.set(xscale="log", xlim=(1, right), ylim=(-0.04, 1.04), title=f"{w.dataset_label(dataset)}, {test}")
        logarithmic(axes, "x")
    names = grid[0, 0].get_legend_handles_labels()[1]
    finish(figure, grid, r"tolerance $\delta$", "share rejected", columns=len(names))
    return Picture(
        figure,
        "Share of rejected repetitions by tolerance.",
        inputs.stamp("audit"),
        "Falling step curves of the share of rejected repetitions against the tolerance, one for each method.",
        notes=(
            "Dashed: the tolerance of the published tables, the four-fifths rule. Bands: Wilson's "
            f"pointwise {100 * LEVEL:g} % interval of the share over the splits.",
            q.steps_note(inputs, *datasets),
        ),
    )


@artefact(
    "The penalty λ restricts the attack outside the sensitive subspace. The length of the attack is the step size η "
    "times the number of steps.",
)
def figure_sensitivity(inputs: Inputs) -> Picture:
    rows = inputs.select(block="sensitivity", statistic="T_n")
    rows = rows[rows["steps"] == rows.groupby("dataset", observed=True)["steps"].transform("max")]
    steps = enumerated(f"{number:,.0f}" for number in sorted(set(rows["steps"])))
    places = [
        (dataset, method)
        for dataset in inputs.names("dataset", block="sensitivity")
        for method in inputs.names("method", block="sensitivity", dataset=dataset)
    ]
    means = rows.groupby(["dataset", "method", "regularization", "step_size"], observed=True)["value"].mean()
    # Rows are penalties, columns are step sizes. NaN means that the iteration has no result.
    tables = [means.loc[place].unstack("step_size").sort_index() for place in places]
    delta = float(configured(inputs, "sensitivity", *places[0])["audit.delta"])
    logs = np.log(np.concatenate([table.to_numpy(float).ravel() for table in tables]))
    finite, center = logs[np.isfinite(logs)], float(np.log(delta))
    low, high = min(float(finite.min()), center - 0.1), max(float(finite.max()), center + 0.1)
    norm = TwoSlopeNorm(center, vmin=low, vmax=high)
    down = -(-len(places) // 2)
    figure, grid = new_panels(2.0 * down + 0.2, down, 2, sharex=True, sharey=True)
    for axes, table in zip(grid.flat, tables, strict=False):
        _cells(axes, table, norm)
    titles = [f"{w.dataset_label(dataset)}, {method_style(method).label}" for dataset, method in places]
    finish(figure, grid, r"step size $\eta$", r"penalty $\lambda$", titles=titles)
    _color_bar(figure, grid.flat, norm, np.exp, aspect=30).set_label("mean $T_n$")
    return Picture(
        figure,
        "The test statistic by penalty and step size.",
        inputs.stamp("sensitivity"),
        "Tables of mean T_n, red where it exceeds the tolerance and blue where it does not, with a stability line.",
        notes=(
            f"Mean T_n after {steps} steps. Black line: 2\u03bb\u03b7 = {STABILITY:g}. Above the line, the iteration "
            "is unstable and not run (white, hatched). On the line (hatched), each step reverses the displacement "
            "outside the sensitive subspace, and T_n depends on whether the number of steps is even or odd.",
        ),
    )


def rejection_curve(statistic: np.ndarray, right: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of repetitions with T_n > delta as a right-continuous step function of delta on [1, right].

    The function is given by its corners (k,) and the share from each corner on (k,).
    """
    values = np.sort(statistic[np.isfinite(statistic)])
    corners = np.concatenate([[1.0], values[(values > 1) & (values < right)], [right]])
    return corners, np.array([(values > corner).mean() for corner in corners])


def _cells(axes: Axes, table: pd.DataFrame, norm: TwoSlopeNorm) -> None:
    penalty, step = table.index.to_numpy(float), table.columns.to_numpy(float)
    for i, regularization in enumerate(penalty):
        for j, eta in enumerate(step):
            value = float(table.iloc[i, j])
            unstable = 2 * regularization * eta > STABILITY * (1 + 1e-9) or not np.isfinite(value)
            corner = (j - 0.5, i - 0.5)
            if unstable:
                axes.add_patch(
                    Rectangle(corner, 1, 1, facecolor="white", edgecolor="#c4c4c4", linewidth=0, hatch="////")
                )
                continue
            shade = float(norm(np.log(value)))
            color = ScalarMappable(norm=norm, cmap=BLUE_TO_RED).to_rgba(np.log(value))
            axes.add_patch(Rectangle(corner, 1, 1, facecolor=color, edgecolor="white", linewidth=0.8))
            on_the_line = bool(np.isclose(2 * regularization * eta, STABILITY))
            if on_the_line:
                axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor="#9a9a9a", linewidth=0, hatch="///"))
            axes.text(
                j, i, f"{value:.2f}" if value < 100 else f"{value:.0f}", ha="center", va="center", fontsize=6.5,
                color="white" if not 0.18 < shade < 0.82 else INK, zorder=5,
                path_effects=[withStroke(linewidth=4.0 if on_the_line else 1.8, foreground=color)],
            )  # fmt: skip
    axes.set(xlim=(-0.5, len(step) - 0.5), ylim=(-0.5, len(penalty) - 0.5))
    axes.set_xticks(range(len(step)), [parameter(eta) if eta >= 1e-3 else f"{eta:g}" for eta in step])
    axes.set_yticks(range(len(penalty)), [parameter(value) for value in penalty])
    axes.tick_params(length=0)
    fine = np.geomspace(step[0] / 4, step[-1] * 4, 400)
    axes.plot(axis_places(fine, step), axis_places(STABILITY / (2 * fine), penalty), color="black", linewidth=1.3)


def axis_places(values: np.ndarray, marks: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the positions of values on an axis with evenly spaced ``marks``, log-interpolated and extrapolated."""
    return interp1d(np.log(marks), np.arange(len(marks)), fill_value="extrapolate")(np.log(values))
