"""Groups derived from columns: ``sex*race`` crosses columns, ``age>=40`` cuts numbers, ``sex*age>=40`` does both."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fairness_audits.audits.permutation.outcomes import in_precision
from fairness_audits.errors import InvalidInput
from fairness_audits.tables.sql import Dialect, SqlColumn
from fairness_audits.tables.typed import number_of

CROSS, BETWEEN = "*", " & "
RELATION = re.compile(r"\s*(>=|<=|>|<)\s*")
OPPOSITE = {">=": "<", "<": ">=", "<=": ">", ">": "<="}


@dataclass(frozen=True)
class Part:
    """A column, or a cut of it if there is a ``relation``; ``at`` is the number as the user wrote it."""

    column: str
    relation: str = ""
    at: str = ""

    @property
    def valid(self) -> bool:
        """Return whether a cut is at a number."""
        return not self.relation or number_of(self.at) is not None

    def sql(self, dialect: Dialect, found: SqlColumn) -> str:
        """Return the SQL of each row's group name, NULL if the value is missing or a value to cut is not a number.

        Numbers are cut in the precision of the column.
        """
        if not self.relation:
            return _level(dialect, found)
        at = float(in_precision(float(self.at), found.precision))
        names = [dialect.text(f"{self.column} {sign} {self.at}") for sign in (self.relation, OPPOSITE[self.relation])]
        return (
            f"CASE WHEN {found.number} IS NULL OR isnan({found.number}) THEN NULL "
            f"WHEN {found.number} {self.relation} {dialect.double(at)} THEN {names[0]} ELSE {names[1]} END"
        )


@dataclass(frozen=True)
class Grouping:
    """A column called ``name`` that is derived from the ``parts``."""

    name: str
    parts: tuple[Part, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the source columns."""
        return tuple(part.column for part in self.parts)

    def sql(self, dialect: Dialect, column: Callable[[str], SqlColumn]) -> str:
        """Return the column's SQL expression."""
        between = f" || {dialect.text(BETWEEN)} || "
        return f"({between.join(part.sql(dialect, column(part.column)) for part in self.parts)})"


@dataclass(frozen=True)
class Constant(Grouping):
    """A column of zeros, in place of a label or a decision that a metric does not use."""

    parts: tuple[Part, ...] = ()

    def sql(self, dialect: Dialect, column: Callable[[str], SqlColumn]) -> str:
        """Return the SQL of 0."""
        return "CAST(0 AS BIGINT)"


def grouping(text: str, columns: Sequence[str]) -> Grouping | None:
    """Return the grouping that a text describes; None if the text is a column or a level of a column.

    Raises InvalidInput for a cut at a value that is not a number.
    """
    if text in columns:
        return None
    parts = tuple(_parts(text, columns))
    return None if len(parts) == 1 and not parts[0].relation else Grouping(text, parts)


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
            problem = f"--group cuts column {part.column!r} at {part.at!r}"
            raise InvalidInput(problem, option="group", column=part.column, remedy="Use a number")
        yield part
        pieces = pieces[stop:]


def _level(dialect: Dialect, found: SqlColumn) -> str:
    """Return the SQL of a value's :func:`fairness_audits.tables.levels.level_name`, in quotes if it contains ``&``."""
    text = f"CAST({found.raw} AS STRING)"
    # The engines differ in how they write what a pattern has found, but not in how they write nothing.
    whole, decimals = dialect.text("^-?([1-9][0-9]*|0)[.]0+$"), dialect.text("[.]0+$")
    rest, shorter = f"regexp_replace({text}, {whole}, '')", f"regexp_replace({text}, {decimals}, '')"
    text = f"CASE WHEN {rest} = '' THEN {shorter} ELSE {text} END"
    text = f"CASE {text} WHEN '-0' THEN '0' ELSE {text} END"
    text = f"CASE lower({text}) WHEN 'true' THEN 'True' WHEN 'false' THEN 'False' ELSE {text} END"
    quote = dialect.text('"')
    quoted = f"{quote} || replace({text}, {quote}, {quote} || {quote}) || {quote}"
    return f"CASE WHEN {text} LIKE '%&%' THEN {quoted} ELSE {text} END"


def _part(text: str, columns: Sequence[str]) -> Part:
    """Return a column or a cut. Spaces around a name count only if it is exactly the name of a column."""
    own = {name.strip(): name for name in columns} | {name: name for name in columns}
    found = list(RELATION.finditer(text)) if text not in own else []
    splits = [(text[: one.start()].strip(), one[1], text[one.end() :].strip()) for one in found]
    if not splits:
        return Part(own.get(text, own.get(text.strip(), text.strip())))
    column, relation, at = next((one for one in splits if one[0] in own), splits[0])
    return Part(own.get(column, column), relation, at)
