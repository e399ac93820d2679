"""Figures beyond those of Maity et al. (2021): tolerance, settings of the attack, and the subspaces of the metric."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.individual_fairness import quantities as q
from pipeline.report.individual_fairness.facts import configured
from pipeline.report.individual_fairness.published_figures import BLUE_TO_RED, plain_log_ticks
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import plain
from pipeline.report.picture import Picture
from pipeline.report.style import DASHED, INK, finish, method_style, new_figure

STABILITY = 2.0
"""The iteration x <- x - 2 lambda eta (x - x0) contracts for 2 lambda eta < 2 and diverges beyond."""


@registry.figure(place=2)
def figure_tolerance(inputs: Inputs) -> Picture:
    """A conclusion that hangs on one value of the tolerance shows as a curve that falls there."""
    datasets = inputs.names("dataset", block="audit")
    tests = ((q.T_N, "loss ratio"), (q.ERROR_T_N, "error-rate ratio"))
    figure = new_figure(3.8)
    grid = figure.subplots(len(tests), len(datasets), sharey=True, squeeze=False)
    for r, (quantity, test) in enumerate(tests):
        for c, dataset in enumerate(datasets):
            axes = grid[r, c]
            steps = q.shown_steps(inputs, dataset)
            methods = inputs.names("method", block="audit", dataset=dataset)
            found = {m: inputs.values(**quantity.setting("audit", dataset, m, steps)).to_numpy(float) for m in methods}
            right = max(1.6, 1.15 * max(np.nanmax(v, initial=1.0) for v in found.values()))
            for method, values in found.items():
                style = method_style(method)
                delta, share = rejection_curve(values, right)
                axes.step(delta, share, where="post", color=style.color, linestyle=style.line, label=style.label)
                corners = [i for i in range(1, len(delta) - 1) if delta[i] > 1]
                axes.plot(delta[corners], share[corners], style.marker, color=style.color, markersize=2.6)
            chosen = configured(inputs, "audit", dataset, methods[0])["audit.delta"]
            axes.axvline(chosen, color=INK, linewidth=0.8, linestyle=DASHED)
            axes.set_xscale("log")
            axes.set_xlim(1, right)
            axes.set_ylim(-0.04, 1.04)
            plain_log_ticks(axes, "x")
            axes.set_title(f"{w.dataset_label(dataset)}, {test}")
    names = grid[0, 0].get_legend_handles_labels()[1]
    finish(figure, grid, r"tolerance $\delta$", "share rejected", columns=len(names))
    return Picture.stamped(
        figure,
        "How often each method is rejected, by the tolerance.",
        inputs.stamp("audit"),
        "Falling step curves of the share of rejected repetitions against the tolerance, one for each method.",
        notes=(
            "Dashed: the tolerance of the published tables, the four-fifths rule.",
            q.steps_note(inputs, *datasets),
        ),
    )


@registry.figure(place=3)
def figure_sensitivity(inputs: Inputs) -> Picture:
    """The penalty λ holds the attack back outside the sensitive subspace; the step size η, times the number of steps,
    is the length of the flow.
    """
    rows = inputs.select(block="sensitivity", statistic="T_n")
    rows = rows[rows["steps"] == rows["steps"].max()]
    places = [
        (dataset, method)
        for dataset in inputs.names("dataset", block="sensitivity")
        for method in inputs.names("method", block="sensitivity", dataset=dataset)
    ]
    tables = [_means(rows[(rows["dataset"] == d) & (rows["method"] == m)]) for d, m in places]
    delta = float(configured(inputs, "sensitivity", *places[0])["audit.delta"])
    logs = np.log(np.concatenate([table.to_numpy(float).ravel() for table in tables]))
    finite = logs[np.isfinite(logs)]
    center = float(np.log(delta))
    low, high = min(float(finite.min()), center - 0.1), max(float(finite.max()), center + 0.1)
    norm = TwoSlopeNorm(center, vmin=low, vmax=high)
    columns = 2
    figure = new_figure(2.0 * -(-len(places) // columns) + 0.2)
    grid = figure.subplots(-(-len(places) // columns), columns, squeeze=False, sharex=True, sharey=True)
    for index, ((dataset, method), table) in enumerate(zip(places, tables, strict=True)):
        axes = grid.flat[index]
        _cells(axes, table, norm)
        axes.set_title(f"{w.dataset_label(dataset)}, {method_style(method).label}")
    finish(figure, grid, r"step size $\eta$", r"penalty $\lambda$")
    bar = figure.colorbar(ScalarMappable(norm=norm, cmap=BLUE_TO_RED), ax=list(grid.flat), aspect=30, pad=0.015)
    ticks = [low, center, (center + high) / 2, high]
    bar.set_ticks(ticks, labels=[f"{np.exp(tick):.3g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.set_label("mean $T_n$")
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    return Picture.stamped(
        figure,
        "The test statistic over the penalty and the step size.",
        inputs.stamp("sensitivity"),
        "Tables of mean T_n coloured blue where it is accepted and red where it is rejected, with a stability line.",
        notes=(
            f"Mean T_n after {int(rows['steps'].max()):,} steps. Black line: 2\u03bb\u03b7 = {STABILITY:g}; above it "
            "the iteration is unstable and not run (white, hatched). On it (hatched) it is only just not: "
            "outside the sensitive subspace each step turns the displacement round, so that T_n depends on whether the "
            "number of steps is even or odd.",
        ),
    )


@registry.figure(place=4)
def figure_angles(inputs: Inputs) -> Picture:
    """The audit learns its metric on test rows, Project and SenSR learn theirs on train rows. Left: the principal
    angles between the two subspaces, one point for each repetition, a bar at their mean. Right: the statistic of each
    repetition under the metric learned on test rows (filled) and on train rows (open).
    """
    datasets = inputs.names("dataset", block="audit")
    figure = new_figure(2.6)
    panels = figure.subplots(1, 1 + len(datasets), width_ratios=[0.9, *[1.25] * len(datasets)])
    ticks: list[tuple[float, int]] = []
    for dataset in datasets:
        first = len(ticks) + 0.7 * datasets.index(dataset)
        found = q.principal_angles(inputs, dataset)
        for i, angles in enumerate(found):
            spread = np.linspace(-0.16, 0.16, len(angles)) if len(angles) > 1 else np.zeros(1)
            panels[0].plot(first + i + spread, np.sort(angles), "o", color=INK, markersize=2.4, alpha=0.75)
            panels[0].plot([first + i - 0.28, first + i + 0.28], [angles.mean()] * 2, color=INK, linewidth=1.3)
            ticks.append((first + i, i + 1))
        panels[0].text(
            first + (len(found) - 1) / 2, -0.13, w.dataset_label(dataset), ha="center", va="top", fontsize=8,
            transform=panels[0].get_xaxis_transform(),
        )  # fmt: skip
    panels[0].set_xticks([place for place, _ in ticks], [str(i) for _, i in ticks])
    panels[0].set_ylabel("principal angle, degrees")
    panels[0].set_ylim(bottom=-2)
    for dataset, axes in zip(datasets, panels[1:], strict=False):
        _pairs(axes, inputs, dataset)
        axes.set_title(w.dataset_label(dataset))
    panels[1].set_ylabel("test statistic $T_n$")
    finish(figure, panels)
    return Picture.stamped(
        figure,
        "Sensitive subspaces of train and test rows.",
        inputs.stamp("audit"),
        "Dots of principal angles, and pairs of T_n with the metric learned on test and on train rows, by method.",
        notes=(
            "(a) Angles between the subspace learned on train rows and the one learned on test rows; bars are means. "
            "(b, c) T_n of the same classifiers with the metric learned on test (left) and on train rows (right).",
            q.steps_note(inputs, *datasets),
        ),
    )


def rejection_curve(statistic: np.ndarray, right: float) -> tuple[np.ndarray, np.ndarray]:
    """The share of repetitions with T_n > delta as a right-continuous step function of delta on [1, right].

    Returns the corners (k,) and the share from each corner on (k,).
    """
    values = np.sort(statistic[np.isfinite(statistic)])
    corners = np.concatenate([[1.0], values[(values > 1) & (values < right)], [right]])
    return corners, np.array([(values > corner).mean() for corner in corners])


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean T_n by penalty (rows) and step size (columns), NaN where the iteration has no result."""
    return rows.groupby(["regularization", "step_size"])["value"].mean().unstack("step_size").sort_index()


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
    axes.set_xlim(-0.5, len(step) - 0.5)
    axes.set_ylim(-0.5, len(penalty) - 0.5)
    axes.set_xticks(range(len(step)), [plain(eta) if eta >= 1e-3 else f"{eta:g}" for eta in step])
    axes.set_yticks(range(len(penalty)), [plain(value) for value in penalty])
    axes.tick_params(length=0)
    fine = np.geomspace(step[0] / 4, step[-1] * 4, 400)
    axes.plot(axis_places(fine, step), axis_places(STABILITY / (2 * fine), penalty), color="black", linewidth=1.3)


