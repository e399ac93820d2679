"""DuckDB engine for tables of rows on one machine: files, also larger than memory, or a data frame."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import SHOWN, check_distinct, listed
from fairness_audits.tables.frame import AS_NUMBER, ROW, Table
from fairness_audits.tables.source import (
    Files,
    half_in_parquet,
    is_files,
    layout,
    local_files,
    parquet_headers,
    renamed,
    unique_names,
)
from fairness_audits.tables.table import (
    DIGITS,
    HALF,
    half_columns,
    missing_texts,
    precision_of,
)
from fairness_audits.tables.typed import EXACT, nested, typed

if TYPE_CHECKING:
    import duckdb
    import narwhals.stable.v2 as nw
    import pandas as pd

Done = TypeVar("Done")
FRAME, UNTYPED = "rows_in_memory", "untyped_rows"
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
NUMBERS = (*WHOLE, "BOOLEAN", "FLOAT", "DOUBLE")
TEXTS = ("VARCHAR", "ENUM(")
AS_TEXT = ("DATE", "TIME", "INTERVAL", "UUID", "JSON", "HUGEINT", "UHUGEINT", "BIGNUM", '"NULL"')
"""Beginnings of the names of types that are read as text; TIME includes TIMESTAMP, whose midnights become dates."""
DECIMAL = re.compile(r"DECIMAL\((\d+),\d+\)")
TYPES = {
    "BIGINT": "coalesce(regexp_full_match({0}, '\\s*[+-]?(0|[1-9][0-9]*)\\s*') "
    "AND TRY_CAST({0} AS BIGINT) IS NOT NULL, false)",
    "DOUBLE": "{0} IS NULL OR (TRY_CAST({0} AS DOUBLE) IS NOT NULL AND NOT regexp_matches({0}, '^\\s*[+-]?0[0-9]|_') "
    "AND NOT (regexp_full_match({0}, '\\s*[+-]?[0-9]{{16,}}\\s*') "
    f"AND coalesce(abs(TRY_CAST({{0}} AS HUGEINT)) > {EXACT}, true)))",
    "BOOLEAN": "coalesce(regexp_full_match({0}, '(?i)true|false'), true)",
}
"""Types of CSV columns, with a condition on each value. A column has the first type that fits all its values; BIGINT
allows no missing value. Other columns are text, such as codes like 01 and integers that doubles cannot distinguish."""
PLAIN = "[+-]?[0-9]+([eE][+-]?[0-9]+)?"
WITH_COMMA = "[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?"
THOUSANDS = "[+-]?[1-9][0-9]{0,2},[0-9]{3}"
"""Pattern of ambiguous numbers: 1,234 may be a thousand, whereas 0,75 certainly has a decimal comma."""


@contextmanager
def opened(
    source: Any,
    threads: int | None = None,
    memory: str | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
    text_columns: Sequence[str] = (),
) -> Iterator[DuckTable]:
    """Open the table of files, of a data frame of pandas or Arrow, or of a relation of DuckDB.

    ``threads`` (default: all cores) and ``memory`` ("4GB"; default: 80 % of the machine's) are limits; larger data
    spill to a temporary folder. In CSV files, the ``missing`` texts are missing values, ``separator`` names the
    character between columns, and ``text_columns`` have no decimal commas.
    """
    import duckdb

    limits = {name: value for name, value in (("threads", threads), ("memory_limit", memory)) if value is not None}
    with duckdb.connect() if limits else _database(os.getpid())[0].cursor() as connection, ExitStack() as stack:
        if limits:
            limits["temp_directory"] = stack.enter_context(tempfile.TemporaryDirectory(prefix="tabulate-"))
        for name, value in limits.items():
            try:
                connection.execute(f"SET {name} = {text(str(value))}")
            except duckdb.Error as error:
                option = "memory" if name == "memory_limit" else name
                problem = f"DuckDB does not accept --{option}={value}: {error_text(error)}"
                raise InvalidInput(problem, option=option) from error
        connection.execute("SET TimeZone = 'UTC'")
        yield DuckTable(connection, source, missing, separator, text_columns)


@cache
def _database(process: int) -> tuple[duckdb.DuckDBPyConnection, tempfile.TemporaryDirectory[str]]:
    """Return the database of a process, which takes longer to start than a small audit, and where it spills."""
    import duckdb

    folder = tempfile.TemporaryDirectory(prefix="tabulate-")
    return duckdb.connect(config={"temp_directory": folder.name}), folder


def read_as(cell: str, kind: str) -> str | None:
    """Return the expression that reads a cell of this type as a number or text; None for nested and binary types."""
    if "[" in kind:
        return None
    if kind in NUMBERS or kind.startswith(TEXTS):
        return cell
    if kind == "TIME WITH TIME ZONE":  # older versions read times of Parquet in UTC
        return f"CAST(CAST({cell} AS TIME) AS VARCHAR)"
    if kind.startswith(AS_TEXT):
        return f"regexp_replace(CAST({cell} AS VARCHAR), ' 00:00:00$', '')"
    if (decimal := DECIMAL.fullmatch(kind)) is None:
        return None
    if int(decimal[1]) <= DIGITS:
        return f"CAST({cell} AS DOUBLE)"
    return f"regexp_replace(CAST({cell} AS VARCHAR), '[.]0+$|([.][0-9]*[1-9])0+$', '\\1')"


def quoted(column: str) -> str:
    """Return a column's name, quoted for a statement."""
    return '"' + column.replace('"', '""') + '"'


def numbered(columns: Sequence[str]) -> list[str]:
    """Return names of columns by position: c0, c1, ..."""
    return [f"c{place}" for place in range(len(columns))]


def text(value: str) -> str:
    """Return a text, quoted for a statement."""
    return "'" + value.replace("'", "''") + "'"


def error_text(error: BaseException) -> str:
    """Return DuckDB's message in one line; for a CSV file, it includes the line and the error."""
    lines = [line.strip().rstrip(". ") for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:3] if "CSV Error" in lines[0] else lines[:1])


