"""Style of all figures: fonts, widths, and one colour, marker and line style for each method."""

import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from fairness_audits.results.markup import raised
from fairness_audits.values import Array

PAGE_WIDTH = 6.8
"""Width of the page in inches."""
DASHED: Any = (0, (4, 2))

LETTERS_PER_INCH = 23.0
"""Average number of letters per inch of the stamp's small type."""

INK = "#222222"
DARK = 0.25
"""Luminance of a background up to which text on it is white."""
FAINT = "#8a8a8a"
WARNING = "#a33b20"

TICKS = {
    "labelsize": 7.5,
    "color": "#555555",
    "labelcolor": INK,
    "major.width": 0.6,
    "minor.width": 0.4,
    "major.size": 3,
    "minor.size": 1.8,
}
RC: Any = {
    "figure.dpi": 200,
    "savefig.dpi": 200,
    # Both fonts come with matplotlib, so figures are byte-identical on all machines.
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "legend.fontsize": 7.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.6,
    **{f"{axis}.{key}": value for axis in ("xtick", "ytick") for key, value in TICKS.items()},
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "pdf.fonttype": 42,
    "svg.hashsalt": "fairness-audits",
}


@dataclass(frozen=True)
class MethodStyle:
    """Label and style of a method; colour, marker and line differ between methods, so they also differ in grey."""

    label: str
    color: Any
    marker: str
    line: Any


# Colours of Okabe and Ito, which people with common forms of colour blindness can distinguish.
METHODS = {
    "baseline": MethodStyle("Baseline", "#0072B2", "o", "-"),
    "project": MethodStyle("Project", "#D98E04", "s", (0, (5, 1.5))),
    "reductions": MethodStyle("Reductions", "#00875F", "^", (0, (5, 1.5, 1, 1.5))),
    "sensr": MethodStyle("SenSR", "#B5478F", "D", (0, (1, 1.2))),
    "adverm": MethodStyle("AdvERM", "#56B4E9", "P", (0, (3, 1.2))),
}
SPARE = (("#555555", "v", "-"), ("#56B4E9", "P", "--"), ("#8C5A2B", "X", "-."), ("#000000", "*", ":"))


def method_style(method: str) -> MethodStyle:
    """Return the style of a method; a method outside the published studies gets a spare style, chosen by its name."""
    if method in METHODS:
        return METHODS[method]
    color, marker, line = SPARE[sum(method.encode()) % len(SPARE)]
    # A name with capitals is already a label.
    label = method if any(map(str.isupper, method)) else method.replace("_", " ").capitalize()
    return MethodStyle(label, color, marker, line)


def ordered(found: Iterable[str], order: Iterable[str]) -> list[str]:
    """Return the distinct names in a fixed order, followed by the other names in alphabetical order."""
    there, known = set(found), list(order)
    return [name for name in known if name in there] + sorted(there - set(known))


in_order = partial(ordered, order=METHODS)
"""Return the distinct methods in the order of METHODS, followed by the others in alphabetical order."""


@contextmanager
def paper() -> Iterator[None]:
    """Apply the settings for drawing and saving figures, whatever the user's own settings of matplotlib are.

    Missing letters are drawn as boxes without a warning.
    """
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


def ink_on(color: Sequence[float]) -> str:
    """Return the text colour on a background (r, g, b, ...) by relative luminance: dark on light, white on dark."""
    light = np.dot((0.2126, 0.7152, 0.0722), np.power(color[:3], 2.2))
    return INK if light > DARK else "white"


def new_figure(height: float, width: float = PAGE_WIDTH) -> Figure:
    """Return an empty figure of this size in inches, with matplotlib's constrained layout."""
    return Figure(figsize=(width, height), layout="constrained")


def new_panels(height: float, rows: int, columns: int, **how: Any) -> tuple[Figure, Any]:
    """Return an empty figure of the page's width, and its panels as an array of axes (rows, columns)."""
    figure = new_figure(height)
    return figure, figure.subplots(rows, columns, squeeze=False, **how)


def print_stamp(figure: Figure, lines: Sequence[str], emphatic: bool) -> None:
    """Print the stamp in a strip below the axes; the figure grows by the strip, and the axes keep their size."""
    width, height = figure.get_size_inches()
    lines = [part for line in lines for part in textwrap.wrap(line, round(width * LETTERS_PER_INCH))]
    strip = 0.125 * len(lines) + 0.05
    figure.set_size_inches(width, height + strip)
    figure.text(
        0.995, 0.03 / (height + strip), "\n".join(map(raised, lines)), ha="right", va="bottom", fontsize=6.2,
        color=WARNING if emphatic else FAINT, linespacing=1.15,
    )  # fmt: skip
    engine = figure.get_layout_engine()
    if engine is not None:
        share = strip / (height + strip)
        engine.set(rect=(0, share, 1, 1 - share))  # type: ignore[call-arg]
    fix_layout(figure)


def fix_layout(figure: Figure) -> None:
    """Compute the layout once and fix it: saving is twice as fast, and every format has the same layout."""
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    # Remove the layout engine: with a placeholder engine, matplotlib draws the figure again before saving it.
    figure.set_layout_engine(None)
    # Round, because the last digits of the layout solver depend on memory addresses.
    for part in figure.subfigs:
        part.bbox_relative.set_points(np.round(part.bbox_relative.get_points(), 6))
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position(original=True).bounds
        axes.set_position((round(left, 6), round(bottom, 6), round(width, 6), round(height, 6)))


