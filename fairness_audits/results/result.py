"""The result of an audit, for Python and notebooks."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_audits.errors import InvalidInput
from fairness_audits.files import check_destination
from fairness_audits.messages import not_installed
from fairness_audits.results.document import (
    Brief,
    Caveat,
    Document,
    Facts,
    Figure,
    Heading,
    Outcome,
    Section,
    Text,
    Verdict,
    can_draw,
)  # fmt: skip
from fairness_audits.results.table import Column, Row, Table, rows_of, under

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

__all__ = [
    "Brief", "Caveat", "Column", "Facts", "Figure", "Outcome", "Result", "Row", "Section", "Table", "Text", "Verdict",
    "rows_of", "under",
]  # fmt: skip
"""The parts of a result."""


class Result(Document):
    """The result of an audit: the verdict and its evidence, with methods to print, draw and save them."""

    def summary(self) -> str:
        """Return the verdict, its evidence and the caveats as text, as the command line prints them."""
        from fairness_audits.results.render import terminal

        return terminal(self)

    def to_markdown(self) -> str:
        """Return the verdict, the answers in plain words and the caveats as a Markdown section for a model card."""
        from fairness_audits.results.render import model_card

        return model_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``audit.json``: all measurements, options and versions."""
        from fairness_audits.results.render import content

        return content(self, in_folder=False)

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """Return a copy of the table with this name, by default of the first table."""
        return self.tables[_known("table", table, list(self.tables))].copy()

    def figure(self, stem: str | None = None) -> Drawing:
        """Draw the figure whose file has this stem, by default the first figure."""
        if not can_draw():
            raise ModuleNotFoundError(not_installed("a figure", "matplotlib"), name="matplotlib")
        from fairness_audits.results.style import paper

        figures = {figure.stem: figure for figure in self.figures()}
        with paper():
            return figures[_known("figure", stem, list(figures))].draw()

    def save(
        self,
        folder: str | Path,
        *,
        title: str = "",
        model_name: str = "",
        data_name: str = "",
        day: date | None = None,
    ) -> list[Path]:
        """Write the JSON, HTML page, tables, figures and options into a folder and return their paths.

        The head of the page has the ``title``, the names of the model and of the data as your readers know them, and
        the ``day``, by default today. Without Matplotlib, there are no figures, and the page says how to install it. If
        an error occurs, no file is written.
        """
        from fairness_audits.results.render import deliver

        check_destination(Path(folder), True)
        return deliver(self, Path(folder), None, heading=Heading(title, model_name, data_name, day))

    def __repr__(self) -> str:
        # The headline says more than the outcome.
        return f"<{self.title} of {self.subject}: {self.verdict.headline.lower()}>"

    def _repr_html_(self) -> str:
        """Return the page in an iframe for notebooks."""
        from html import escape
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            self.save(folder)
            page = Path(folder, self.files()["page"]).read_text(encoding="utf-8")
        return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 42rem; border: 0"></iframe>'


def _known(kind: str, name: str | None, names: list[str]) -> str:
    if name in names or (name is None and names):
        return name or names[0]
    remedy = f"There are {', '.join(names)}" if names else "There is none"
    raise InvalidInput(f"there is no {kind} {name!r}", option="name", remedy=remedy)
