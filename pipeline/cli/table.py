"""A user's data file as a table: CSV or Parquet, read so that both give the same numbers."""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")
SHOWN = 5
"""How many rows, values or columns an error names before it only counts the rest."""


def read_table(path: Path) -> pd.DataFrame:
    """The table in ``path``, its rows counted from 0.

    Decimal numbers in a CSV are read to the last bit, so that a CSV and a Parquet file of the same rows give the same
    audit. Raises ValueError for a file that is absent, of another kind, malformed or empty, and for columns without a
    name or with the same name.
    """
    import pandas as pd
    from pyarrow import ArrowException

    if not path.is_file():
        raise ValueError(f"there is no file {path}: give the path of a CSV or Parquet file")
    if not path.name.lower().endswith(SUFFIXES):
        raise ValueError(
            f"expected a file ending in {', '.join(SUFFIXES)}, found {path}: save the rows as one of these"
        )
    try:
        if path.suffix in (".parquet", ".pq"):
            table = pd.read_parquet(path)
        else:
            _check_header(path)
            table = pd.read_csv(path, low_memory=False, encoding="utf-8-sig")
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}): write the file again") from error
    except pd.errors.ParserError as error:
        told = str(error).rpartition("C error: ")[2].strip()
        raise ValueError(f"{path} is not a well-formed CSV file ({told}): mend that line") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
    if table.empty:
        raise ValueError(f"{path} has no rows: an audit needs rows of data")
    table.columns = [str(name) for name in table.columns]
    return table.reset_index(drop=True)


def sha256(path: Path) -> str:
    """The checksum of a file, so that a verdict says which bytes it is about."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_columns(table: pd.DataFrame, names: Iterable[str], option: str, path: Path) -> None:
    """ValueError that names the columns asked for by ``option`` that the table lacks, and the nearest ones it has."""
    existing = list(table.columns)
    for name in names:
        if name not in existing:
            near = difflib.get_close_matches(name, existing, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            if len(existing) == 1:
                hint = " (are its columns separated by something other than commas?)"
            raise ValueError(
                f"{option} names {name!r}, but {path} has no such column{hint}. It has: {listed(existing)}"
            )


def listed(values: Sequence[object], shown: int = 40) -> str:
    """The values separated by commas, with a count of those left out beyond the first ``shown``."""
    text = ", ".join(str(value) for value in values[:shown])
    return text if len(values) <= shown else f"{text} and {len(values) - shown} more"


def reason(error: BaseException) -> str:
    """What a library's error says, in one line without a full stop: its kind and the first line of its text.

    TorchScript begins with where it was and ends with what happened, so there it is the last line.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no further text"]
    told = lines[-1].removeprefix("RuntimeError: ") if "TorchScript interpreter" in lines[0] else lines[0]
    return f"{type(error).__name__}: {told.rstrip('. ')}"


def _check_header(path: Path) -> None:
    """pandas renames repeated columns and numbers nameless ones; both are mistakes that an audit must not hide."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), [])
    if not header:
        raise ValueError(f"{path} is empty: expected a line of column names and rows below it")
    nameless = [position for position, name in enumerate(header) if not name.strip()]
    if nameless:
        raise ValueError(
            f"{path}: column {nameless[0]} (counted from 0) has no name. If it is the index that pandas wrote, write "
            "the file again with to_csv(..., index=False); otherwise name it in the first line"
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise ValueError(f"{path}: more than one column is called {listed(repeated)}: give each its own name")
