"""The summary of a sweep, mean and spread at each setting, and the figure that its file declares."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import enumerated, nearest
from fairness_audits.results.formats import parameter
from fairness_audits.results.markup import raised
from fairness_audits.results.style import INK, METHODS, PAGE_WIDTH, MethodStyle, curve, method_style, new_figure
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.stamp import Picture, Stamp
from pipeline.workflow.sweep import Figure, column

PANEL_HEIGHT, MARGIN = 1.55, 0.55
"""Height of a row of panels, and of the space above and below the panels, in inches."""
PLAIN = MethodStyle("", INK, "o", "-")
MARKERS = "os^Dv<>P*X"
LIGHTEST = 0.82
"""End of the colour sequence: lighter colours are illegible on white."""


def chosen(rows: pd.DataFrame, figure: Figure) -> pd.DataFrame:
    """Select the rows of the figure, one per setting, statistic and repetition.

    Raises InvalidInput for an unknown column, statistic or filter value, if the filters leave no row of a statistic,
    and if rows of one setting differ in a column that the figure does not name, because their mean would mix different
    quantities.
    """
    columns = sorted(map(str, rows.columns))
    for name in [*figure.axes.values(), *map(column, figure.along), *figure.where]:
        if name not in rows:
            problem = f"the sweep's rows have no column {name!r}{nearest(name, columns)}: they have {columns}"
            raise InvalidInput(problem, column=name)
    statistics = sorted(rows["statistic"].unique())
    shown = [*figure.statistic, *filter(None, [figure.against])]
    for name in shown:
        if name not in statistics:
            problem = f"the sweep's rows have no statistic {name!r}{nearest(name, statistics)}: they have {statistics}"
            raise InvalidInput(problem, option="figure.statistic")
    selected = of_shown = rows[rows["statistic"].isin(shown)]
    x = figure.axes["x"]
    for name in map(column, figure.along):
        selected = selected.assign(**{x: selected[x].fillna(selected[name])})
    for name, wanted in figure.where.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        for value in values:
            if not of_shown[name].isin([value]).any():
                there = sorted(of_shown[name].dropna().unique())
                problem = f"figure.where: no row has {name} {value!r}{nearest(str(value), map(str, there))}: {there}"
                raise InvalidInput(problem, option="figure.where", column=name)
        selected = selected[selected[name].isin(values) | selected[name].isna()]
    if lost := [name for name in shown if name not in set(selected["statistic"])]:
        problem = f"figure.where leaves no row of {enumerated(lost)}: change it, or do not ask for {lost[0]!r}"
        raise InvalidInput(problem, option="figure.where")
    if figure.against:
        # Several audits of a model may report this statistic.
        identity = ["statistic", "repetition", "value", *figure.axes.values()]
        selected = selected[(selected["statistic"] != figure.against) | ~selected.duplicated(identity)]
    setting = ["statistic", "repetition", *figure.axes.values()]
    if selected.duplicated(setting).any():
        different = (
            selected.drop(columns="value").groupby(setting, dropna=False, observed=True).nunique(dropna=False).max() > 1
        )
        names = different.index[different].tolist()
        raise InvalidInput(
            f"the figure would average rows that differ in {names}: name them in figure.lines, rows or columns, or "
            "keep one value of each by figure.where",
            column=names[0] if names else None,
        )
    return selected


WIDEST, THINNEST = 2.4, 1.0
"""Line widths of the first and the last line of a panel, in points."""


def summary(rows: pd.DataFrame, figure: Figure) -> pd.DataFrame:
    """Compute mean, standard deviation (ddof 1) and number of finite values at each setting, and count the others.

    ``low`` and ``high`` are the ends of the 95 % interval. It is Wilson's interval if all values of the statistic are 0
    or 1, so that the mean is a share, and Student's interval of the mean otherwise; NaN for a single value.
    A trade-off also has the mean of the ``against`` statistic, and whether the setting is ``undominated``.
    """
    selected = chosen(rows, figure)
    finite = selected.assign(value=selected["value"].astype(float).where(np.isfinite(selected["value"].astype(float))))
    grouped = finite.groupby(["statistic", *figure.axes.values()], dropna=False, sort=True, observed=True)["value"]
    table = grouped.agg(mean="mean", std="std", n="count", of="size").reset_index()
    table["not_finite"] = table.pop("of") - table["n"]
    shares = finite.groupby("statistic", observed=True)["value"].agg(lambda values: values.dropna().isin([0, 1]).all())
    found = [
        estimate("share" if shares[statistic] else "mean", values.dropna().to_numpy(float))
        for (statistic, *_), values in grouped
    ]
    table[["low", "high"]] = np.array([(one.low, one.high) for one in found], float).reshape(-1, 2)
    return _traded(table, figure) if figure.against else table


def _traded(table: pd.DataFrame, figure: Figure) -> pd.DataFrame:
    """Add the mean of the other statistic, and mark the undominated settings of each panel."""
    axes = list(figure.axes.values())
    other = table[table["statistic"] == figure.against].set_index(axes)["mean"]
    traded = table[table["statistic"] != figure.against].join(other.rename(figure.against), on=axes)
    panel = ["statistic", *(figure.axes[axis] for axis in ("rows", "columns") if axis in figure.axes)]
    best = [
        pd.Series(undominated(part[figure.against].to_numpy(), part["mean"].abs().to_numpy()), part.index)
        for _, part in traded.groupby(panel, dropna=False)
    ]
    return traded.assign(undominated=pd.concat(best)).reset_index(drop=True)


def undominated(gain: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Return which of n points are undominated, given their ``gain`` (n,) and ``loss`` (n,).

    A point dominates another if it has at least its gain and at most its loss, and is better in one of them. A point
    with a number that is not finite is not undominated, and dominates no point.
    """
    as_good = (gain[:, None] >= gain) & (loss[:, None] <= loss)
    better = (gain[:, None] > gain) | (loss[:, None] < loss)
    return np.isfinite(gain) & np.isfinite(loss) & ~(as_good & better).any(axis=0)


