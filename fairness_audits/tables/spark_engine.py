"""Spark engine for tables of rows on a cluster: files that the session can read, or a Spark data frame.

pyspark is an optional dependency of this project. Version 4 needs Java 17 or newer.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import SHOWN, check_columns, not_installed
from fairness_audits.tables import sql
from fairness_audits.tables.levels import cells_of, of_other_type
from fairness_audits.tables.source import CSV, layout_of, renamed, unique_names
from fairness_audits.tables.sql import Dialect, SqlColumn
from fairness_audits.tables.table import HALF, Cell, Derived, Faulty, Place, Request, half_columns, missing_texts
from fairness_audits.values import Array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "boolean")
AS_TEXT = ("string", "char", "varchar", "date", "timestamp", "interval", "void")
"""Beginnings of the names of types that are read as text; midnights become dates."""
PLACE = {
    "file_of_row": "_metadata.file_path",
    "block_of_row": "_metadata.file_block_start",
    "id_of_row": "monotonically_increasing_id()",
}
"""Columns that restore the order of the rows in files, which Spark does not keep."""

LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.driver.host": "localhost",
    "spark.sql.shuffle.partitions": "8",
}
"""Settings of a local session: no output, one machine."""

LINES = 200
"""Number of lines of a CSV file from which the separator is detected."""

JAVA = "Java 17 or newer"
INSTALL = "install a JDK and set JAVA_HOME (or use the engine duckdb)"

Result = TypeVar("Result")


def unavailable() -> str | None:
    """Return the reason why Spark cannot run here, or None."""
    try:
        with _without_its_warnings():
            import pyspark  # noqa: F401
    except ImportError:
        return f"{not_installed('the engine spark', 'pyspark')} (or use the engine duckdb)"
    home = os.environ.get("JAVA_HOME")
    if not (home and (Path(home) / "bin" / "java").exists()) and shutil.which("java") is None:
        return f"Spark needs {JAVA}, and there is none: {INSTALL}"
    return None


@contextmanager
def opened(
    source: str | Path | Sequence[str | Path] | Any,
    threads: int | None = None,
    memory: str | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
) -> Iterator[SparkTable]:
    """Open the table of a source in the active Spark session, or else in a local session that is stopped at the end.

    ``source`` is a path or glob with any scheme that the session supports, a list of these, or a Spark or pandas data
    frame. ``threads`` and ``memory`` ("4GB") limit the local session; an active session keeps its own limits. In CSV
    files, the ``missing`` texts are missing values, and ``separator`` names the character between columns.
    Raises InvalidInput if pyspark or Java is missing, or if Spark does not start.
    """
    if reason := unavailable():
        raise InvalidInput(reason, option="engine")
    with _without_its_warnings():
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session is not None:
        yield SparkTable(session, source, missing, separator)
        return
    builder = SparkSession.builder.master(f"local[{threads or '*'}]").appName("contingency")
    for key, value in LOCAL.items():
        builder = builder.config(key, value)
    if memory is not None:
        builder = builder.config("spark.driver.memory", memory.lower().replace(" ", "").removesuffix("b"))
    try:
        with _without_its_warnings():
            session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        problem = f"Spark does not start ({_message_of(error)})"
        raise InvalidInput(problem, option="engine", remedy=f"It needs {JAVA}: {INSTALL}") from error
    try:
        yield SparkTable(session, source, missing, separator)
    finally:
        session.stop()


def name(column: str) -> str:
    """Return a column's name, quoted for an expression."""
    return "`" + column.replace("`", "``") + "`"


def text(value: str) -> str:
    """Return a text, quoted for an expression, in which a backslash starts an escape."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


@contextmanager
def _without_its_warnings() -> Iterator[None]:
    """Suppress pyspark's warnings about pandas 3, which do not concern the plain columns used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"pyspark\.")
        yield


