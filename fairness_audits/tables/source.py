"""Files of a source, and their layout."""

import csv
import glob
import gzip
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import listed, reason

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
PARQUET = (".parquet", ".pq")
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
SAMPLE = 1 << 16
"""Number of characters of a CSV file from which its separator is detected."""


def is_files(source: Any) -> bool:
    """Return whether a source is the path of files, or a list of paths, rather than a frame."""
    return isinstance(source, str | Path | list | tuple)


@dataclass(frozen=True)
class Files:
    """Files of one kind, sorted by name within each pattern; ``name`` is the source as the user gave it."""

    name: str
    paths: tuple[str, ...]
    kind: Literal["csv", "parquet"]


def local_files(source: str | Path | Sequence[str | Path]) -> Files:
    """Return the files of a path, a glob (``preds/*.parquet``), a folder or a list of these.

    Raises InvalidInput if there is no file, if a file is neither CSV nor Parquet, or if both kinds occur.
    """
    sources = [source] if isinstance(source, str | Path) else list(source)
    name = listed([str(one) for one in sources], 3)
    paths = [path for one in sources for path in expanded(str(one))]
    if not paths:
        remedy = "Pass the path of a CSV or Parquet file, or a glob in quotes"
        raise InvalidInput(f"there is no file {name}", source=name, remedy=remedy)
    if strange := [path for path in paths if _kind(path) is None]:
        problem = f"expected files ending in {', '.join((*CSV, *PARQUET))}, found {listed(strange, 3)}"
        raise InvalidInput(problem, source=strange[0], remedy="Save the rows in one of these formats")
    kind, *others = {kind for path in paths if (kind := _kind(path))}
    if others:
        problem = f"expected either CSV or Parquet files, found both: {listed(paths, 3)}"
        raise InvalidInput(problem, source=name, remedy="Convert them to one format")
    return Files(name, tuple(paths), kind)


@dataclass(frozen=True)
class Layout:
    """The column ``names`` in a CSV file's first line, and the character that separates columns.

    In a file that is ``spaced``, spaces follow separators, as in ``age, sex``. They do not belong to names and values.
    """

    names: tuple[str, ...]
    separator: str
    spaced: bool = field(default=False, compare=False)