def plain(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str], dict[str, str]]:
    """Return a data frame that DuckDB can read, with :func:`numbered` columns.

    Also return the names of its text columns, and the types of columns of nested or binary values, which are left out.
    Numbers and timestamps are unchanged, except that half precision becomes single, because DuckDB has no half
    precision. All other values (objects, categories) become text.
    """
    import pandas as pd
    from pandas.api.types import is_complex_dtype, is_datetime64_any_dtype, is_float_dtype, is_numeric_dtype

    columns: dict[str, Any] = {}
    texts, other = [], dict[str, str]()
    for name, (_, values) in zip(numbered(frame.columns), frame.items(), strict=True):
        if isinstance(values.dtype, pd.ArrowDtype) and not is_numeric_dtype(values):
            values = values.array.__arrow_array__().to_pandas()
        if is_float_dtype(values):
            columns[name] = values.to_numpy(dtype=np.promote_types(precision_of(values), np.float32), na_value=np.nan)
        elif (is_numeric_dtype(values) and not is_complex_dtype(values)) or is_datetime64_any_dtype(values):
            columns[name] = values.array
        elif kind := nested(values):
            columns[name], other[name] = None, kind
        else:
            found, known = values.astype(object).to_numpy(copy=True), values.notna().to_numpy()
            found[known], found[~known] = list(map(str, found[known])), None
            columns[name] = found
            texts.append(name)
    return pd.DataFrame(columns, index=range(len(frame))), texts, other


