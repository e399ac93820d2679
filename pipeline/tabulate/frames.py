"""Tables of rows in memory by pandas, for small frames and as an independent check of the other engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.messages import listed, reason
from pipeline.tabulate.source import CSV, header, local_files
from pipeline.tabulate.table import (
    FAULTS,
    FIRST,
    MISSING_TEXTS,
    Bins,
    Cell,
    Decision,
    Faulty,
    Place,
    Reading,
    Request,
    Score,
    Threshold,
    TooManyCells,
)
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd


def opened(source: str | Path | Sequence[str | Path] | pd.DataFrame) -> Frame:
    """The table of a data frame, or of files that are read whole."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return Frame(source, "the data frame")
    files = local_files(source)
    if files.kind == "csv":
        header(files)
    parts = [_read(path) for path in files.paths]
    for path, part in zip(files.paths, parts, strict=True):
        if set(part.columns) != set(parts[0].columns):
            raise ValueError(
                f"{path} has the columns {listed(list(part.columns))}, but {files.paths[0]} has "
                f"{listed(list(parts[0].columns))}: files that are audited together need the same columns"
            )
    return Frame(pd.concat(parts, ignore_index=True), files.name, files.paths, [len(part) for part in parts])


class Frame:
    """A :class:`pipeline.tabulate.table.Table`, whose methods are said there."""

    def __init__(self, frame: pd.DataFrame, name: str, paths: Sequence[str] = (), lengths: Sequence[int] = ()) -> None:
        self.name = name
        self._frame = frame.set_axis([str(column) for column in frame.columns], axis="columns")
        self._paths, self._starts = tuple(paths), np.cumsum([0, *lengths])

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._frame.columns)

    def size(self) -> int:
        return len(self._frame)

    def cells(self, request: Request) -> list[Cell] | TooManyCells:
        import pandas as pd

        group, label, raw = (self._frame[column] for column in request.columns)
        if isinstance(request.outcome, Decision):
            fault, value = np.zeros(len(raw), dtype=np.int64), raw.array
        else:
            number, fault = doubles(raw, request.outcome)
            value = np.where(fault == 0, cell_of(number, request.outcome), np.nan)
        keys = [pd.factorize(key, use_na_sentinel=False) for key in (group, label, fault, value)]
        shape = [len(levels) for _, levels in keys]
        places, counts = np.unique(np.ravel_multi_index([codes for codes, _ in keys], shape), return_counts=True)
        if len(places) > request.cells:
            return TooManyCells(self.distinct(request.columns))
        g, y, f, v = np.unravel_index(places, shape)
        levels = [np.asarray(levels, dtype=object).tolist() for _, levels in keys]
        return [
            Cell(levels[0][g[i]], levels[1][y[i]], FAULTS[levels[2][f[i]]], levels[3][v[i]], int(counts[i]))
            for i in range(len(places))
        ]

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        """How many values each column has."""
        return {column: int(self._frame[column].nunique()) for column in columns}

    def places(self, faulty: Faulty) -> list[Place]:
        column = self._frame[faulty.column]
        if faulty.fault == "missing":
            bad = column.isna().to_numpy()
        elif faulty.fault == "value":
            bad = (column == faulty.value).fillna(False).to_numpy(dtype=bool)
        else:
            _, fault = doubles(column, Score(faulty.column, faulty.low, faulty.high))
            bad = fault == FAULTS.index(faulty.fault)
        return [self._place(row, column.iloc[row]) for row in np.flatnonzero(bad)[:FIRST].tolist()]

    def arrays(self, columns: Sequence[str]) -> dict[str, Array]:
        return {column: self._frame[column].to_numpy() for column in columns}

    def _place(self, row: int, value: Any) -> Place:
        if len(self._paths) < 2:
            return Place(row, None, value)
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return Place(row - int(self._starts[part]), Path(self._paths[part]).name, value)


def doubles(column: pd.Series, bounds: Score) -> tuple[Array, Array]:
    """A column as doubles (NaN where it has none), and the code of each row's fault."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

    if is_datetime64_any_dtype(column):
        raise ValueError(f"expected numbers in column {column.name!r}, found {column.dtype}")
    missing = column.isna().to_numpy()
    if is_numeric_dtype(column) or is_bool_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        missing = missing | (column.astype(str).str.strip().str.lower() == "nan").to_numpy(dtype=bool)
    inside = (values >= bounds.low) & (values <= bounds.high) & np.isfinite(values)
    fault = np.select([missing, np.isnan(values), inside], [FAULTS.index(f) for f in ("missing", "text", "none")], 3)
    return values, fault


def cell_of(s: Array, reading: Reading) -> Array:
    """The cell of each score, as float64; the same arithmetic as the statement of the other engines."""
    if isinstance(reading, Threshold):
        return (s >= reading.threshold).astype(np.float64)
    if not isinstance(reading, Bins):
        return s + 0.0
    width, number = reading.high - reading.low, float(reading.number)
    with np.errstate(invalid="ignore"):
        guess = np.floor((s - reading.low) * (number / width))
        moved = guess + (s >= reading.low + (guess + 1.0) * width / number) - (s < reading.low + guess * width / number)
    return np.clip(moved, 0.0, number - 1.0)


def _read(path: str) -> pd.DataFrame:
    import pandas as pd
    from pyarrow import ArrowException

    try:
        if not path.lower().endswith(CSV):
            frame = pd.read_parquet(path)
            if isinstance(frame.index, pd.RangeIndex):
                return frame
            # What pandas makes an index is a column of the file, called so where it has no name of its own.
            own = enumerate(frame.index.names)
            return frame.reset_index(names=[f"__index_level_{i}__" if n in (None, *frame) else n for i, n in own])
        missing = list(MISSING_TEXTS)
        return pd.read_csv(
            path, dtype=str, index_col=False, keep_default_na=False, na_values=missing, encoding="utf-8-sig"
        )
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}): mend the file or write it again") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(f"{path} is not a well-formed CSV file ({reason(error)}): mend that line") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
