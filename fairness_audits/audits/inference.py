r"""How precise an audit's intervals and p-values are, and p-values that allow for the number of hypotheses.

- ``holm``: step-down Bonferroni; the chance of any false rejection is at most alpha whatever the dependence.
- ``bonferroni``: the same, simpler and weaker.
- ``bh``, ``by``: the expected share of false rejections is at most alpha (``by`` under any dependence).
- ``none``: as they are.

All but the last are those of ``statsmodels.stats.multitest``. The largest |T| of several pairs of groups, which takes
their dependence into account, is in :func:`fairness_audits.audits.permutation.pairs.largest_p`.
"""

import gc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from fairness_audits.validation import Checked, Count, Share
from fairness_audits.values import Array


@dataclass(frozen=True)
class Precision(Checked):
    """Level 1 - ``alpha`` of the intervals, from ``bootstraps`` resamples; p-values from ``permutations`` draws."""

    alpha: Share
    bootstraps: Count
    permutations: Count


STATSMODELS = {"holm": "holm", "bonferroni": "bonferroni", "bh": "fdr_bh", "by": "fdr_by"}
"""What statsmodels calls the corrections."""


def corrected(p: Array, correction: str) -> Array:
    """Correct the p-values (k,) of k hypotheses, in their order; one that is NaN stays NaN and is not counted."""
    known = ~np.isnan(p)
    if correction == "none" or not known.any():
        return p
    from statsmodels.stats.multitest import multipletests

    adjusted = np.full(p.shape, np.nan)
    with _quick_collection():
        adjusted[known] = multipletests(p[known], method=STATSMODELS[correction])[1]
    return adjusted


@contextmanager
def _quick_collection() -> Iterator[None]:
    """statsmodels collects all garbage in every call of Holm's method: 50 ms, unless what is there is set apart."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def corrected_once(p: Array, hypotheses: Sequence[Hashable], correction: str) -> Array:
    """Correct the p-values of k tests for the number of hypotheses, each of which may have several tests.

    Equal true positive rates are equal false negative rates: two tests, one hypothesis. Its p-value is the largest of
    its tests', which is valid because each of them is; after the correction all of them have the same.

    Parameters
    ----------
    p : array (k,)
        The p-values. A test whose p-value is NaN was not made: it stays NaN and is not counted.
    hypotheses : sequence of k hashable values
        The hypothesis of each test.
    correction : {"holm", "bonferroni", "bh", "by", "none"}

    Returns
    -------
    array (k,)

    Examples
    --------
    >>> corrected_once(np.array([0.01, 0.02, 0.04, np.nan]), ["tpr", "tpr", "fpr", "auc"], "holm").tolist()
    [0.04, 0.04, 0.04, nan]
    """
    place = {hypothesis: number for number, hypothesis in enumerate(dict.fromkeys(hypotheses))}
    index = np.array([place[hypothesis] for hypothesis in hypotheses], dtype=np.int64)
    largest = np.full(len(place), np.nan)
    np.fmax.at(largest, index, p)
    return np.where(np.isnan(p), np.nan, corrected(largest, correction)[index])


def adjusted_p(p: Sequence[float | None], hypotheses: Sequence[Hashable], correction: str) -> list[float | None]:
    """Correct p-values by :func:`corrected_once`; None stands for a test that could not be made."""
    found = corrected_once(np.array(p, dtype=float), hypotheses, correction)
    return [None if np.isnan(one) else one for one in found.tolist()]
