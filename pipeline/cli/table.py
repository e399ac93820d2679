"""A user's data file as a table: CSV or Parquet, read so that both give the same numbers."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd

from pipeline.messages import reason
from pipeline.tabulate.source import csv_header

SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")


def read_table(path: Path) -> pd.DataFrame:
    """The table in ``path``, its rows counted from 0.

    Decimal numbers in a CSV are read to the last bit, so that a CSV and a Parquet file of the same rows give the same
    audit. Raises ValueError for a file that is absent, of another kind, malformed or empty, and for columns without a
    name or with the same name.
    """
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
            csv_header(path)  # pandas itself would rename repeated columns and number nameless ones
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