def panel_letter(axes: Axes, letter: str) -> None:
    """Label a panel (a), (b), ... at its upper left, outside the frame."""
    axes.set_title(f"({letter})", loc="left", fontweight="bold", fontsize=8.5)


def curve(axes: Axes, x: Any, y: Any, look: MethodStyle, band: Any = None, **more: Any) -> None:
    """Draw a line with this style through y (k,) at x (k,), and its ``band`` between two ends (2, k), if any."""
    if band is not None:
        axes.fill_between(x, *band, color=look.color, alpha=0.15, linewidth=0)
    drawn = {"color": look.color, "linestyle": look.line, "marker": look.marker, "label": look.label}
    axes.plot(x, y, **{**drawn, **more})


def points(axes: Axes, x: Any, y: Any, look: MethodStyle, ends: Any = None, **more: Any) -> None:
    """Draw markers with this style at x (k,), y (k,), and vertical bars between the ``ends`` (2, k), if any."""
    reach = None if ends is None else np.abs(np.asarray(ends) - np.asarray(y))
    drawn = {"color": look.color, "linestyle": "none", "marker": look.marker, "elinewidth": 0.9, "label": look.label}
    axes.errorbar(x, y, reach, **{**drawn, **more})


def step_band(axes: Axes, x: Any, ends: Any, color: Any) -> None:
    """Fill between two step functions ``ends`` (2, k) of x (k,)."""
    low, high = ends
    axes.fill_between(x, low, high, step="post", color=color, alpha=0.15, linewidth=0)


def finish(
    figure: Figure, panels: Any, x: str = "", y: str = "", columns: int = 0, titles: Sequence[str] = (),
    handles: Sequence[Any] = (),
) -> None:  # fmt: skip
    """Add letters, titles and labels of the outer axes to all panels, an array of axes (r, c) or (c,).

    If ``columns`` is positive, a legend with this number of columns above the panels shows the ``handles``, or else the
    lines of the first panel.
    """
    grid = np.atleast_2d(panels)
    for letter, axes in zip("abcdefghijkl", grid.flat, strict=False):
        panel_letter(axes, letter)
    for title, axes in zip(titles, grid.flat, strict=False):
        axes.set_title(title)
    for axes in grid[-1] if x else ():
        axes.set_xlabel(x)
    for axes in grid[:, 0] if y else ():
        axes.set_ylabel(y)
    if columns:
        drawn = handles or grid[0, 0].get_legend_handles_labels()[0]
        figure.legend(handles=drawn, loc="outside upper center", ncols=columns)


def level(axes: Axes, y: float | None = None, x: float | None = None, **more: Any) -> None:
    """Draw a dashed reference line across the panel."""
    look = {"color": INK, "linewidth": 0.8, "linestyle": DASHED, **more}
    if y is not None:
        axes.axhline(y, **look)
    if x is not None:
        axes.axvline(x, **look)


LINE_COLORS = (
    *("#0072B2", "#D55E00", "#00875F", "#B5478F", "#D98E04"),
    *("#56B4E9", "#8C5A2B", "#000000", "#7F7F7F", "#BCBD22"),
)
LINES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)))


def line_style(place: int) -> tuple[str, object]:
    """Return colour and line of the ``place``-th group: the first 10 differ in colour, the first 50 in the pair."""
    return LINE_COLORS[place % len(LINE_COLORS)], LINES[(place + place // len(LINE_COLORS)) % len(LINES)]


SHORT_RANGE = 6.0
"""Ratio of an axis's ends below which the ticks 1, 2, 5 would be too few."""


def logarithmic(axes: Axes, which: str = "xy") -> None:
    """Label logarithmic axes with plain numbers: 1, 2, 5 times powers of ten, and more if the range is short."""
    for name in which:
        axes.set(**{f"{name}scale": "log"})
        axis, (low, high) = (axes.xaxis, axes.get_xlim()) if name == "x" else (axes.yaxis, axes.get_ylim())
        short = high / low < SHORT_RANGE
        subs = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0) if short else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
        if short:
            axis.set_minor_locator(NullLocator())


def counts_along(axes: Axes, counts: Iterable[float], **more: Any) -> None:
    """Make the x axis logarithmic and label it with the numbers that occur."""
    places = sorted(set(map(float, counts)))
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:,.0f}" for place in places], **more)
    axes.minorticks_off()


def bin_edges(values: Array, bins: int) -> Array:
    """Return edges of equally wide bins that cover all values.

    Counts, and other values that span fewer than ``bins`` steps of their smallest gap, get one bin for each step.
    """
    distinct = np.unique(values)
    low, high = distinct[0], distinct[-1]
    if len(distinct) == 1:
        return low + np.array([-0.5, 0.5])
    steps = round((high - low) / np.diff(distinct).min()) if len(distinct) <= bins else bins
    if steps >= bins:
        return np.linspace(low, high, bins + 1)
    half = (high - low) / steps / 2
    return np.linspace(low - half, high + half, steps + 2)
