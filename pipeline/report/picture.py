"""A figure as a value: the drawing, its title and caption, and the stamp that is printed in its margin."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from pipeline.report.stamp import Stamp
from pipeline.report.style import print_stamp


@dataclass(frozen=True)
class Picture:
    """A drawn figure. ``alternative`` says in words what can be seen, for those who cannot see it.

    ``absent``: in one line why nothing is drawn; the page then has this line and no picture.
    """

    figure: Figure
    title: str
    stamp: Stamp
    alternative: str
    caption: str = ""
    notes: tuple[str, ...] = ()
    absent: str = ""

    @classmethod
    def stamped(
        cls,
        figure: Figure,
        title: str,
        stamp: Stamp,
        alternative: str,
        notes: tuple[str, ...] = (),
        absent: str = "",
    ) -> Picture:
        """Print the stamp into the figure's margin and keep both together."""
        print_stamp(figure, stamp.lines(), stamp.emphatic)
        # The layout is worked out once, here, rather than for each format that the figure is saved in. Its solver's
        # last digits depend on addresses in memory: rounded, the same figure gives the same bytes.
        figure.draw_without_rendering()
        # With no engine at all: for one that does nothing, matplotlib draws the figure once more before it saves it.
        figure.set_layout_engine(None)
        for axes in figure.axes:
            left, bottom, width, height = axes.get_position(original=True).bounds
            axes.set_position((round(left, 6), round(bottom, 6), round(width, 6), round(height, 6)))
        return cls(figure, title, stamp, alternative, notes=notes, absent=absent)

    def footnotes(self) -> tuple[str, ...]:
        """The notes, then the stamp's lines."""
        return (*self.notes, *self.stamp.lines())
