"""The stamp of an artefact (scale, data and repetitions, computed from its rows), and a figure as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairness_audits.messages import enumerated
from fairness_audits.results.formats import sentence
from fairness_audits.results.style import WARNING, new_figure, print_stamp
from pipeline.report import labels as w
from pipeline.report.reduction import Reduction

COUNTED = ("block", "dataset", "method", "transport", "repetition", "theta_1", "origin", "scale")
"""The columns that a stamp is computed from."""


@dataclass(frozen=True)
class Stamp:
    """Scale, origins and repetitions of the rows behind an artefact.

    ``repetitions`` holds the distinct numbers of repetitions, largest first, and ``fewer`` the methods that have fewer
    than the others of their block and data set. An audit without a model draws its own samples and has no repetitions
    of a split. ``twins`` names the data sets that a synthetic twin replaces.
    ``reductions`` holds the differences from the published configuration.
    """

    scale: str
    origins: tuple[str, ...]
    twins: tuple[str, ...] = ()
    repetitions: tuple[int, ...] = ()
    fewer: tuple[tuple[str, int], ...] = ()
    reductions: tuple[Reduction, ...] = ()

    @classmethod
    def of(cls, rows: pd.DataFrame, reductions: Sequence[Reduction] = ()) -> Stamp:
        """Compute the stamp of tidy rows."""
        # In a grid of classifiers, the repetition axis numbers the classifiers and not random splits.
        split = rows[rows["theta_1"].isna()] if "theta_1" in rows else rows
        # A transport map has trials even without a model.
        mapped = split["transport"].notna() if "transport" in split else False
        split = split[(split["method"] != w.NO_METHOD) | mapped]
        counted = split.groupby(["block", "dataset", "method"], observed=True)["repetition"].nunique()
        most = counted.groupby(["block", "dataset"], observed=True).transform("max")
        fewer = {(str(method), int(number)) for (_, _, method), number in counted[counted < most].items()}
        twins = sorted(rows.loc[rows["origin"] == "twin", "dataset"].unique())
        return cls(
            scale=enumerated(sorted(rows["scale"].unique())),
            origins=tuple(sorted(rows["origin"].unique())),
            twins=tuple(twins),
            repetitions=tuple(sorted(set(most.astype(int)), reverse=True)),
            fewer=tuple(sorted(fewer)),
            reductions=tuple(reductions),
        )

    @property
    def emphatic(self) -> bool:
        """Return whether data or settings of the artefact differ from the published ones."""
        return bool(self.twins) or bool(self.reductions)

    def lines(self) -> tuple[str, ...]:
        """Return the printed lines: scale, repetitions, origin and number of reductions; then the twins, if any.

        Artefacts that were not run have the scale only.
        """
        parts = (w.scales(self.scale), self._repetitions(), self._origin(), self.departing())
        lines = [sentence(" \u00b7 ".join(filter(None, parts)))]
        if self.twins:
            names = w.datasets_named(self.twins)
            lines.append(f"Synthetic twin of {names}, not the official data: these numbers are not evidence about it")
        return tuple(lines)

    def departing(self) -> str:
        """Return ``14 settings differ from the paper``, or an empty text. The page lists them once per study."""
        count = len({reduction.key for reduction in self.reductions})
        return f"{count:,} setting{' differs' if count == 1 else 's differ'} from the paper" if count else ""

    def _repetitions(self) -> str:
        if not self.repetitions:
            return ""
        numbers = [f"{number:,}" for number in self.repetitions]
        text = " and ".join(numbers) if len(numbers) < 3 else f"{numbers[-1]} to {numbers[0]}"
        apart = ", ".join(f"{w.METHODS[method]}: {number:,}" for method, number in self.fewer)
        return f"{text} repetition{'s' * (self.repetitions != (1,))}{f' ({apart})' if apart else ''}"

    def _origin(self) -> str:
        words = {"official": "official data", "simulated": "simulated data", "twin": "synthetic data"}
        present = [origin for origin in self.origins if origin != "absent"]
        if not self.origins:
            return ""
        return enumerated(words.get(origin, f"{origin} data") for origin in present or self.origins)


LETTERS, LINE = 100, 0.17
"""Letters in a line of text across the page, and its height in inches."""


def say(axes: Axes, text: str) -> None:
    """Print the reason into a panel without numbers."""
    axes.set_axis_off()
    style: Any = {"ha": "center", "va": "center", "transform": axes.transAxes, "fontsize": 7.5, "wrap": True}
    axes.text(0.5, 0.5, text, color=WARNING, **style)


@dataclass(frozen=True)
class Picture:
    """A drawn figure. ``alternative`` describes it for people who cannot see it.

    If nothing is drawn, ``absent`` gives the reason in one line, and the page shows this line instead of a picture.
    """

    figure: Figure
    title: str
    stamp: Stamp
    alternative: str
    notes: tuple[str, ...] = ()
    absent: str = ""
    caption: str = ""

    @classmethod
    def nothing(cls, title: str, stamp: Stamp, why: str) -> Picture:
        """Return a figure without a drawing that is as high as the reason."""
        lines = wrap(why, LETTERS)
        figure = new_figure(max(1.0, LINE * (len(lines) + 1)))
        say(figure.subplots(), "\n".join(lines))
        return cls(figure, title, stamp, f"No drawing: {why}", absent=why)

    def finish(self) -> None:
        """Print the stamp into the figure's margin and fix the layout for all formats."""
        print_stamp(self.figure, self.stamp.lines(), self.stamp.emphatic)
