"""Groups derived from columns: ``sex*race`` crosses columns, ``age>=40`` cuts numbers, ``sex*age>=40`` does both.

However a cut is spelt, it is named ``age >= 40``, and its groups ``age < 40`` and ``age >= 40``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairness_audits.audits.permutation.outcomes import in_precision
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import enumerated, unlike
from fairness_audits.tables.levels import level_name, rest_of
from fairness_audits.tables.typed import number_of

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw

    from fairness_audits.tables.expressions import Column

CROSS, BETWEEN = "*", ", "
RELATION = re.compile(r"\s*(>=|<=|>|<)\s*")
RELATIONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
OPPOSITE = {">=": "<", "<": ">=", "<=": ">", ">": "<="}


@dataclass(frozen=True)
class Part:
    """A column, or a cut of it if there is a ``relation``; ``at`` is the number as the user wrote it."""

    column: str
    relation: str = ""
    at: str = ""

    @property
    def name(self) -> str:
        """Return the column, or the cut as its own level."""
        return self.level(True) if self.relation else self.column

    @property
    def valid(self) -> bool:
        """Return whether a cut is at a number."""
        return not self.relation or number_of(self.at) is not None

    def key(self, found: Column) -> nw.Expr:
        """Return the value of each row, or the side of the cut: null if it is missing or not a number.

        Numbers are cut in the precision of the column.
        """
        if not self.relation:
            return found.raw
        import narwhals.stable.v2 as nw

        side = RELATIONS[self.relation](found.number, float(in_precision(float(self.at), found.precision)))
        return nw.when(~(found.number.is_null() | found.number.is_nan())).then(side)

    def level(self, value: Any) -> str:
        """Return the name of a value of the key; a name that contains a comma is quoted."""
        if self.relation:
            return f"{self.column} {self.relation if value else OPPOSITE[self.relation]} {self.at}"
        name = level_name(value)
        return '"' + name.replace('"', '""') + '"' if "," in name else name


@dataclass(frozen=True)
class Grouping:
    """A column called ``name`` that is derived from the ``parts``."""

    name: str
    parts: tuple[Part, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the source columns."""
        return tuple(part.column for part in self.parts)

    @property
    def title(self) -> str:
        """Return the name for readers: ``sex and race`` for a cross, ``age>=40`` for a cut."""
        return enumerated(list(dict.fromkeys(self.columns))) if len(self.parts) > 1 else self.name

    def keys(self, column: Callable[[str], Column]) -> list[nw.Expr]:
        """Return the expressions whose values make up the levels; ``column`` looks up source columns by name."""
        return [part.key(column(part.column)) for part in self.parts]

    def level(self, values: Sequence[Any]) -> Any:
        """Return the level of values of the keys."""
        return BETWEEN.join(part.level(value) for part, value in zip(self.parts, values, strict=True))


@dataclass(frozen=True)
class Constant(Grouping):
    """A column of zeros, in place of a label or a decision that a metric does not use."""

    parts: tuple[Part, ...] = ()

    def keys(self, column: Callable[[str], Column]) -> list[nw.Expr]:
        """Return 0."""
        import narwhals.stable.v2 as nw

        return [nw.lit(0)]

    def level(self, values: Sequence[Any]) -> Any:
        """Return 0."""
        return 0


def grouping(text: str, columns: Sequence[str]) -> Grouping | None:
    """Return the grouping that a text describes; None if the text is a column or a level of a column.

    Raises InvalidInput for a cut at a value that is not a number.
    """
    if text in columns:
        return None
    parts = tuple(_parts(text, columns))
    if len(parts) == 1 and not parts[0].relation:
        return None
    return Grouping(unlike(CROSS.join(part.name for part in parts), columns, "group"), parts)


def sides(name: str) -> tuple[str, dict[bool, str]] | None:
    """Return the name and groups of booleans that are called like a cut or a level; None for other names.

    >>> sides("age>=40")
    ('age >= 40', {True: 'age >= 40', False: 'age < 40'})
    >>> sides("race=Black")
    ('race=Black', {True: 'Black', False: 'not Black'})
    """
    cut, (column, _, level) = _part(name, ()), name.partition("=")
    if cut.column and cut.relation and cut.valid:
        return cut.name, {side: cut.level(side) for side in (True, False)}
    return (name, {True: level, False: rest_of(level, [level])}) if column and level and not cut.relation else None


def as_spelt(level: str) -> str:
    """Return a level without what a user may spell in another way: quotes, ``&`` for a comma, spaces around them."""
    return re.sub(r"\s*(,|[<>]=?)\s*", r"\1", " ".join(level.replace('"', "").replace("&", ",").split()))


def _parts(text: str, columns: Sequence[str]) -> Iterator[Part]:
    """Yield the parts between the stars. A star in the name of a column separates nothing.

    Raises InvalidInput for a cut at a value that is not a number.
    """
    pieces = text.split(CROSS)
    while pieces:
        wholes = ((stop, _part(CROSS.join(pieces[:stop]), columns)) for stop in range(len(pieces), 0, -1))
        stop, part = next(((stop, one) for stop, one in wholes if one.column in columns and one.valid), (1, None))
        part = part or _part(pieces[0], columns)
        if not part.valid:
            problem = f"group cuts column {part.column!r} at {part.at!r}"
            raise InvalidInput(problem, option="group", column=part.column, remedy="Use a number")
        yield part
        pieces = pieces[stop:]


def _part(text: str, columns: Sequence[str]) -> Part:
    """Return a column or a cut. Spaces around a name count only if it is exactly the name of a column."""
    own = {name.strip(): name for name in columns} | {name: name for name in columns}
    found = list(RELATION.finditer(text)) if text not in own else []
    splits = [(text[: one.start()].strip(), one[1], text[one.end() :].strip()) for one in found]
    if not splits:
        return Part(own.get(text, own.get(text.strip(), text.strip())))
    column, relation, at = next((one for one in splits if one[0] in own), splits[0])
    return Part(own.get(column, column), relation, at)