def drawn(rows: pd.DataFrame, figure: Figure, title: str) -> Picture:
    """Draw the figure: a panel per statistic, row and column, and a line with a band per value of ``lines``.

    A band is the 95 % interval of :func:`summary`. Later lines are thinner, so earlier lines below them stay visible.
    """
    table = summary(rows, figure)
    lines = _values(table, figure.axes.get("lines"))
    down = [(statistic, value) for statistic in figure.statistic for value in _values(table, figure.axes.get("rows"))]
    across = _values(table, figure.axes.get("columns"))
    drawing = new_figure(PANEL_HEIGHT * len(down) + MARGIN, PAGE_WIDTH if len(across) > 1 else PAGE_WIDTH * 0.62)
    panels = drawing.subplots(len(down), len(across), squeeze=False, sharex=True, sharey="row")
    for i, (statistic, row) in enumerate(down):
        for j, col in enumerate(across):
            part = _at(_at(table[table["statistic"] == statistic], figure, "rows", row), figure, "columns", col)
            _panel(panels[i, j], part, figure, lines)
            if i == 0 and "columns" in figure.axes:
                panels[i, j].set_title(_panel_title(figure, "columns", col))
            if i == len(down) - 1:
                panels[i, j].set_xlabel(figure.label(figure.against or figure.x))
        name = figure.label(statistic)
        panels[i, 0].set_ylabel(f"{name}\n{_panel_title(figure, 'rows', row)}" if "rows" in figure.axes else name)
    if "lines" in figure.axes:
        pairs = [pair for axes in drawing.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
        # Collect the legend from all panels, because not every panel has every line.
        shown = {label: handle for handle, label in pairs}
        look: Any = {"loc": "outside upper center", "ncols": 6, "title_fontsize": 7.5}
        drawing.legend(list(shown.values()), list(shown), title=figure.label(figure.lines), **look)
    selected = chosen(rows, figure)
    missing = int(table["not_finite"].sum())
    possible_notes = {
        f"{missing:,} of {len(selected):,} values are not finite and not drawn.": missing,
        "Ringed: no other setting of the panel has both a larger value across and a smaller size.": figure.against,
    }
    notes = tuple(note for note, applies in possible_notes.items() if applies)
    alternative = (
        f"{', '.join(map(figure.label, figure.statistic))} against {figure.label(figure.against or figure.x)}, "
        f"{len(down) * len(across)} panels; the numbers are in the summary beside it."
    )
    return Picture(drawing, title, Stamp.of(selected), alternative, notes)


def _panel(axes: Axes, table: pd.DataFrame, figure: Figure, lines: Sequence[Any]) -> None:
    x = figure.axes["x"]
    parts = [(_look(figure, value, k, lines), _at(table, figure, "lines", value)) for k, value in enumerate(lines)]
    if "lines" in figure.axes:
        # A statistic that does not vary along ``lines`` is drawn as one line.
        parts.append((PLAIN, table[table[figure.axes["lines"]].isna()]))
    for number, (look, part) in enumerate(parts):
        part = part[part["n"] > 0].sort_values(x)
        if part.empty:
            continue
        place = part[figure.against or x]
        place = place.to_numpy() if pd.api.types.is_numeric_dtype(place) else place.astype(str).to_numpy()
        mean = part["mean"].to_numpy()
        band = None if figure.against else tuple(part[end].fillna(part["mean"]).to_numpy() for end in ("low", "high"))
        width = WIDEST - (WIDEST - THINNEST) * number / max(len(parts) - 1, 1)
        curve(axes, place, mean, look, band, zorder=3, linewidth=width, markersize=2.2 * width + 1)
        if figure.against:
            best = part["undominated"].to_numpy(bool)
            axes.plot(place[best], mean[best], "o", markersize=8, fillstyle="none", color=INK, linewidth=0.6, zorder=4)
    if "x" in figure.log:
        # A logarithmic axis has no 0. With a 0 among the values the axis is linear up to the smallest positive value.
        positive = table.loc[table[x] > 0, x]
        if len(positive) < len(table):
            axes.set_xscale("symlog", linthresh=positive.min())
        else:
            axes.set_xscale("log")
    if "y" in figure.log:
        axes.set_yscale("log")


def _look(figure: Figure, value: Any, k: int, lines: Sequence[Any]) -> MethodStyle:
    """Return the style of a line. Methods have their own colours and markers; other values run from dark to light."""
    if "lines" not in figure.axes:
        return PLAIN
    if value in METHODS:
        return replace(method_style(value), line="-")
    color = colormaps["viridis"](LIGHTEST * k / max(len(lines) - 1, 1))
    return MethodStyle(_word(figure, value), color, MARKERS[k % len(MARKERS)], "-")


def _panel_title(figure: Figure, axis: str, value: Any) -> str:
    """Return the title of a panel: the value if it is a word, or axis and value if it is a number."""
    word = _word(figure, value)
    return word if isinstance(value, str) else f"{figure.label(getattr(figure, axis))} = {word}"


def _word(figure: Figure, value: Any) -> str:
    """Return the label of a value: the figure's own, or the usual one of numbers, methods and data sets."""
    if str(value) in figure.labels:
        return figure.labels[str(value)]
    if isinstance(value, (int, float, np.number)):
        return raised(parameter(float(value)))
    if value in METHODS:
        return method_style(value).label
    return w.dataset_label(value) if value in w.DATASETS else figure.label(value)


def _values(table: pd.DataFrame, name: str | None) -> list[Any]:
    """Return the sorted values of an axis, or ``[None]`` if the figure does not have the axis."""
    return [None] if name is None else sorted(table[name].dropna().unique())


def _at(table: pd.DataFrame, figure: Figure, axis: str, value: Any) -> pd.DataFrame:
    return table if axis not in figure.axes else table[table[figure.axes[axis]] == value]