def layout(files: Files, separator: str | None = None) -> Layout:
    """Return the layout of CSV files; ``separator`` is a name in SEPARATORS, or None to detect it.

    Raises InvalidInput for a file without column names, and if the layouts differ.
    """
    first, *others = each = [csv_layout(path, separator) for path in files.paths]
    for path, other in zip(files.paths[1:], others, strict=True):
        if other != first:
            raise InvalidInput(
                f"{path} has the columns {listed(other.names)}, separated by {other.separator!r}, but "
                f"{files.paths[0]} has {listed(first.names)}, separated by {first.separator!r}",
                source=path,
                remedy="Files that are audited together need the same columns in the same order",
            )
    return replace(first, spaced=any(one.spaced for one in each))


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Rename repeated columns as pandas does: the second column x becomes x.1, the third x.2.

    Suffixes that would repeat the name of another column are skipped.
    """
    seen, taken, found = Counter[str](), set(names), []
    for name in names:
        own = name
        while seen[name] and own in taken:
            own = f"{name}.{seen[name]}"
            seen[name] += own in taken
        seen[name] += 1
        taken.add(own)
        found.append(own)
    return tuple(found)


def renamed(names: Iterable[str], apart: Iterable[str]) -> list[dict[str, str]]:
    """Return the renamed columns, for a caveat."""
    return [{"name": name, "own": own} for name, own in zip(names, apart, strict=True) if name != own]


def parquet_headers(files: Files) -> dict[str, tuple[str, ...]]:
    """Return the column names of each Parquet file.

    Raises InvalidInput for a file that is not Parquet, and for several files with names that differ only in case,
    which DuckDB would confuse.
    """
    headers = {path: _parquet_names(path) for path in files.paths}
    for path, names in headers.items():
        lowered = [name.lower() for name in names]
        if len(headers) > 1 and len(set(lowered)) < len(names):
            alike = [name for name in names if lowered.count(name.lower()) > 1]
            problem = f"{path}: the names of the columns {listed(alike)} differ only in case"
            raise InvalidInput(problem, source=path, column=alike[0], remedy="Rename them")
    return headers


def half_in_parquet(files: Files) -> frozenset[str]:
    """Return the columns with half precision, which DuckDB reads as single precision."""
    from pyarrow.parquet import read_schema
    from pyarrow.types import is_float16

    each = (frozenset(one.name for one in read_schema(path) if is_float16(one.type)) for path in files.paths)
    return frozenset.intersection(*each)


def _parquet_names(path: str) -> tuple[str, ...]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    try:
        return tuple(read_schema(path).names)
    except (ArrowException, OSError) as error:
        problem = f"{path} cannot be read ({reason(error)})"
        raise InvalidInput(problem, source=path, remedy="Correct the file or save it again") from error


def csv_layout(path: str | Path, separator: str | None = None) -> Layout:
    """Return the layout of a CSV file.

    Raises InvalidInput for a file that is empty or not text, for more than one possible separator, and for columns
    without a name. CSV readers would number these columns, which hides a mistake in the file.
    """
    opener = gzip.open if str(path).lower().endswith(".gz") else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            sample = file.read(SAMPLE)
    except UnicodeDecodeError as error:
        problem = f"{path} is not UTF-8 text ({error.reason})"
        raise InvalidInput(problem, source=path, remedy="Save it as UTF-8") from error
    except (gzip.BadGzipFile, EOFError) as error:
        problem = f"{path} cannot be read ({reason(error)})"
        raise InvalidInput(problem, source=path, remedy="Save the file again") from error
    return layout_of(sample, str(path), separator)


def layout_of(sample: str, path: str, separator: str | None = None) -> Layout:
    """Return the layout from the beginning of a CSV file. Raises InvalidInput as :func:`csv_layout` does."""
    if "\0" in sample:
        problem = f"{path} is not UTF-8 text (it holds zero bytes, as UTF-16 does)"
        raise InvalidInput(problem, source=path, remedy="Save it as UTF-8")
    mark = separated_by(sample, path) if separator is None else SEPARATORS[separator]
    found = list(records(sample, mark))
    names = found[0] if found else []
    if not names:
        raise InvalidInput(
            f"{path} is empty", source=path, remedy=("A file needs a line of column names, and rows below it")
        )
    if nameless := [position for position, name in enumerate(names) if not name.strip()]:
        problem = f"{path}: column {nameless[0]} (counted from 0) has no name"
        remedy = (
            "If it is the index that pandas wrote, write the file again with to_csv(..., index=False); "
            "otherwise name it in the first line"
        )
        raise InvalidInput(problem, source=path, column=str(nameless[0]), remedy=remedy)
    return Layout(tuple(names), mark, found != list(records(sample, mark, spaces=True)))


def records(sample: str, mark: str, spaces: bool = False) -> Iterator[list[str]]:
    """Yield the fields of each line, with ``spaces`` including the spaces after separators."""
    yield from csv.reader(io.StringIO(sample, newline=""), delimiter=mark, skipinitialspace=not spaces)


def separated_by(sample: str, path: str) -> str:
    """Return the separator that gives all lines the same number of columns.

    If no separator does, return one of the first line, preferably a comma. Raises InvalidInput if several do.
    """
    widths: dict[str, list[int]] = {}
    for mark in SEPARATORS.values():
        lengths = [len(record) for record in records(sample, mark) if record]
        # The last line of a sample may be incomplete.
        widths[mark] = lengths[:-1] if len(sample) == SAMPLE and len(lengths) > 1 else lengths
    possible = [mark for mark, found in widths.items() if found and found[0] > 1 and set(found) == {found[0]}]
    if len(possible) > 1:
        names = [name for name, mark in SEPARATORS.items() if mark in possible]
        problem = f"the separator of {path} can be any of {listed(names)}"
        raise InvalidInput(problem, source=path, option="separator", remedy="Name it (separator)")
    if possible:
        return possible[0]
    first = {mark: found[0] for mark, found in widths.items() if found}
    return "," if first.get(",", 2) > 1 else max(first, key=lambda mark: first[mark])


def expanded(one: str) -> list[str]:
    """Return the files of a path, a folder or a pattern."""
    if Path(one).is_file():
        return [one]
    if Path(one).is_dir():
        return sorted(str(path) for path in Path(one).iterdir() if _kind(path.name) and path.name[0] not in "._")
    # Path.glob does not accept absolute patterns.
    return sorted(path for path in glob.glob(one, recursive=True) if Path(path).is_file())  # noqa: PTH207


def _kind(path: str) -> Literal["csv", "parquet"] | None:
    lowered = path.lower()
    return "csv" if lowered.endswith(CSV) else "parquet" if lowered.endswith(PARQUET) else None
