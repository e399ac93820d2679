"""The stamp of an artefact (scale, data, repetitions, computed from its rows), and a figure as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from fairness_audits.messages import enumerated
from fairness_audits.results.formats import sentence
from fairness_audits.results.style import print_stamp
from pipeline.report import labels as w
from pipeline.report.reduction import Reduction


@dataclass(frozen=True)
class Stamp:
    """Scale, origins and repetitions of the rows behind an artefact.

    ``repetitions`` hold every number that occurs, largest first. An audit without a model draws its own samples: it has
    no repetitions of a split. ``twins`` are the datasets that a synthetic stand-in took the place of. ``reductions``
    say where the run differs from the published one.
    """

    scale: str
    origins: tuple[str, ...]
    twins: tuple[str, ...] = ()
    repetitions: tuple[int, ...] = ()
    reductions: tuple[Reduction, ...] = ()

    @classmethod
    def of(cls, rows: pd.DataFrame, reductions: Sequence[Reduction] = ()) -> Stamp:
        """Compute the stamp of tidy rows."""
        # A grid of classifiers has one classifier, not one random split, in each place of the repetition axis.
        split = rows[rows["theta_1"].isna()] if "theta_1" in rows else rows
        # Without a model there are trials all the same where there is a transport map.
        mapped = split["transport"].notna() if "transport" in split else False
        split = split[(split["method"] != w.NO_METHOD) | mapped]
        counted = split.groupby(["block", "dataset", "method"], observed=True)["repetition"].nunique()
        twins = sorted(set(rows.loc[rows["origin"] == "twin", "dataset"]))
        return cls(
            scale=enumerated(sorted(set(rows["scale"]))),
            origins=tuple(sorted(set(rows["origin"]))),
            twins=tuple(twins),
            repetitions=tuple(sorted(set(counted.astype(int)), reverse=True)),
            reductions=tuple(reductions),
        )

    @property
    def emphatic(self) -> bool:
        """Whether data or settings of the artefact are not the published ones."""
        return bool(self.twins) or bool(self.reductions)

    def lines(self) -> tuple[str, ...]:
        """The stamp as it is printed: one line for scale, repetitions, origin and how much departs, one more for twins.

        Of what was not run there is the scale alone.
        """
        parts = (f"{self.scale} scale", self._repetitions(), self._origin(), self.departing())
        lines = [sentence(" \u00b7 ".join(filter(None, parts)))]
        if self.twins:
            names = w.datasets_named(self.twins)
            lines.append(f"Synthetic twin of {names}, not the official data: no number here is evidence about it")
        return tuple(lines)

    def departing(self) -> str:
        """``14 settings not as published``; nothing where all are. The page lists them once for a study."""
        count = len({reduction.key for reduction in self.reductions})
        return f"{count:,} setting{'s' * (count != 1)} not as published" if count else ""

    def _repetitions(self) -> str:
        if not self.repetitions:
            return ""
        numbers = [f"{number:,}" for number in self.repetitions]
        text = " and ".join(numbers) if len(numbers) < 3 else f"{numbers[-1]} to {numbers[0]}"
        return f"{text} repetition{'s' * (self.repetitions != (1,))}"

    def _origin(self) -> str:
        words = {"official": "official data", "simulated": "simulated data", "twin": "synthetic data"}
        present = [origin for origin in self.origins if origin != "absent"]
        if not self.origins:
            return ""
        return enumerated(words.get(origin, f"{w.ORIGINS[origin]} data") for origin in present or self.origins)


@dataclass(frozen=True)
class Picture:
    """A drawn figure. ``alternative`` describes it for people who cannot see it.

    ``absent`` says in one line why nothing is drawn. The page then shows this line and no picture.
    """

    figure: Figure
    title: str
    stamp: Stamp
    alternative: str
    notes: tuple[str, ...] = ()
    absent: str = ""
    caption: str = ""

    def finish(self) -> None:
        """Print the stamp into the figure's margin, and fix the layout once for all formats."""
        print_stamp(self.figure, self.stamp.lines(), self.stamp.emphatic)
