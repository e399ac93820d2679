"""A table's texts, set in Markdown, LaTeX and HTML.

By hand: the LaTeX of great_tables has neither row labels nor footnotes, pandas' Styler has no notes and no Markdown,
and either would need the same escapes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Literal

from fairness_audits.results import markup

Kind = Literal["label", "number", "text"]

LETTERS_ON_A_LINE = 40
"""A LaTeX table breaks longer texts into lines."""


@dataclass(frozen=True)
class Heading:
    """The heading of a column, what the column holds, and what is printed above it and its neighbours."""

    text: str
    kind: Kind
    group: str = ""


@dataclass(frozen=True)
class Line:
    """The texts of one row, and whether a group of rows opens with it."""

    texts: tuple[str, ...]
    opens: bool


@dataclass(frozen=True)
class Printed:
    """A table of texts."""

    title: str
    caption: str
    headings: tuple[Heading, ...]
    lines: tuple[Line, ...]
    footnotes: tuple[str, ...]

    def groups(self) -> list[tuple[str, int]]:
        """What stands above the headings, and over how many columns."""
        return [(name, len(list(members))) for name, members in groupby(heading.group for heading in self.headings)]

    @property
    def grouped(self) -> bool:
        """Whether anything stands above the headings."""
        return any(name for name, _ in self.groups())

    def markdown(self) -> str:
        """A pipe table with the title above and the notes below."""
        names = [f"{h.group}: {h.text}" if h.group else h.text for h in self.headings]
        rule = ["--:" if heading.kind == "number" else ":--" for heading in self.headings]
        lines = [f"**{markup.markdown(self.title)}** {markup.markdown(self.caption)}".rstrip(), ""]
        lines += [_piped(names), "| " + " | ".join(rule) + " |"]
        lines += [_piped(line.texts) for line in self.lines]
        for note in self.footnotes:
            lines += ["", f"*{markup.markdown(note)}*"]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """A ``longtable`` (packages booktabs, longtable, amsmath)."""
        alignment = "".join(map(self._latex_alignment, range(len(self.headings))))
        names = " & ".join(markup.latex(heading.text) for heading in self.headings)
        head = [r"\toprule", *self._latex_groups(), names + r" \\", r"\midrule"]
        body: list[str] = []
        for line in self.lines:
            body += [r"\addlinespace"] * line.opens + [" & ".join(map(markup.latex, line.texts)) + r" \\"]
        caption = f"\\caption{{{markup.latex(f'{self.title} {self.caption}'.strip())}}}"
        notes = r" \\ ".join(map(markup.latex, self.footnotes))
        below = f"\\par\\smallskip{{\\footnotesize {notes}\\par}}"
        begin = [r"{\footnotesize", f"\\begin{{longtable}}{{{alignment}}}", caption + r" \\", *head, r"\endhead"]
        return "\n".join([*begin, r"\bottomrule", r"\endfoot", *body, r"\end{longtable}}", below]) + "\n"

    def html(self) -> str:
        """The ``table`` element alone; the page sets title, caption and notes around it."""
        lines = ["<table>", "<thead>"]
        if self.grouped:
            cells = [
                f'<th class="group" colspan="{width}" scope="colgroup">{escape(name)}</th>'
                if name
                else f'<th colspan="{width}"></th>'
                for name, width in self.groups()
            ]
            lines.append(f"<tr>{''.join(cells)}</tr>")
        heads = [f'<th class="{h.kind}" scope="col">{escape(h.text)}</th>' for h in self.headings]
        lines += [f"<tr>{''.join(heads)}</tr>", "</thead>", "<tbody>"]
        for line in self.lines:
            cells = [
                f'<th class="label" scope="row">{escape(text)}</th>'
                if heading.kind == "label"
                else f'<td class="{heading.kind}">{escape(text)}</td>'
                for heading, text in zip(self.headings, line.texts, strict=True)
            ]
            opens = ' class="opens"' if line.opens else ""
            lines.append(f"<tr{opens}>{''.join(cells)}</tr>")
        return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"

    def _latex_alignment(self, index: int) -> str:
        if self.headings[index].kind == "number":
            return "r"
        longest = max((len(line.texts[index]) for line in self.lines), default=0)
        return "l" if longest <= LETTERS_ON_A_LINE else r"p{0.3\linewidth}"

    def _latex_groups(self) -> list[str]:
        if not self.grouped:
            return []
        cells, rules, position = [], [], 1
        for name, width in self.groups():
            cells.append(f"\\multicolumn{{{width}}}{{c}}{{{markup.latex(name)}}}")
            if name:
                rules.append(f"\\cmidrule(lr){{{position}-{position + width - 1}}}")
            position += width
        return [" & ".join(cells) + r" \\", " ".join(rules)]


def _piped(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(markup.markdown, texts))} |"
