"""Fit a twin's model from the official data: ``python -m pipeline.datasets.twins.fit adult --raw data/raw/adult``.

Of the kinds of twins (:mod:`pipeline.datasets.twins.kinds`) the one by levels is fitted here, the others beside.
Deterministic: the same rows give the same file, but for a last digit that stands on the edge of being rounded. The
package's docstring gives the equations, :mod:`pipeline.datasets.twins.preserved` what may be stored.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from pipeline import io
from pipeline.datasets import download
from pipeline.datasets.twins import copula, preserved, subjects
from pipeline.datasets.twins.kinds import LEVELS, written
from pipeline.datasets.twins.model import Column, Root, Twin, as_text
from pipeline.datasets.twins.preserved import FEWEST, FEWEST_IN_INTERVAL
from pipeline.types import Array
from pipeline.workflow import plugins

INTERVALS = 16
"""Intervals of a number; a value commoner than one interval's share stands for itself, beside them."""

PENALTY = 0.1
"""The L2 penalty: each regression maximises log-likelihood - PENALTY |weights|^2 / 2."""

TOLERANCE = 1e-10
"""Largest entry of the mean log-likelihood's gradient at which a regression has converged.

Directions that the penalty alone bends have a curvature of PENALTY / n, a few 1e-6: what is stored, hundredths, then
does not depend on where the iterations stopped, nor on the processor's rounding.
"""


def fit(dataset: str, rows: pd.DataFrame, root: Sequence[str]) -> Twin:
    """The twin of ``rows``, the official rows that the dataset keeps; ``root`` names the columns drawn together.

    Raises ValueError for a missing value, for a number that is not whole, and when no root cell is large enough.
    """
    if rows.isna().any(axis=None):
        raise ValueError(f"{dataset}: rows hold missing values: fit the twin on filtered rows")
    table = Root.of(rows, root, FEWEST)
    cell = table.encode(rows)
    rows, cell = rows[cell >= 0], cell[cell >= 0]
    levels = [_levels(rows[name]) for name in rows.columns if name not in root]
    encoded = {column.name: column.encode(rows[column.name]) for column in levels}
    # What depends most on the protected attributes and the label comes first, where nothing can blur the dependence.
    levels.sort(key=lambda column: -preserved.cramers_v(cell, encoded[column.name]))
    design = [np.eye(len(table.cells))[cell]]
    columns: list[Column] = []
    for column in levels:
        codes = encoded[column.name]
        bias, weights = _regress(np.concatenate(design, axis=1), codes, len(column.levels))
        columns.append(replace(column, bias=bias.round(2), weights=weights.round(2)))
        design.append(np.eye(len(column.levels))[codes])
    return Twin(
        dataset=dataset,
        rows=len(rows),
        order=tuple(rows.columns),
        root=table,
        columns=tuple(columns),
        preserved=preserved.summary(rows, root, columns),
    )


def _levels(values: pd.Series) -> Column:
    """A column's levels, commonest category first; its regression is still to come."""
    empty = np.zeros(0)
    if values.dtype.kind not in "if":
        sizes = values.value_counts()
        ordered = sorted(sizes[sizes >= FEWEST].index, key=lambda level: (-sizes[level], level))
        if not ordered:
            raise ValueError(f"column {values.name!r} has no category of {FEWEST} rows: leave it out")
        return Column(str(values.name), "str", tuple(ordered), empty, empty)
    if (values != np.rint(values)).any():
        raise ValueError(f"column {values.name!r} holds numbers that are not whole: round them before fitting")
    levels = tuple(as_text(limits) for limits in intervals(values.to_numpy(dtype=float)))
    return Column(str(values.name), str(values.dtype), levels, empty, empty)


