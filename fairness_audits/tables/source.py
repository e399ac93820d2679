"""Which files a source names, and what their first lines say."""

import csv
import glob
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairness_audits.messages import check_distinct, listed, reason

CSV = (".csv", ".csv.gz")
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Files:
    """Files of one kind, in the order of their names; ``name`` is the source as it was given."""

    name: str
    paths: tuple[str, ...]
    kind: Literal["csv", "parquet"]


def local_files(source: str | Path | Sequence[str | Path]) -> Files:
    """The files that a path, a glob (``preds/*.parquet``), a folder or a list of these names.

    Raises ValueError where there is none, or where they are neither CSV nor Parquet, or some of each.
    """
    given = [source] if isinstance(source, str | Path) else list(source)
    name = listed([str(one) for one in given], 3)
    paths = [path for one in given for path in _expanded(str(one))]
    if not paths:
        raise ValueError(f"there is no file {name}: give the path of a CSV or Parquet file, or a glob in quotes")
    if strange := [path for path in paths if _kind(path) is None]:
        raise ValueError(
            f"expected files ending in {', '.join((*CSV, *PARQUET))}, found {listed(strange, 3)}: save the rows as one "
            "of these"
        )
    kind, *others = {kind for path in paths if (kind := _kind(path))}
    if others:
        raise ValueError(f"expected files of one kind, found {listed(paths, 3)}: audit CSV and Parquet apart")
    return Files(name, tuple(paths), kind)


def header(files: Files) -> tuple[str, ...]:
    """The column names of CSV files. Raises ValueError for a file without, and where the files differ."""
    first = csv_header(files.paths[0])
    for path in files.paths[1:]:
        if (other := csv_header(path)) != first:
            raise ValueError(
                f"{path} has the columns {listed(other)}, but {files.paths[0]} has {listed(first)}: files that are "
                "audited together need the same columns in the same order"
            )
    return first


def parquet_header(files: Files) -> tuple[str, ...]:
    """The column names of the first Parquet file.

    Raises ValueError for several files with names that differ in case alone, which DuckDB would confuse.
    """
    from pyarrow.parquet import read_schema

    headers = [tuple(read_schema(path).names) for path in files.paths]
    for path, names in zip(files.paths, headers, strict=True):
        lowered = [name.lower() for name in names]
        if len(headers) > 1 and len(set(lowered)) < len(names):
            alike = [name for name in names if lowered.count(name.lower()) > 1]
            raise ValueError(f"{path}: the columns {listed(alike)} differ in case alone: rename them")
    return headers[0]


def half_in_parquet(files: Files) -> frozenset[str]:
    """The columns that hold numbers of half precision, which DuckDB reads as single precision."""
    from pyarrow.parquet import read_schema
    from pyarrow.types import is_float16

    each = (frozenset(one.name for one in read_schema(path) if is_float16(one.type)) for path in files.paths)
    return frozenset.intersection(*each)


def csv_header(path: str | Path) -> tuple[str, ...]:
    """The column names in the first line of a CSV file.

    Raises ValueError for a file that is empty or no text, and for columns without a name or with the same name: readers
    number the one and rename the other, and both are mistakes that an audit must not hide.
    """
    opener = gzip.open if str(path).lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}): write the file again") from error
    if not names:
        raise ValueError(f"{path} is empty: expected a line of column names and rows below it")
    if nameless := [position for position, name in enumerate(names) if not name.strip()]:
        raise ValueError(
            f"{path}: column {nameless[0]} (counted from 0) has no name. If it is the index that pandas wrote, write "
            "the file again with to_csv(..., index=False); otherwise name it in the first line"
        )
    check_distinct(names, path)
    return tuple(names)


def _expanded(one: str) -> list[str]:
    if Path(one).is_file():
        return [one]
    if Path(one).is_dir():
        return sorted(str(path) for path in Path(one).iterdir() if _kind(path.name) and path.name[0] not in "._")
    # Path.glob takes no absolute pattern.
    return sorted(path for path in glob.glob(one, recursive=True) if Path(path).is_file())  # noqa: PTH207


def _kind(path: str) -> Literal["csv", "parquet"] | None:
    lowered = path.lower()
    return "csv" if lowered.endswith(CSV) else "parquet" if lowered.endswith(PARQUET) else None
