"""More than two groups: a test of every pair, and p-values by the largest |T|, which allow for their number."""

from itertools import combinations

import numpy as np

from fairness_audits.audits.permutation.draws import BLOCK, Resampler
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.metrics import Mean, Metric, Rate
from fairness_audits.audits.permutation.monte_carlo import Settings, extreme, monte_carlo_p
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, near_zero
from fairness_audits.audits.permutation.permutation_test import PermutationTest, tested
from fairness_audits.audits.permutation.resamplers import countable, resampler
from fairness_audits.audits.permutation.statistics import MetricEstimate, studentized
from fairness_audits.values import Array


def largest_t(
    data: Predictions | Counts,
    metric: Metric,
    settings: Settings,
    rng: np.random.Generator,
    bounds: Bounds | None = None,
) -> tuple[list[PermutationTest], list[float | None]]:
    """Test all pairs of groups, (0, 1), (0, 2), ..., (1, 2), ..., and adjust the p-values by :func:`largest_p`.

    Each test is on the rows of its two groups, and may be of another statistic than T (exact, of a rate): the adjusted
    p-value is the larger of the two, so no pair is rejected that its own test accepts. It comes from random
    permutations of all groups together, even where a pair's own test is exact. A single pair needs no correction.

    Parameters
    ----------
    data : Predictions or Counts
        Of G groups.
    metric : Metric
    settings : Settings
        Two-sided and studentised or exact, without ``resampling_risk``.
    rng : numpy.random.Generator
    bounds : Bounds, optional
        Tests of each pair also whether its comparison lies within these bounds.

    Returns
    -------
    list of PermutationTest, list of float or None
        The tests and the adjusted p-values; None for a pair whose metric or T does not exist.

    Raises
    ------
    ValueError
        For other settings, and as ``permutation_test`` does.
    """
    _check(settings)
    pairs = list(combinations(range(len(data.groups)), 2))
    tests = [tested(data.pair(a, b), metric, settings, rng, bounds) for a, b in pairs]
    p = np.array([np.nan if test.p_value is None else test.p_value for test in tests])
    if len(pairs) > 1:
        # Rates are permuted within their outcome.
        within = isinstance(metric, Rate) and countable(data)
        if isinstance(metric, Mean) and metric.moves:
            data, _ = near_zero(data)
        source = resampler(data, metric, int(rng.integers(2**63)), settings.smoothing, settings.bootstraps, within)
        p = np.maximum(largest_p(source, pairs, ~np.isnan(p), settings.draws), p)
    return tests, [None if np.isnan(one) else float(one) for one in p]


def _check(settings: Settings) -> None:
    """ValueError for tests whose p-values the largest |T| would silently replace by others."""
    if settings.alternative != "two-sided":
        raise ValueError(
            f"expected alternative two-sided with correction max_t, found {settings.alternative!r}: the largest |T| "
            "has no side, so take holm for one-sided tests"
        )
    if settings.method not in ("auto", "exact", "studentized"):
        raise ValueError(
            f"expected method auto, exact or studentized with correction max_t, found {settings.method!r}: T is "
            "studentised, so take holm for tests that are not"
        )
    if settings.resampling_risk is not None:
        raise ValueError(
            f"expected no resampling_risk with correction max_t, found {settings.resampling_risk}: drawing would stop "
            "at the decision of a pair by itself, so leave it out"
        )


def largest_p(source: Resampler, pairs: list[tuple[int, int]], known: Array, draws: int) -> Array:
    r"""Compute two-sided p-values (k,) of the ``known`` (k,) pairs of groups that allow for their dependence.

    All groups are permuted together, B times. With the k pairs in descending order of their observed |T|,

    .. math:: p_{(j)} = \max_{i \le j} \; \frac{1 + \#\{b : \max_{l \ge i} |T^{*b}_{(l)}| \ge |T_{(i)}|\}}{B + 1},

    so the largest is compared with the largest of all pairs, the next with that of the pairs that are left, and so on:
    the step-down form, which rejects whatever the single step does, and more.

    If all groups are alike (for a rate permuted within its outcome: if all rates are equal) a permutation leaves the
    law of the k statistics as it is, and the chance of any rejection is at most alpha. If only some pairs are equal,
    the step-down needs the law of *their* statistics: studentised, each is standard normal in the limit, before a
    permutation and after; how two of them correlate also depends on the variance of a row, which is the same in groups
    of equal rate, so for rates the chance of any false rejection is at most alpha in the limit, whichever pairs are
    equal. For other metrics that is so where groups with the same metric have the same variance a row, and nearly so
    elsewhere.

    NaN where a pair is not known, or its statistic does not exist; the others are then compared without it. A statistic
    that does not exist after a permutation counts as extreme.

    References
    ----------
    Westfall and Young 1993, algorithm 4.1; Ge, Dudoit and Speed 2003.
    """
    observed = np.where(known, _all_t(source.observed, pairs), np.nan)
    p, rivals = np.full(len(pairs), np.nan), np.flatnonzero(~np.isnan(observed))
    if not len(rivals):
        return p
    rivals = rivals[np.argsort(-observed[rivals], kind="stable")]
    extremes = np.zeros(len(rivals), dtype=np.int64)
    for number, first in enumerate(range(0, draws, BLOCK)):
        drawn = _all_t(source.permuted(number, min(BLOCK, draws - first)), pairs)[rivals]
        drawn = np.where(np.isnan(drawn), np.inf, drawn)
        of_the_rest = np.maximum.accumulate(drawn[::-1], axis=0)[::-1]
        extremes += extreme(of_the_rest, observed[rivals], "two-sided").sum(axis=-1)
    p[rivals] = np.maximum.accumulate(monte_carlo_p(extremes, draws))
    return p


def _all_t(estimate: MetricEstimate, pairs: list[tuple[int, int]]) -> Array:
    """|T| of every pair from the estimates (G, ...) -> (k, ...)."""
    ends = np.array(pairs).T
    return np.abs(studentized(MetricEstimate(estimate.value[ends], estimate.variance[ends])))