def _message_of(error: Exception) -> str:
    """Return the innermost cause of a Java error without class names, or else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ").partition(": ")[2] for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0]).rstrip(". ")


class SparkTable:
    """Spark engine; :class:`fairness_audits.tables.table.Table` documents its methods."""

    def __init__(
        self,
        session: SparkSession,
        source: str | Path | Sequence[str | Path] | Any,
        missing: Sequence[str] | None = None,
        separator: str | None = None,
    ) -> None:
        from pyspark.sql import functions

        self._session, self._missing = session, missing_texts(missing)
        self._texts: tuple[str, ...] = ()
        self._half: frozenset[str] = frozenset()
        self.derived = dict[str, str]()
        self.notes: dict[str, Any] = {}
        self._from_files = isinstance(source, str | Path | list | tuple)
        self.name = "the data frame"
        if self._from_files:
            paths = [str(one) for one in ([source] if isinstance(source, str | Path) else source)]
            self.name = ", ".join(paths)
            self._plain = self._read(paths, separator)
        else:
            frame: Any = source
            if not hasattr(frame, "toPandas"):
                self._half = half_columns(frame)
                frame = frame.astype(dict.fromkeys(self._half, np.float32))
                with _without_its_warnings():
                    frame = session.createDataFrame(frame)
            self._plain = frame
        kinds = dict(self._plain.dtypes)
        self._other = {column: kind for column, kind in kinds.items() if not kind.startswith((*NUMBERS, *AS_TEXT))}
        if dated := [column for column, kind in kinds.items() if kind.startswith(AS_TEXT[1:])]:
            texts = {column: functions.col(name(column)).cast("string") for column in dated}
            texts = {column: functions.regexp_replace(cell, " 00:00:00$", "") for column, cell in texts.items()}
            self._plain = self._plain.withColumns(texts)
        self._types = dict(self._plain.dtypes)
        self._dialect = Dialect(self._named, text)
        self.columns = tuple(self._types)
        self._rows = self._without_missing_texts(self._plain)

    def size(self) -> int:
        return int(self._done(self._rows.count))

    def cells(self, request: Request) -> list[Cell]:
        keys = sql.keys(self._dialect, request, self._column(request.outcome.column))
        selected = self._rows.selectExpr(*(f"{expression} AS {key}" for key, expression in keys.items()))
        counted = f"{sql.counted('{selected}')} LIMIT {request.cells + 1}"
        return cells_of(self, request, self._done(lambda: self._session.sql(counted, selected=selected).collect()))

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        counts = (f"approx_count_distinct({self._named(column)})" for column in columns)
        (found,) = self._done(self._rows.selectExpr(*counts).collect)
        return dict(zip(columns, found, strict=True))

    def places(self, faulty: Faulty) -> list[Place]:
        """Return the first faulty rows; rows of a data frame have no numbers."""
        column = self._column(faulty.column)
        condition = sql.condition(self._dialect, faulty, column)
        if condition is None:
            return []
        if not self._from_files:
            found = self._done(self._rows.where(condition).selectExpr(column.raw).limit(SHOWN).collect)
            return [Place(None, None, value) for (value,) in found]
        rows = self._placed().where(condition).orderBy(*PLACE).selectExpr(*PLACE, column.raw).limit(SHOWN)
        before = self._rows_before_blocks()
        several = len({file for file, _ in before}) > 1
        return [
            Place(before[file, block] + row, file.rpartition("/")[2] if several else None, value)
            for file, block, row, value in self._done(rows.collect)
        ]

    def precision(self, column: str) -> np.dtype:
        kind = self._types[column]
        single = HALF if column in self._half else np.float32
        return np.dtype(single if kind == "float" else np.int64 if kind.endswith("int") else np.float64)

    def arrays(self, columns: Sequence[str]) -> dict[str, Array]:
        """Return columns in the order of the rows (for a data frame, in Spark's order): numbers, text as objects."""
        rows = self._placed().orderBy(*PLACE) if self._from_files else self._rows
        with _without_its_warnings():
            frame: Any = self._done(rows.selectExpr(*map(self._named, columns)).toPandas)
        found = {column: frame[column].to_numpy() for column in columns}
        return {column: values.astype(HALF) if column in self._half else values for column, values in found.items()}

    def add(self, grouping: Derived) -> None:
        check_columns(self, grouping.columns, "group", self.name)
        self.derived[grouping.name] = grouping.sql(self._dialect, self._column)
        self._rows = self._without_missing_texts(self._plain)
        self._types[grouping.name] = "string"

    def _read(self, paths: list[str], separator: str | None) -> DataFrame:
        reader = self._session.read
        if not all(path.lower().endswith(CSV) for path in paths):
            return self._done(lambda: reader.option("mergeSchema", "true").parquet(*paths))
        lines = self._done(self._session.read.text(paths).limit(LINES).collect)
        found = layout_of("\n".join(line for (line,) in lines).removeprefix("\ufeff"), self.name, separator)
        # Column pruning would hide lines with too many or too few fields.
        self._session.conf.set("spark.sql.csv.parser.columnPruning.enabled", "false")
        own = unique_names(found.names)
        repeated = renamed(found.names, own)
        # Spark renames repeated columns to x0, x1, ... and then cannot check the header.
        strict = reader.options(mode="FAILFAST", escape='"', enforceSchema=bool(repeated), sep=found.separator)
        if found.spaced:
            strict, self.notes["spaces"] = strict.options(ignoreLeadingWhiteSpace=True), True
        plain = self._done(lambda: strict.csv(paths, header=True))
        if repeated:
            if len(plain.inputFiles()) > 1:
                problem = (
                    f"{self.name} has several columns named {repeated[0]['name']}, which Spark can only read from a "
                    "single file"
                )
                raise InvalidInput(problem, source=self.name, column=repeated[0]["name"], remedy="Rename them")
            plain, self.notes["repeated_names"] = plain.toDF(*own), repeated
        self._texts = tuple(plain.columns)
        return plain

    def _without_missing_texts(self, rows: DataFrame) -> DataFrame:
        """Replace the missing texts by NULL in columns read from CSV, and add the derived columns."""
        missing = ", ".join(text(value) for value in self._missing)
        texts = (name(column) for column in self._texts)
        cleaned = [f"CASE WHEN {column} IN ({missing}) THEN NULL ELSE {column} END AS {column}" for column in texts]
        others = [name(column) for column in rows.columns if column not in self._texts]
        made = [f"{expression} AS {name(column)}" for column, expression in self.derived.items()]
        found = rows.selectExpr(*cleaned, *others) if self._texts else rows
        return found.selectExpr("*", *made) if made else found

    def _placed(self) -> DataFrame:
        return self._without_missing_texts(
            self._plain.selectExpr("*", *(f"{expression} AS {column}" for column, expression in PLACE.items()))
        )

    def _rows_before_blocks(self) -> dict[tuple[str, int], int]:
        """Return, by file and block, the offset from a row's id to its number in the file."""
        file, block, row = PLACE
        grouped = self._placed().groupBy(file, block).agg({row: "min", "*": "count"}).orderBy(file, block)
        before: dict[tuple[str, int], int] = {}
        counted: dict[str, int] = {}
        for record in self._done(grouped.collect):
            start = counted.setdefault(record[file], 0)
            before[record[file], record[block]] = start - record[f"min({row})"]
            counted[record[file]] += record["count(1)"]
        return before

    def _column(self, column: str) -> SqlColumn:
        raw, cast = self._named(column), "TRY_CAST" if self._types[column] == "string" else "CAST"
        return SqlColumn(raw, f"{cast}({raw} AS DOUBLE)", self.precision(column))

    def _named(self, column: str) -> str:
        """Return a column's quoted name. Raises InvalidInput for a column of a nested or binary type."""
        if column in self._other:
            raise of_other_type(self, column, self._other[column])
        return name(column)

    def _done(self, work: Callable[[], Result]) -> Result:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return work()
        except (PySparkException, Py4JError) as error:
            problem = f"{self.name} cannot be read ({_message_of(error)})"
            raise InvalidInput(problem, source=self.name, remedy="Correct the source or save it again") from error
