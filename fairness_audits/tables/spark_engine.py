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
from fairness_audits.messages import not_installed
from fairness_audits.tables.frame import AS_NUMBER, ROW, Table
from fairness_audits.tables.source import CSV, is_files, layout_of, renamed, unique_names
from fairness_audits.tables.table import missing_texts

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import pandas as pd
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
    source: Any,
    threads: int | None = None,
    memory: str | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
) -> Iterator[SparkTable]:
    """Open the table of a source in its or the active Spark session, or else in a local one that is stopped at the end.

    ``source`` is a path or glob with any scheme that the session supports, a list of these, or a Spark data frame.
    ``threads`` and ``memory`` ("4GB") limit the local session; an active session keeps its own limits. In CSV files,
    the ``missing`` texts are missing values, and ``separator`` names the character between columns.
    Raises InvalidInput if pyspark or Java is missing, or if Spark does not start.
    """
    if reason := unavailable():
        raise InvalidInput(reason, option="engine")
    with _without_its_warnings():
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession

    session = getattr(source, "sparkSession", None) or SparkSession.getActiveSession()
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


class SparkTable(Table):
    """Files or a data frame, opened by Spark."""

    def __init__(
        self,
        session: SparkSession,
        source: Any,
        missing: Sequence[str] | None = None,
        separator: str | None = None,
    ) -> None:
        from pyspark.sql import functions

        super().__init__()
        self._session, self._missing = session, missing_texts(missing)
        self._from_files = is_files(source)
        self.name = "the data frame"
        if self._from_files:
            paths = [str(one) for one in ([source] if isinstance(source, str | Path) else source)]
            self.name = ", ".join(paths)
            self._plain = self._read(paths, separator)
        else:
            self._plain = source
        kinds = dict(self._plain.dtypes)
        self._other = {column: kind for column, kind in kinds.items() if not kind.startswith((*NUMBERS, *AS_TEXT))}
        if dated := [column for column, kind in kinds.items() if kind.startswith(AS_TEXT[1:])]:
            texts = {column: functions.col(name(column)).cast("string") for column in dated}
            texts = {column: functions.regexp_replace(cell, " 00:00:00$", "") for column, cell in texts.items()}
            self._plain = self._plain.withColumns(texts)
        self._types = dict(self._plain.dtypes)
        self.columns = tuple(self._types)
        self._own = {column: f"c{place}" for place, column in enumerate(self.columns)}
        self._texts = frozenset(column for column, kind in self._types.items() if kind == "string")

    def precision(self, column: str) -> np.dtype:
        kind = self._types.get(column, "string")
        return np.dtype(np.float32 if kind == "float" else np.int64 if kind.endswith("int") else np.float64)

    def _stored(self) -> DataFrame:
        """Return the rows with NULL for the missing texts of CSV files."""
        cells, missing = {own: name(column) for column, own in self._own.items()}, ", ".join(map(text, self._missing))
        if self.is_csv:
            cells = {own: f"CASE WHEN {cell} IN ({missing}) THEN NULL ELSE {cell} END" for own, cell in cells.items()}
        if self._from_files:
            cells |= PLACE
        return self._plain.selectExpr(*(f"{cell} AS {own}" for own, cell in cells.items()))

    def _with_numbers(self, rows: DataFrame, texts: Sequence[str]) -> DataFrame:
        return rows.selectExpr("*", *map(AS_NUMBER.format, texts))

    def _in_order(self) -> DataFrame:
        return self._stored().orderBy(*PLACE) if self._from_files else self._stored()

    def _numbered(self) -> Iterator[tuple[str | None, DataFrame]]:
        rows, (file, block, row) = self._stored(), PLACE
        if not self._from_files:
            yield None, rows.selectExpr("*", f"CAST(NULL AS BIGINT) AS {ROW}")
            return
        number = f"row_number() OVER (PARTITION BY {file} ORDER BY {block}, {row}) - 1 AS {ROW}"
        paths = [path for (path,) in self._done(rows.select(file).distinct().orderBy(file).collect)]
        for path in paths:
            own = rows.where(f"{file} = {text(path)}").selectExpr("*", number)
            yield (path.rpartition("/")[2] if len(paths) > 1 else None), own

    def _fetched(self, found: nw.LazyFrame[Any], most: int) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._done(lambda: found.to_native().take(most))]

    def _pandas(self, found: nw.LazyFrame[Any]) -> pd.DataFrame:
        with _without_its_warnings():
            rows: pd.DataFrame = self._done(found.to_native().toPandas)
        return rows

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
        self.is_csv = True
        return plain

    def _done(self, work: Callable[[], Result]) -> Result:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            return work()
        except (PySparkException, Py4JError) as error:
            problem = f"{self.name} cannot be read ({_message_of(error)})"
            raise InvalidInput(problem, source=self.name, remedy="Correct the source or save it again") from error
