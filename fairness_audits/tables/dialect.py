"""How an engine writes columns, names and texts in SQL."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """How an engine quotes: ``name`` of a column, ``text`` as a literal."""

    name: Callable[[str], str]
    text: Callable[[str], str]

    def double(self, value: float) -> str:
        """A number as a literal."""
        return f"CAST({self.text(repr(float(value)))} AS DOUBLE)"


@dataclass(frozen=True)
class Column:
    """A column as SQL: ``raw`` as it stands; ``number`` as a double, NULL where a text is no number.

    ``number`` is None for a column of another type (a date, a list).
    """

    raw: str
    number: str | None
