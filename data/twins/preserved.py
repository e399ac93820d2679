"""What a twin is meant to preserve, as statistics of the official rows, and what may be known of the people in them.

For all rows and for each value of each root column: a number's mean and standard deviation, a category's shares.
For each pair of columns, numbers cut at the official deciles: Cramer's V = sqrt( chi^2 / (n (min(r, c) - 1)) ) with
chi^2 = sum (O - E)^2 / E over the r x c table of counts O and of E = (row sum)(column sum) / n.

No official row is stored, and no number that is stored, or that a twin is drawn from, counts too few of the people
behind the official data:

- counts of the root table are rounded to multiples of :data:`FEWEST`, so a cell of fewer than half of that vanishes;
- a category of fewer than :data:`FEWEST` rows is merged into the commonest one;
- an interval, and a number that stands for itself, holds at least :data:`FEWEST_IN_INTERVAL` rows; the outermost limits
  are the tenth smallest and the tenth largest value;
- the statistics leave out groups of fewer than :data:`FEWEST_IN_GROUP` rows and, within a group, categories of fewer
  than :data:`FEWEST`;
- weights and shares are rounded to hundredths, means and standard deviations to three digits;
- in a copula, a group and, within a block, a value of the second attribute have at least :data:`FEWEST_IN_INTERVAL`
  rows, and so has every interval of a quantile function; correlations are rounded to hundredths.

The counts of the Strategic Subject List are those that were made public, small ones too.

The weights follow two-way counts closely, small ones too, so a rare combination of two attributes is about as frequent
in the twin as in the data. The official files are public; the rule is good manners, not a formal guarantee such as
differential privacy.
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
    """The deciles of the numbers, marginals by group and the association of every pair of columns."""
    cuts = {name: np.unique(rows[name].quantile(DECILES)).tolist() for name in rows if rows[name].dtype.kind in "if"}
    found = {"marginals": marginals(rows, root), "association": association(rows, cuts)}
    return {"root": list(root), "cuts": cuts, **found}


def marginals(rows: pd.DataFrame, root: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """group -> column -> statistic; statistics are ``mean`` and ``sd`` of numbers, and shares of categories."""
    return {
        group: {name: _describe(members[name]) for name in rows if name not in root}
        for group, members in _groups(rows, root)
    }


def association(rows: pd.DataFrame, cuts: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """``"a * b"`` -> Cramer's V, for every pair of columns."""
    codes = {
        name: np.searchsorted(cuts[name], rows[name]) if name in cuts else pd.factorize(rows[name])[0] for name in rows
    }
    return {f"{a} * {b}": round(cramers_v(codes[a], codes[b]), 3) for a, b in combinations(codes, 2)}


def cramers_v(a: Array, b: Array) -> float:
    """Cramer's V of two integer codes (n,); 0 when either takes one value only."""
    from scipy.stats import contingency

    observed = contingency.crosstab(a, b).count
    return float(contingency.association(observed, method="cramer")) if min(observed.shape) > 1 else 0.0


def _groups(rows: pd.DataFrame, root: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """All rows, and those of each value of each root column, where they are at least :data:`FEWEST_IN_GROUP`."""
    parts = {ALL: rows} | {f"{name}={value}": part for name in root for value, part in rows.groupby(name, sort=True)}
    yield from ((name, part) for name, part in parts.items() if len(part) >= FEWEST_IN_GROUP)


def _describe(values: pd.Series) -> dict[str, float]:
    if values.dtype.kind in "if":
        return {"mean": significant(values.mean()), "sd": significant(values.std(ddof=0))}
    counts = values.value_counts()
    return {str(level): round(count / len(values), 2) for level, count in counts.items() if count >= FEWEST}


def significant(number: float) -> float:
    """Three significant digits."""
    return float(f"{number:.3g}")


def trimmed(values: Array) -> Array:
    """Values (n,) in ascending order, the ten lowest all the tenth lowest, the ten highest the tenth highest."""
    ordered = np.sort(values)
    return ordered.clip(ordered[FEWEST - 1], ordered[-FEWEST])
