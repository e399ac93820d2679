"""The figure of the permutation tests: each difference with its interval."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from fairness_audits.audits.permutation.asked import CORRELATION
from fairness_audits.audits.permutation.result import named
from fairness_audits.results.markup import label_text
from fairness_audits.results.style import FAINT, METHODS, line_style, new_figure

LINES = 60
"""Largest number of tests in the figure, from the top of the table; more do not fit on a page."""
LETTERS = 56
BEYOND = 1.15
"""Open ends of intervals are drawn at this multiple of the furthest finite end."""


def figure(results: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw a line for each defined test. Call and save within :func:`fairness_audits.results.style.paper`."""
    entries = [entry for entry in results if entry["undefined"] is None][:LINES]
    color = METHODS["baseline"].color
    drawn = new_figure(0.6 + 0.22 * len(entries))
    axes = drawn.add_subplot()
    axes.axvline(0.0, color=FAINT, linewidth=0.8)
    known = [abs(end) for entry in entries for end in (entry["difference"], *entry["interval"]) if end is not None]
    furthest = BEYOND * max(known)
    for place, entry in enumerate(entries):
        low, high = entry["interval"]
        axes.plot([-furthest if low is None else low, furthest if high is None else high], [place] * 2, color=color)
        face = color if entry["rejected"] else "white"
        axes.plot(entry["difference"], place, marker="o", markersize=4.5, color=color, markerfacecolor=face)
    axes.set_yticks(range(len(entries)), [label_text(named(entry), LETTERS) for entry in entries])
    axes.set_ylim(len(entries) - 0.4, -0.6)
    axes.set_xlabel("difference" if any(entry["metric"] != CORRELATION for entry in entries) else "correlation")
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
