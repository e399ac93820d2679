"""The figure of the permutation tests: each difference or ratio with its interval, and the bounds that were tested."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairness_audits.audits.permutation.asked import CORRELATION, FOUR_FIFTHS
from fairness_audits.audits.permutation.result import named
from fairness_audits.results.markup import label_text
from fairness_audits.results.style import FAINT, METHODS, WARNING, level, line_style, new_figure

TALLEST = 13.0
"""Largest height of the panel in inches; tests further down in the table do not fit on a page."""
LETTERS = 46
LINE, GAP = 0.16, 0.07
"""Height of a line of a name, and of the gap between names, in inches."""
BEYOND = 1.15
"""Open ends of intervals are drawn at this multiple of the furthest finite end."""


def figure(results: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw a line for each defined test. Call and save within :func:`fairness_audits.results.style.paper`."""
    entries = [entry for entry in results if entry["undefined"] is None]
    bounds = entries[0]["bounds"]
    ratio = bounds is not None and bounds["comparison"] == "ratio"
    names = [label_text(named(entry), LETTERS) for entry in entries]
    ends = np.cumsum([0, *(LINE * (name.count("\n") + 1) + GAP for name in names)])
    fitting = max(1, int((ends[1:] <= TALLEST).sum()))
    entries, names, ends = entries[:fitting], names[:fitting], ends[: fitting + 1]
    places = (ends[:-1] + ends[1:]) / 2
    color, equal = METHODS["baseline"].color, 1.0 if ratio else 0.0
    drawn = new_figure(0.6 + 0.2 * (bounds is not None) + ends[-1])
    axes = drawn.add_subplot()
    axes.axvline(equal, color=FAINT, linewidth=0.8)
    shown = [_shown(entry) for entry in entries]
    furthest = BEYOND * max(abs(end - equal) for value, *span, _ in shown for end in (value, *span) if end is not None)
    for place, (value, low, high, filled) in zip(places, shown, strict=True):
        interval = equal - furthest if low is None else low, equal + furthest if high is None else high
        axes.plot(interval, [place] * 2, color=color)
        axes.plot(value, place, marker="o", markersize=4.5, color=color, markerfacecolor=color if filled else "white")
    if bounds is not None:
        _bound(axes, bounds, ratio)
    axes.set_yticks(places, names)
    axes.set_ylim(ends[-1], 0)
    correlated = all(entry["metric"] == CORRELATION for entry in entries)
    axes.set_xlabel("ratio" if ratio else "correlation" if correlated else "difference")
    return drawn


def curves(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the calibration curve of each group, one panel for each grouping."""
    groupings = list(dict.fromkeys(group["grouping"] for group in groups))
    drawn = new_figure(3.2 * len(groupings))
    for number, grouping in enumerate(groupings, 1):
        axes = drawn.add_subplot(len(groupings), 1, number)
        own = sorted((group for group in groups if group["grouping"] == grouping), key=lambda group: str(group["name"]))
        axes.axline((0.5, 0.5), slope=1, color=FAINT, linestyle=":", linewidth=0.8)
        for place, group in enumerate(own):
            color, line = line_style(place)
            x, y = ([one[key] for one in group["curve"]] for key in ("score", "estimate"))
            low, high = zip(*(one["interval"] for one in group["curve"]), strict=True)
            axes.plot(
                x, y, color=color, linestyle=line, marker="o", markersize=3, label=label_text(group["name"], LETTERS)
            )
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        axes.set_ylim(-0.02, 1.02)
        axes.set_ylabel("rate of positive labels")
        axes.set_xlabel("score")
        axes.set_title(label_text(grouping, LETTERS))
        axes.legend(loc="upper left")
    return drawn


def _shown(entry: Mapping[str, Any]) -> tuple[float, float | None, float | None, bool]:
    """Return the estimate, the ends of its interval and whether something is shown: about bounds, if there are any."""
    bounds = entry["bounds"]
    if bounds is None:
        return entry["difference"], *entry["interval"], entry["rejected"]
    return bounds["estimate"], *bounds["interval"], bounds["outcome"] != "not shown"


def _bound(axes: Axes, bounds: Mapping[str, Any], ratio: bool) -> None:
    """Draw the margin, or the smallest ratio allowed, with its name above the panel."""
    name = f"ratio {bounds['low']:g}" if ratio else f"margin {bounds['high']:g}"
    if ratio and bounds["low"] == FOUR_FIFTHS:
        name += " (four-fifths rule)"
    level(axes, x=bounds["low"], color=WARNING, label=name)
    if not ratio:
        level(axes, x=bounds["high"], color=WARNING)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))
