"""Statistics of the official rows that a twin should preserve, and limits on what it reveals about people.

The statistics for all rows, and for each value of each root column, are a number's mean and standard deviation, and a
category's shares. For each pair of columns, with numbers cut at the official deciles, the statistic is
Cramer's V = sqrt( chi^2 / (n (min(r, c) - 1)) ) with chi^2 = sum (O - E)^2 / E over the r x c table of counts O and of
E = (row sum)(column sum) / n.

We store no official rows. No stored number, and no number from which a twin is drawn, describes too few people:

- Counts of the root table are rounded to multiples of :data:`FEWEST`, so a cell with fewer than half of that vanishes.
- A category with fewer than :data:`FEWEST` rows is merged into the most frequent one.
- An interval, and a number with a level of its own, has at least :data:`FEWEST_IN_INTERVAL` rows. The outermost limits
  are the tenth smallest and the tenth largest value.
- The statistics exclude groups with fewer than :data:`FEWEST_IN_GROUP` rows and, within a group, categories with fewer
  than :data:`FEWEST` rows.
- Weights and shares are rounded to hundredths, means and standard deviations to three digits.
- In a copula, a group and, within a block, a value of the second attribute have at least :data:`FEWEST_IN_INTERVAL`
  rows, as does every interval of a quantile function. Correlations are rounded to hundredths.

The counts of the Strategic Subject List are the published ones, including small counts.

The weights follow two-way counts closely, including small counts, so a rare combination of two attributes is about as
frequent in the twin as in the data. The official files are public. These limits are a courtesy, not a formal guarantee
such as differential privacy.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.values import Array

ALL = "all"
FEWEST = 10
FEWEST_IN_INTERVAL = 50
FEWEST_IN_GROUP = 100
DECILES = np.arange(1, 10) / 10


def statistics(rows: pd.DataFrame, root: Sequence[str]) -> dict[str, Any]:
    """Return the deciles of numbers, the marginals by group and the association of every pair of columns."""
    cuts = {name: np.unique(rows[name].quantile(DECILES)).tolist() for name in rows if rows[name].dtype.kind in "if"}
    found = {"marginals": marginals(rows, root), "association": association(rows, cuts)}
    return {"root": list(root), "cuts": cuts, **found}


def marginals(rows: pd.DataFrame, root: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return statistics by group and column: ``mean`` and ``sd`` of numbers, and shares of categories."""
    return {
        group: {name: _describe(members[name]) for name in rows if name not in root}
        for group, members in _groups(rows, root)
    }


def association(rows: pd.DataFrame, cuts: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return Cramer's V of every pair of columns, under the key ``"a * b"``."""
    codes = {
        name: np.searchsorted(cuts[name], rows[name]) if name in cuts else pd.factorize(rows[name])[0] for name in rows
    }
    return {f"{a} * {b}": round(cramers_v(codes[a], codes[b]), 3) for a, b in combinations(codes, 2)}


def cramers_v(a: Array, b: Array) -> float:
    """Compute Cramer's V of two arrays of integer codes (n,); 0 if either has only one value."""
    from scipy.stats import contingency

    observed = contingency.crosstab(a, b).count
    return float(contingency.association(observed, method="cramer")) if min(observed.shape) > 1 else 0.0


def _groups(rows: pd.DataFrame, root: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield all rows, and the rows of each value of each root column with at least :data:`FEWEST_IN_GROUP` rows."""
    parts = {ALL: rows} | {f"{name}={value}": part for name in root for value, part in rows.groupby(name, sort=True)}
    yield from ((name, part) for name, part in parts.items() if len(part) >= FEWEST_IN_GROUP)


def _describe(values: pd.Series) -> dict[str, float]:
    if values.dtype.kind in "if":
        return {"mean": significant(values.mean()), "sd": significant(values.std(ddof=0))}
    counts = values.value_counts()
    return {str(level): round(count / len(values), 2) for level, count in counts.items() if count >= FEWEST}


def significant(number: float) -> float:
    """Round to three significant digits."""
    return float(f"{number:.3g}")


def trimmed(values: Array) -> Array:
    """Sort values (n,), and replace the ten lowest by the tenth lowest and the ten highest by the tenth highest."""
    ordered = np.sort(values)
    return ordered.clip(ordered[FEWEST - 1], ordered[-FEWEST])
