"""Groups derived from columns: ``sex*race`` crosses columns, ``age>=40`` cuts numbers, ``sex*age>=40`` does both."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairness_audits.errors import InvalidInput
from fairness_audits.tables.sql import Dialect, SqlColumn
from fairness_audits.tables.typed import number_of

CROSS, BETWEEN = "*", " & "
CUT = re.compile(r"(.+?)\s*(>=|<=|>|<)\s*(\S+)")
OPPOSITE = {">=": "<", "<": ">=", "<=": ">", ">": "<="}


@dataclass(frozen=True)
class Part:
    """A column, or a cut of it if there is a ``relation``."""

    column: str
    relation: str = ""
    at: float = 0.0

    def sql(self, dialect: Dialect, found: SqlColumn) -> str:
        """Return the SQL of each row's group name, NULL if the value is missing or a value to cut is not a number."""
        if not self.relation:
            return _level(dialect, found)
        names = [dialect.text(f"{self.column} {sign} {self.at:g}") for sign in (self.relation, OPPOSITE[self.relation])]
        return (
            f"CASE WHEN {found.number} IS NULL OR isnan({found.number}) THEN NULL "
            f"WHEN {found.number} {self.relation} {dialect.double(self.at)} THEN {names[0]} ELSE {names[1]} END"
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
    parts = [_part(one if one in columns else one.strip(), columns) for one in text.split(CROSS)]
    return None if len(parts) == 1 and not parts[0].relation else Grouping(text, tuple(parts))


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
    found = None if text in columns else CUT.fullmatch(text)
    if found is None:
        return Part(text)
    column, relation, value = found.groups()
    at = number_of(value)
    if at is None:
        raise InvalidInput(
            f"--group={text!r} cuts column {column!r} at {value!r}", option="group", column=column,
            remedy="Use a number",
        )  # fmt: skip
    return Part(column, relation, at)