class DuckTable(Table):
    """Files or a data frame, opened by DuckDB.

    DuckDB ignores case in names, so its columns are called c0, c1, ...; for Parquet files, DuckDB chooses the names.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        source: Any,
        missing: Sequence[str] | None = None,
        separator: str | None = None,
        text_columns: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._connection, self._missing = connection, ", ".join(map(text, missing_texts(missing)))
        self._select: Callable[[str], duckdb.DuckDBPyRelation] = connection.sql
        self._files: Files | None = None
        self.separator, self.spaced = ",", False
        self.decimal_commas: list[str] = []
        self._headers: Mapping[str, Collection[str]] = {}
        other = dict[str, str]()
        if is_files(source):
            self._files = local_files(source)
            self.name = self._files.name
            self.is_csv = self._files.kind == "csv"
            if self.is_csv:
                found = layout(self._files, separator)
                named, self.separator, self.spaced = found.names, found.separator, found.spaced
                if self.spaced:
                    self.notes["spaces"] = True
            else:
                headers = parquet_headers(self._files)
                named = headers[self._files.paths[0]]
                self._half = half_in_parquet(self._files)
                if len(headers) > 1:
                    self._headers = {path: {name.lower() for name in names} for path, names in headers.items()}
            self._header = unique_names(named)
            if repeated := renamed(named, self._header):
                self.notes["repeated_names"] = repeated
        else:
            self.name = "the data frame"
            self._header, other = self._given(source)
        source = self._opened(self._source())
        known, kinds = source.columns, list(map(str, source.types))
        kinds = [other.get(own, kind) for own, kind in zip(known, kinds, strict=True)]
        self.columns = (*self._header, *known[len(self._header) :])
        self._own = dict(zip(self.columns, numbered(self.columns), strict=True))
        self._known: Mapping[str, str] = dict(zip(self.columns, known, strict=True))
        self._kinds: Mapping[str, str] = dict(zip(self.columns, kinds, strict=True))
        self._cells = {own: read_as(quoted(own), kind) for own, kind in zip(known, kinds, strict=True)}
        self._other = {
            column: kind for (column, own), kind in zip(self._known.items(), kinds, strict=True) if not self._cells[own]
        }
        if self.spaced:
            trimmed = {own: f"ltrim({quoted(own)}, ' ')" for own in known}
            held = f"NOT IN ({self._missing})"
            self._cells = {own: f"CASE WHEN {cell} {held} THEN {cell} END" for own, cell in trimmed.items()}
        self._relation = self._opened(self._rows())
        self._types: Mapping[str, str] = dict(zip(self._relation.columns, map(str, self._relation.types), strict=True))
        self._texts = frozenset(
            column for column, own in self._own.items() if self._types.get(own, "").startswith(TEXTS)
        )
        if self.is_csv and self.separator != ",":
            self.decimal_commas = self._with_decimal_commas(text_columns)
            for own in map(self._known.__getitem__, self.decimal_commas):
                self._cells[own] = f"replace({self._cells[own]}, ',', '.')"
            if self.decimal_commas:
                self._relation = self._opened(self._rows())
                self.notes["decimal_commas"] = {"columns": listed(self.decimal_commas, SHOWN)}

    def _given(self, source: Any) -> tuple[tuple[str, ...], dict[str, str]]:
        """Register a frame as FRAME; return its columns, and the types of those that are left out."""
        import pandas as pd

        if type(source).__name__ == "DuckDBPyRelation":
            # Only the connection of a relation knows its rows.
            self._select = partial(source.query, FRAME)
            return tuple(source.columns), {}
        arrow = hasattr(source, "column_names")
        if not (arrow or isinstance(source, pd.DataFrame)):
            problem = f"expected files, or a data frame of pandas, polars, Arrow, DuckDB or Spark; found {type(source)}"
            raise InvalidInput(problem, remedy="Convert it to one of these")
        header = tuple(map(str, source.column_names if arrow else source.columns))
        check_distinct(header, self.name)
        self._size = len(source)
        texts, other = list[str](), dict[str, str]()
        if arrow:
            rows = source.rename_columns(numbered(header))
            half = [place for place, field in enumerate(rows.schema) if str(field.type) == "halffloat"]
            for place in half:
                rows = rows.set_column(place, f"c{place}", rows.column(place).cast("float32"))
            self._half = frozenset(header[place] for place in half)
        else:
            self._half = half_columns(source)
            rows, texts, other = plain(typed(source, self.name))
        self._connection.register(UNTYPED, rows)
        # DuckDB cannot infer the type of a column without values.
        as_text = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in texts)
        replaced = f" REPLACE ({as_text})" if texts else ""
        self._connection.execute(f"CREATE TEMP VIEW {FRAME} AS SELECT *{replaced} FROM {UNTYPED}")
        return header, other

    def precision(self, column: str) -> np.dtype:
        kind = self._kinds.get(column, "VARCHAR")
        single = HALF if column in self._half else np.float32
        whole = "INT" in kind or kind.endswith(",0)")
        return np.dtype(single if kind == "FLOAT" else np.int64 if whole else np.float64)

    def frame(self, texts: Sequence[str] = ()) -> pd.DataFrame:
        """Return all rows of files: Parquet with its pandas types, CSV with types of TYPES, ``texts`` as text."""

        assert self._files is not None
        if self._files.kind == "parquet":
            found = self._parquet()
            return found.assign(**{name: found[name].map(str, na_action="ignore") for name in texts})
        raw, kinds = list(self._own.values()), dict.fromkeys(self.columns, "VARCHAR")
        counts = [f"count(*) FILTER (WHERE NOT ({of.format(one)}))" for one in raw for of in TYPES.values()]
        (others,) = self._query(f"SELECT {', '.join(counts)} FROM {self._rows()}")
        for name, strange in zip(kinds, np.reshape(others, (len(raw), len(TYPES))), strict=True):
            if name not in texts and not strange.all():
                kinds[name] = list(TYPES)[int(strange.argmin())]
        cast = ", ".join(f"CAST({one} AS {kind})" for one, kind in zip(raw, kinds.values(), strict=True))
        found = self._done(self._connection.sql(f"SELECT {cast} FROM {self._rows()}").df).set_axis(
            list(kinds), axis="columns"
        )
        for name, kind in kinds.items():
            if kind == "VARCHAR":
                # Before pandas 3, astype turns a missing text into "None".
                found[name] = found[name].astype("str").where(found[name].notna())
        return found

    def _parquet(self) -> pd.DataFrame:
        """Return all rows of Parquet files, with unique column names."""
        import pandas as pd
        from pyarrow.parquet import ParquetFile

        assert self._files is not None
        paths = list(self._files.paths)
        if "repeated_names" not in self.notes:
            found = pd.read_parquet(paths).rename(columns=str).reset_index(drop=True)
        else:
            tables = [ParquetFile(path).read().rename_columns(list(self._header)) for path in paths]
            found = pd.concat([one.to_pandas() for one in tables], ignore_index=True)
        return found

    def _with_decimal_commas(self, texts: Sequence[str]) -> list[str]:
        """Return the columns with decimal commas, or none unless one column certainly has them."""
        names = [name for name in self.columns if name not in texts]
        if not names:
            return []
        counts = [
            f"count(*) FILTER (WHERE {condition})"
            for raw in map(self._own.__getitem__, names)
            for condition in (
                f"NOT regexp_full_match({raw}, '{PLAIN}|{WITH_COMMA}')",
                f"regexp_full_match({raw}, '{WITH_COMMA}')",
                f"regexp_full_match({raw}, '{WITH_COMMA}') AND NOT regexp_full_match({raw}, '{THOUSANDS}')",
            )
        ]
        (found,) = self._query(f"SELECT {', '.join(counts)} FROM {self._rows()}")
        others, commas, certain = np.reshape(found, (len(names), -1)).T
        numbers = (others == 0) & (commas > 0)
        if not (certain[numbers] > 0).any():
            return []
        return [name for name, is_number in zip(names, numbers, strict=True) if is_number]

    def _check_usable(self, column: str) -> None:
        super()._check_usable(column)
        own = self._known[column]
        if without := [path for path, names in self._headers.items() if own.lower() not in names]:
            problem = f"{without[0]} has no column {column!r}, unlike other files of {self.name}"
            raise InvalidInput(
                problem, source=without[0], column=column, remedy="Add the column, or leave the file out"
            )

    def _stored(self) -> duckdb.DuckDBPyRelation:
        return self._relation

    def _with_numbers(self, rows: duckdb.DuckDBPyRelation, texts: Sequence[str]) -> duckdb.DuckDBPyRelation:
        return rows.project(", ".join(["*", *map(AS_NUMBER.format, texts)]))

    def _numbered(self) -> Iterator[tuple[str | None, duckdb.DuckDBPyRelation]]:
        paths = self._files.paths if self._files else (None,)
        for path in paths:
            rows = self._opened(f"(SELECT *, row_number() OVER () - 1 AS {ROW} FROM {self._rows(path)})")
            yield (Path(path).name if path and len(paths) > 1 else None), rows

    def _fetched(self, found: nw.LazyFrame[Any], most: int) -> list[tuple[Any, ...]]:
        rows: duckdb.DuckDBPyRelation = found.to_native()
        few = self._size is not None and self._size <= most
        return self._done(lambda: (rows if few else rows.limit(most)).fetchall())

    def _pandas(self, found: nw.LazyFrame[Any]) -> pd.DataFrame:
        rows: pd.DataFrame = self._done(found.to_native().df)
        return rows

    def _rows(self, path: str | None = None) -> str:
        """Return the table expression of the source, or of one of its files, with columns of numbers and of text."""
        cells = {own: cell for own, cell in self._cells.items() if cell is not None}
        names = dict(zip(self._known.values(), self._own.values(), strict=True))
        if path is not None and path in self._headers:
            # Alone, a file may have other types, and it may lack columns.
            held = self._headers[path]
            cells = {
                own: f"CAST({cell} AS {self._types[names[own]]})" for own, cell in cells.items() if own.lower() in held
            }
        selected = ", ".join(f"{cell} AS {names[own]}" for own, cell in cells.items()) or "NULL AS nothing"
        return f"(SELECT {selected} FROM {self._source(path)})"

    def _source(self, path: str | None = None) -> str:
        """Return the table expression of the stored columns."""
        if self._files is None:
            return FRAME
        paths = f"[{', '.join(text(one) for one in ((path,) if path else self._files.paths))}]"
        if self._files.kind == "parquet":
            # Without union_by_name DuckDB would cast a later file's 1.5 to the first file's integer type.
            return f"read_parquet({paths}, union_by_name = true)"
        columns = ", ".join(f"{column}: 'VARCHAR'" for column in numbered(self._header))
        return (
            f"read_csv({paths}, auto_detect = false, header = true, delim = {text(self.separator)}, quote = '\"', "
            f"escape = '\"', columns = {{{columns}}}, nullstr = [{self._missing}])"
        )

    def _query(self, statement: str) -> list[tuple[Any, ...]]:
        return self._done(lambda: self._connection.execute(statement).fetchall())

    def _opened(self, rows: str) -> duckdb.DuckDBPyRelation:
        return self._done(lambda: self._select(f"SELECT * FROM {rows}"))

    def _done(self, work: Callable[[], Done]) -> Done:
        import duckdb

        try:
            return work()
        except duckdb.OutOfMemoryException as error:
            problem = f"{self.name} needs more memory than the limit ({error_text(error)})"
            remedy = "Raise the limit, round the scores, or use a threshold"
            raise InvalidInput(problem, source=self.name, option="memory", remedy=remedy) from error
        except (duckdb.IOException, duckdb.InvalidInputException, duckdb.ConversionException) as error:
            problem = f"{self.name} cannot be read ({error_text(error)})"
            raise InvalidInput(problem, source=self.name, remedy="Correct the file or save it again") from error
