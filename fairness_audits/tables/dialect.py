"""SQL dialects: how an engine writes columns, names and texts."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """The quoting rules of an engine: ``name`` quotes a column's name, ``text`` a text literal."""

    name: Callable[[str], str]
    text: Callable[[str], str]

    def double(self, value: float) -> str:
        """Return a number as a literal."""
        return f"CAST({self.text(repr(float(value)))} AS DOUBLE)"


@dataclass(frozen=True)
class SqlColumn:
    """SQL expressions of a column: ``raw`` is its value, ``number`` its value as a double, NULL if it is not a number.

    ``number`` is None for a column of another type, such as a date or a list.
    """

    raw: str
    number: str | None
