"""Tables of counts and arrays from rows in files, in memory or on a cluster.

:func:`contingency` counts the rows in one scan, where they are: DuckDB, polars or Spark opens them, and one code
(``frame``) counts them. All engines give the same counts, and therefore the same p-values for the same seed.
:func:`predictions` and :func:`numbers` fetch the rows if counts are not enough.

A ``source`` is a CSV or Parquet file, a glob, a folder, a list of these, or a data frame of pandas, polars, Arrow,
DuckDB or Spark. A lazy frame of polars, DuckDB or Spark is counted where its rows are. The columns of a CSV file are
read as text and converted to doubles, correctly rounded, when numbers are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.errors import InvalidInput
from fairness_audits.tables.levels import check_named
from fairness_audits.tables.rows import counted, numbers, predictions
from fairness_audits.tables.source import is_files
from fairness_audits.tables.table import Request, in_precision_of, reading

if TYPE_CHECKING:
    from fairness_audits.tables.frame import Table

__all__ = ["ENGINES", "Engine", "contingency", "numbers", "opened", "predictions"]

Engine = Literal["duckdb", "spark"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
OWN = {"polars": "polars", "pyspark": "spark"}
"""Libraries that count the rows of their own frames, with the engine. DuckDB counts all other frames."""

CELLS = 1_000_000
"""Default maximum number of cells of a table of counts."""


@contextmanager
def opened(
    source: Any,
    engine: Engine,
    threads: int | None = None,
    memory: str | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
) -> Iterator[Table]:
    """Open the source as a table, for any number of counts and fetches.

    ``engine`` reads files. Frames are counted where they are: by polars, Spark or DuckDB.

    In CSV files, an empty cell and the ``missing`` texts (default: NA, None, nan, ...) are missing values, and
    ``separator`` names the character between columns (default: detected from the first lines).
    """
    if hasattr(source, "cells"):
        yield source
    elif engine in ENGINES:
        own = engine if is_files(source) else OWN.get(type(source).__module__.partition(".")[0], "duckdb")
        module = import_module(f"fairness_audits.tables.{own}_engine")
        with module.opened(source, threads, memory, missing, separator) as table:
            yield table
    else:
        raise InvalidInput(f"expected an engine among {', '.join(ENGINES)}; found {engine!r}", option="engine")


def contingency(
    source: Any,
    *,
    label: str,
    group: str,
    prediction: str | None = None,
    score: str | None = None,
    threshold: float | None = None,
    bounds: tuple[float, float] | None = None,
    positive: str | None = None,
    against: str | None = None,
    engine: Engine = "duckdb",
    threads: int | None = None,
    memory: str | None = None,
    cells: int = CELLS,
) -> Counts:
    """Count the rows of each group with each label and in each cell, in one scan of the rows.

    ``label`` and ``group`` are columns. With ``prediction``, the cells are its two values. With ``score``, the cells
    are the decisions 1[score >= ``threshold``], or without a threshold each value of the score. A threshold is rounded
    to the precision of the column. ``bounds`` are the lowest and the highest allowed score (default: any
    finite number). ``positive`` is the label's value that counts as 1 if the values are not 0 and 1. ``against`` is a
    value of the group to compare with all others together. Groups are sorted by name, numbers by size.

    ``engine`` is ``duckdb``, with the limits ``threads`` and ``memory`` such as "4GB" (larger data spill to disk), or
    ``spark``, in the active session or else in a local one with these limits. ``cells`` is the maximum number of cells.

    Raises InvalidInput, which names the column, the number of rows and the first of these rows, for a missing column,
    missing values, a label that does not have two classes, a single group, scores that are not numbers or out of
    bounds, and a source that cannot be read.
    """
    outcome = reading(score, prediction, threshold, bounds)
    with opened(source, engine, threads, memory) as table:
        check_named(table, {"label": label, "group": group, "score": score, "prediction": prediction})
        request = Request(group, label, in_precision_of(outcome, table.precision(outcome.column)), cells)
        return counted(table, request, positive, against)