def axis_places(values: np.ndarray, marks: Sequence[float] | np.ndarray) -> np.ndarray:
    """Where values stand on an axis whose ``marks`` are evenly spaced, by their logarithms, continued at the ends."""
    log_marks, at = np.log(np.asarray(marks, float)), np.arange(len(marks), dtype=float)
    logs = np.log(values)
    place = np.interp(logs, log_marks, at)
    below, above = logs < log_marks[0], logs > log_marks[-1]
    place[below] = (logs[below] - log_marks[0]) / (log_marks[1] - log_marks[0])
    place[above] = at[-1] + (logs[above] - log_marks[-1]) / (log_marks[-1] - log_marks[-2])
    return place


def _pairs(axes: Axes, inputs: Inputs, dataset: str) -> None:
    steps = q.shown_steps(inputs, dataset)
    methods = inputs.names("method", block="audit", dataset=dataset)
    delta = configured(inputs, "audit", dataset, methods[0])["audit.delta"]
    for x, method in enumerate(methods):
        style = method_style(method)
        test, train = (
            inputs.values(**q.T_N.setting("audit", dataset, method, steps, split)).to_numpy(float)
            for split in ("test", "train")
        )
        for left, right in zip(test, train, strict=True):
            axes.plot([x - 0.2, x + 0.2], [left, right], color=style.color, linewidth=0.6, alpha=0.6)
        axes.plot([x - 0.2] * len(test), test, style.marker, color=style.color, markersize=3)
        axes.plot([x + 0.2] * len(train), train, style.marker, color=style.color, markersize=3, markerfacecolor="white")
    axes.axhline(delta, color=INK, linewidth=0.8, linestyle=DASHED)
    axes.set_yscale("log")
    plain_log_ticks(axes, "y")
    axes.set_xticks(range(len(methods)), [method_style(method).label for method in methods], fontsize=7)
    axes.set_xlim(-0.5, len(methods) - 0.5)
