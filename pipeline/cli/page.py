"""What a page for the terminal is made of: titled sections, named lines and wrapped paragraphs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

WIDTH = 80
"""Characters in a line."""


def titled(title: str, lines: Sequence[str]) -> str:
    """A section; nothing where it has no lines."""
    return "\n".join([title, *lines]) if lines else ""


def line(name: str, text: str) -> str:
    """A name in a column of its own, and beside it what it stands for."""
    return paragraph(text, f"  {name:8}", " " * 10)


def paragraph(text: str, first: str = "  ", later: str | None = None) -> str:
    """Wrapped text; a column's name with a hyphen or a space is not torn where it can be helped."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=first if later is None else later, break_on_hyphens=False
    )
