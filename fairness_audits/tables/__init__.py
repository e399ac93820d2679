"""From rows in files, in memory or on a cluster to what a permutation test sees.

:func:`contingency` counts the rows in one scan, by DuckDB or Spark: the same counts from both, and so the same p-values
for the same seed. :func:`predictions` and :func:`numbers` fetch the rows themselves, where counts are not enough.

A ``source`` is a CSV or Parquet file, a glob, a folder, a list of these, or a data frame. The columns of a CSV file are
text, and a number is read from it where one is needed, to the last bit.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.errors import InvalidInput
from fairness_audits.tables.levels import check_named
from fairness_audits.tables.rows import counted, numbers, predictions
from fairness_audits.tables.table import Request, Table, in_precision_of, reading

__all__ = ["ENGINES", "Engine", "contingency", "numbers", "opened", "predictions"]

Engine = Literal["duckdb", "spark"]
ENGINES: tuple[Engine, ...] = get_args(Engine)

CELLS = 1_000_000
"""A table of counts with more cells than this is refused."""


@contextmanager
def opened(
    source: Any,
    engine: Engine,
    threads: int | None = None,
    memory: str | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
) -> Iterator[Table]:
    """The source as a table of that engine, which may be counted and fetched from more than once.

    In CSV files ``missing`` stands for a missing value (default: NA, None, nan, ...) beside the empty cell, and
    ``separator`` names what is between columns (default: read off the first lines).
    """
    if isinstance(source, Table):
        yield source
    elif engine == "duckdb":
        from fairness_audits.tables.duckdb_engine import opened as by_duckdb

        with by_duckdb(source, threads, memory, missing, separator) as duck:
            yield duck
    elif engine == "spark":
        from fairness_audits.tables.spark_engine import opened as by_spark

        with by_spark(source, threads, memory, missing, separator) as spark:
            yield spark
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
    bins: int | None = None,
    bounds: tuple[float, float] | None = None,
    positive: str | None = None,
    against: str | None = None,
    engine: Engine = "duckdb",
    threads: int | None = None,
    memory: str | None = None,
    cells: int = CELLS,
) -> Counts:
    """How many rows of each group have each label and fall in each cell, by one scan of the rows.

    ``label`` and ``group`` are columns. The cells are the two values of ``prediction``; or, of ``score``, the decisions
    1[score >= ``threshold``], about 2 ``bins`` bins by rank, each with at most one in ``bins`` of the rows of either
    label (or with one score alone), or, with neither, each value of it. A threshold is rounded to the precision of the
    column. ``bounds`` are the lowest and the highest score allowed (default: any finite number). ``positive`` is the
    value of the label that counts as 1 where it is not 0 and 1; ``against`` is a value of the group that is set against
    all the others. Groups are in order of their names, numbers by their size.

    ``engine``: ``duckdb`` (with ``threads`` and ``memory`` such as "4GB" as limits; more goes to disk) or ``spark`` (in
    the active session, else a local one with these limits). More than ``cells`` cells are refused.

    Raises InvalidInput that names the column, the number of rows and the first of them, for a column that is not there,
    missing values, a label that has not two classes, one group only, scores that are no numbers or out of bounds, and
    for a source that cannot be read.
    """
    outcome = reading(score, prediction, threshold, bins, bounds)
    with opened(source, engine, threads, memory) as table:
        check_named(table, {"label": label, "group": group, "score": score, "prediction": prediction})
        request = Request(group, label, in_precision_of(outcome, table.precision(outcome.column)), cells)
        return counted(table, request, positive, against)
