"""Polars engine for data frames and lazy queries: polars counts the rows, and a query is never collected whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import reason
from fairness_audits.tables.frame import ROW, Table
from fairness_audits.tables.table import DIGITS, HALF

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    import pandas as pd

LARGE = ("Int128", "UInt128")
"""Types of integers that are read as text."""
TEXTS = (pl.String, pl.Categorical, pl.Enum, pl.Null)

Done = TypeVar("Done")


@contextmanager
def opened(source: pl.DataFrame | pl.LazyFrame, *_: Any) -> Iterator[PolarsTable]:
    """Open the table of a data frame or a lazy query. The limits of other engines and the layout of files do not apply.

    Raises InvalidInput if the query fails.
    """
    yield PolarsTable(source)


def read_as(cell: pl.Expr, kind: pl.DataType) -> pl.Expr | None:
    """Return the expression that reads a cell of this type as a number or text; None for nested and binary types."""
    if isinstance(kind, TEXTS) or str(kind) in LARGE:
        return cell.cast(pl.String)
    if isinstance(kind, pl.Decimal):
        return cell.cast(pl.Float64) if kind.precision <= DIGITS else _written(cell)
    if str(kind) == "Float16":
        return cell.cast(pl.Float32)
    if kind.is_numeric() or isinstance(kind, pl.Boolean):
        return cell
    if isinstance(kind, pl.Date):
        return cell.cast(pl.String)
    if isinstance(kind, pl.Datetime | pl.Time):
        zone = getattr(kind, "time_zone", None)
        local = cell.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zone else cell
        return _written(local) + "+00" if zone else _written(local).str.replace(" 00:00:00$", "")
    return None


def _written(cell: pl.Expr) -> pl.Expr:
    """Return a cell as text, without zeros at the end of decimals."""
    return cell.cast(pl.String).str.replace(r"(\.\d*[1-9])0+$", "${1}").str.replace(r"\.0+$", "")


class PolarsTable(Table):
    """A data frame or a lazy query of polars."""

    def __init__(self, source: pl.DataFrame | pl.LazyFrame) -> None:
        super().__init__()
        self.name, query = "the data frame", source.lazy()
        self._size = source.height if isinstance(source, pl.DataFrame) else None
        self._kinds = dict(self._done(query.collect_schema))
        self.columns = tuple(self._kinds)
        self._own = {column: f"c{place}" for place, column in enumerate(self.columns)}
        cells = {self._own[column]: read_as(pl.col(column), kind) for column, kind in self._kinds.items()}
        self._rows = query.select(**{own: cell for own, cell in cells.items() if cell is not None})
        types = self._rows.collect_schema()
        self._texts = frozenset(column for column, own in self._own.items() if types.get(own) == pl.String)
        self._half = frozenset(column for column, kind in self._kinds.items() if str(kind) == "Float16")
        self._other = {column: str(self._kinds[column]) for column, own in self._own.items() if own not in types}

    def precision(self, column: str) -> np.dtype:
        kind, half = self._kinds.get(column, pl.String()), column in self._half
        if half or isinstance(kind, pl.Float32):
            return np.dtype(HALF if half else np.float32)
        whole = kind.is_integer() or (isinstance(kind, pl.Decimal) and kind.scale == 0)
        return np.dtype(np.int64 if whole else np.float64)

    def _stored(self) -> pl.LazyFrame:
        return self._rows

    def _with_numbers(self, rows: pl.LazyFrame, texts: Sequence[str]) -> pl.LazyFrame:
        numbers = {own: pl.col(own).str.strip_chars().cast(pl.Float64, strict=False) for own in texts}
        return rows.with_columns(**{f"number_of_{own}": number for own, number in numbers.items()})

    def _numbered(self) -> Iterator[tuple[str | None, pl.LazyFrame]]:
        yield None, self._rows.with_row_index(ROW)

    def _fetched(self, found: nw.LazyFrame[Any], most: int) -> list[tuple[Any, ...]]:
        return self._collected(found.head(most)).rows()

    def _pandas(self, found: nw.LazyFrame[Any]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({column.name: column.to_numpy() for column in self._collected(found)})

    def _collected(self, found: nw.LazyFrame[Any]) -> pl.DataFrame:
        rows: pl.LazyFrame = found.to_native()
        return self._done(lambda: rows.collect(engine="streaming"))

    def _done(self, work: Callable[[], Done]) -> Done:
        try:
            return work()
        except (pl.exceptions.PolarsError, OSError) as error:
            problem = f"{self.name} cannot be read ({reason(error)})"
            raise InvalidInput(problem, source=self.name, remedy="Correct the query") from error
