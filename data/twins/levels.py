"""A twin of categories and whole numbers: columns drawn one after the other.

    c ~ table of the root columns (the protected attributes and the label together)
    P(x_j = k | c, x_1 .. x_{j-1}) = softmax_k( b_jk + A_j[c, k] + sum_{i<j} W_ij[x_i, k] )

Every column is a finite set of levels: a category, a single frequent number, or an interval of numbers [lo, hi] in
which x = lo + (hi - lo) U^((1 - m)/m), U uniform, has the interval's own mean, m = (mean - lo) / (hi - lo).

Each softmax is a multinomial logistic regression with a small L2 penalty on one-hot predecessors. At its optimum, up to
the penalty, the expected count of every pair (level of x_j, level of x_i) and (level of x_j, cell c) equals the
observed one: two-way tables, and the table of each column by sex, race and label, are kept by construction. What is
*not* kept is structure among three or more columns beyond what follows from that.

The model was chosen by measurement on Adult. Mean absolute error of Cramer's V over all pairs of columns: .003 for this
model, .026 for a Gaussian copula within the cells of the root table, .034 for independent columns within the cells (the
last two without native-country). AUC on real rows of a logistic regression trained on the twin: .902, .898 and .897;
trained on real rows, .903.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from data.twins.draws import drawn_cells, root_cells, within
from data.twins.preserved import FEWEST, FEWEST_IN_INTERVAL, cramers_v, trimmed
from fairness_audits.values import Array

INTERVALS = 16
"""Intervals of a number; a value commoner than one interval's share stands for itself, beside them."""
PENALTY = 0.1
"""The L2 penalty: each regression maximises log-likelihood - PENALTY |weights|^2 / 2."""
DIGITS = 2
"""Decimals of a weight."""
TOLERANCE = 1e-10
"""Largest entry of the mean log-likelihood's gradient at which a regression has converged.

Directions that the penalty alone bends have a curvature of PENALTY / n, a few 1e-6: hundredths then do not depend on
where the iterations stopped, nor on the processor's rounding.
"""


@dataclass(frozen=True)
class Column:
    """A column of K ``levels``: categories (K,), or lower limit, upper limit and mean (K, 3) of intervals."""

    name: str
    dtype: str
    levels: Array

    def encode(self, values: pd.Series) -> Array:
        """The level (n,) of each value; a number between or beyond the intervals belongs to the nearest one.

        Of two intervals that hold a number the narrower counts. A category without a level belongs to the first.
        """
        if self.dtype == "str":
            return np.maximum(pd.Index(self.levels).get_indexer(values), 0)
        low, high, _ = self.levels.T
        distinct, inverse = np.unique(values.to_numpy(dtype=float), return_inverse=True)
        distance = np.maximum(np.maximum(low - distinct[:, None], distinct[:, None] - high), 0)
        nearest = np.lexsort((np.broadcast_to(high - low, distance.shape), distance), axis=1)[:, 0]
        return nearest[inverse]

    def decode(self, codes: Array, rng: np.random.Generator) -> pd.Series:
        """Values (n,) of the given levels, numbers drawn within their interval."""
        if self.dtype == "str":
            return pd.Series(self.levels[codes], dtype="str")
        low, high, mean = self.levels[codes].T
        return pd.Series(np.rint(within(low, high, mean, rng.random(len(codes)))), dtype=self.dtype)


def twin(rows: pd.DataFrame, root: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """As many rows as ``rows``, drawn from the model fitted to them; ``root`` names the columns drawn together.

    Rows of a root cell too small to be kept are left out.
    """
    cells = root_cells(rows, root)
    cell = cells.index.get_indexer(pd.MultiIndex.from_frame(rows[list(root)]))
    rows, cell = rows[cell >= 0], cell[cell >= 0]
    columns = [_column(rows[name]) for name in rows.columns if name not in root]
    codes = {column.name: column.encode(rows[column.name]) for column in columns}
    # What depends most on the protected attributes and the label comes first, where nothing can blur the dependence.
    columns.sort(key=lambda column: -cramers_v(cell, codes[column.name]))
    drawn_cell, drawn = drawn_cells(cells, len(rows), rng)
    # The official rows one-hot, and the places of the ones in the drawn rows, (A_j, W_1j, .. W_ij) stacked.
    design, ones, offset = [np.eye(len(cells))[cell]], [drawn_cell], len(cells)
    for column in columns:
        bias, weights = _regress(np.concatenate(design, axis=1), codes[column.name], len(column.levels))
        chosen = _categorical(bias + sum(weights[places] for places in ones), rng)
        drawn[column.name] = column.decode(chosen, rng)
        design.append(np.eye(len(column.levels))[codes[column.name]])
        ones.append(offset + chosen)
        offset += len(column.levels)
    return drawn[list(rows.columns)]


def _column(values: pd.Series) -> Column:
    """A column's levels, commonest category first."""
    if values.dtype.kind in "if":
        return Column(str(values.name), str(values.dtype), _intervals(values.to_numpy(dtype=float)))
    sizes = values.value_counts()
    kept = sorted(sizes[sizes >= FEWEST].index, key=lambda level: (-sizes[level], level))
    return Column(str(values.name), "str", np.array(kept, dtype=object))


def _intervals(values: Array) -> Array:
    """Lower limit, upper limit and mean (K, 3) of each level of a number, in increasing order of the limits.

    A value commoner than 1 / INTERVALS of the rows that do not stand for themselves stands for itself; the others
    are cut, in order, into intervals of about that many rows and at least :data:`FEWEST_IN_INTERVAL`.
    """
    distinct, sizes = np.unique(trimmed(values), return_counts=True)
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
    return bias.round(DIGITS), weights.round(DIGITS)


def _categorical(logits: Array, rng: np.random.Generator) -> Array:
    """One draw (n,) for each row of softmax(logits), logits (n, K), by inverting the distribution function."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    cumulative = weights.cumsum(axis=1)
    threshold = rng.random((len(logits), 1)) * cumulative[:, -1:]
    return (cumulative[:, :-1] <= threshold).sum(axis=1)