def intervals(values: Array) -> Array:
    """Lower limit, upper limit and mean (K, 3) of each level of a number, in increasing order of the limits.

    A value commoner than 1 / INTERVALS of the rows that do not stand for themselves stands for itself; the others
    are cut, in order, into intervals of about that many rows and at least :data:`FEWEST_IN_INTERVAL`.
    """
    ordered = preserved.trimmed(values)
    distinct, sizes = np.unique(ordered, return_counts=True)
    alone = np.zeros(len(distinct), dtype=bool)
    while True:
        share = max(sizes[~alone].sum() / INTERVALS, FEWEST_IN_INTERVAL)
        grown = alone | (sizes > share)
        if (grown == alone).all():
            break
        alone = grown
    rest = np.repeat(distinct[~alone], sizes[~alone])
    starts = [0]
    for stop in np.flatnonzero(np.diff(rest)) + 1:
        if stop - starts[-1] >= share and len(rest) - stop >= FEWEST_IN_INTERVAL:
            starts.append(int(stop))
    # Too few to be an interval: they join the nearest of the values that stand for themselves.
    pieces = np.split(rest, starts[1:]) if len(rest) >= FEWEST_IN_INTERVAL or not alone.any() else []
    limits = [(v, v, v) for v in distinct[alone]]
    limits += [(piece[0], piece[-1], float(f"{piece.mean():.4g}")) for piece in pieces]
    return np.array(sorted(limits), dtype=float)


def _regress(design: Array, codes: Array, levels: int) -> tuple[Array, Array]:
    """Bias (K,) and weights (D, K) of the penalised multinomial logistic regression of ``codes`` on ``design``."""
    import warnings

    from scipy import sparse
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    bias, weights = np.full(levels, -np.inf), np.zeros((design.shape[1], levels))
    seen = np.unique(codes)
    if len(seen) == 1:
        bias[seen] = 0.0
        return bias, weights
    with warnings.catch_warnings():
        # Of convergence, and of a singular Hessian, for which scikit-learn would go on with a first-order method.
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.simplefilter("error", LinAlgWarning)
        # Equal rows count as one, with their number for a weight: the fewer there are the faster is Newton's method.
        cases, times = np.unique(np.column_stack([design, codes]), axis=0, return_counts=True)
        model = LogisticRegression(C=1 / PENALTY, solver="newton-cholesky", tol=TOLERANCE)
        model.fit(sparse.csr_array(cases[:, :-1]), cases[:, -1].astype(np.int64), sample_weight=times)
    # scikit-learn writes two classes as one: the log-odds of the second.
    padding = np.zeros((len(seen) - len(model.intercept_), 1))
    bias[seen] = np.concatenate([padding[:, 0], model.intercept_])
    weights[:, seen] = np.concatenate([np.repeat(padding, design.shape[1], axis=1), model.coef_]).T
    return bias, weights


def _official_rows(module: ModuleType, options: argparse.Namespace) -> tuple[pd.DataFrame, list[str]]:
    """The official rows that the dataset keeps, and those of its root columns that they have."""
    download.fetch(module.SOURCES, options.raw, None, dataset=options.dataset)
    rows, _ = module.filtered(module.parse(options.raw), *([options.rows] if options.rows else []))
    return rows, [name for name in module.TWIN_ROOT if name in rows]


def _subject_twin(module: ModuleType, options: argparse.Namespace) -> subjects.SubjectTwin:
    download.fetch([subjects.COUNTS], options.raw, None, dataset=options.dataset)
    return subjects.made(subjects.counts(options.raw), tuple(module.COLUMNS))


MAKERS: Mapping[str, Callable[[ModuleType, argparse.Namespace], Any]] = {
    LEVELS: lambda module, options: fit(options.dataset, *_official_rows(module, options)),
    "copula": lambda module, options: copula.fit(options.dataset, *_official_rows(module, options)),
    "subjects": _subject_twin,
}
"""By a dataset's ``TWIN_KIND``: its twin."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit and write one twin."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.datasets.twins.fit", description=fit.__doc__)
    parser.add_argument("dataset", help="a dataset with a twin: adult, compas, law, ssl")
    parser.add_argument("--raw", type=Path, required=True, help="folder of its official files; absent ones are fetched")
    parser.add_argument("--rows", help="which rows, of a dataset that has a choice: complete, all")
    parser.add_argument("--output", type=Path, help="default: data/twins/<the dataset's file>")
    options = parser.parse_args(arguments)
    try:
        module = plugins.load("dataset", options.dataset)
        if not hasattr(module, "TWINS"):
            raise ValueError(f"dataset {options.dataset!r} has no twin: it has no TWINS")
        content = written(MAKERS[getattr(module, "TWIN_KIND", LEVELS)](module, options))
    except (ValueError, OSError) as error:
        sys.exit(f"fit the twin of {options.dataset}: {error}")
    output = options.output or Path("data/twins") / module.TWINS[options.rows or next(iter(module.TWINS))]
    io.save_json(content, output)
    print(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
