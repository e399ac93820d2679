"""More than two groups: test every pair, and adjust p-values for their number by the largest |T|."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from fairness_audits.audits.permutation.core import PermutationTest, tested
from fairness_audits.audits.permutation.draws import Resampler
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.metrics import Mean, Metric, Rate
from fairness_audits.audits.permutation.monte_carlo import Settings, blocks, monte_carlo_p
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, near_zero
from fairness_audits.audits.permutation.resamplers import countable, resampler
from fairness_audits.audits.permutation.statistics import EQUAL, MetricEstimate, studentized
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


def largest_t(
    data: Predictions | Counts,
    metric: Metric,
    settings: Settings,
    rng: np.random.Generator,
    bounds: Bounds | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> tuple[list[PermutationTest], list[float | None]]:
    """Test pairs of groups, and adjust the p-values for all of them by :func:`largest_p`.

    Each pair's own test uses the rows of its two groups and may use another statistic than T (such as an exact test of
    a rate). The adjusted p-value is the larger of the two, so no pair is rejected that its own test accepts. It comes
    from random permutations of all groups together, even if a pair's own test is exact. A single pair needs no
    correction.

    Parameters
    ----------
    data : Predictions or Counts
        Data with G groups.
    metric : Metric
    settings : Settings
        Two-sided and studentised or exact, without ``resampling_risk``.
    rng : numpy.random.Generator
    bounds : Bounds, optional
        Also test whether the comparison of each pair is within these bounds.
    pairs : sequence of pairs of int, optional
        The groups to compare; by default all pairs, (0, 1), (0, 2), ..., (1, 2), ...

    Returns
    -------
    list of PermutationTest, list of float or None
        The tests and the adjusted p-values; None for a pair without a metric or T.

    Raises
    ------
    InvalidInput
        For other settings, and for the errors of ``permutation_test``.
    """
    _check(settings)
    pairs = list(combinations(range(len(data.groups)), 2) if pairs is None else pairs)
    tests = [tested(data.pair(a, b), metric, settings, rng, bounds) for a, b in pairs]
    p = np.array([np.nan if test.p_value is None else test.p_value for test in tests])
    if len(pairs) > 1:
        # Rates are permuted among the rows of their denominator.
        within = isinstance(metric, Rate) and countable(data)
        if isinstance(metric, Mean) and metric.moves:
            data, _ = near_zero(data)
        source = resampler(data, metric, int(rng.integers(2**63)), settings.smoothing, settings.bootstraps, within)
        p = np.maximum(largest_p(source, pairs, ~np.isnan(p), settings.draws), p)
    return tests, [None if np.isnan(one) else float(one) for one in p]


def _check(settings: Settings) -> None:
    """Raise InvalidInput for tests whose p-values the largest |T| would silently replace."""
    if settings.alternative != "two-sided":
        raise InvalidInput(
            f"expected alternative two-sided with correction max-t, found {settings.alternative!r}: the largest |T| "
            "has no side, so use holm for one-sided tests",
            option="alternative",
        )
    if settings.method not in ("auto", "exact", "studentized"):
        raise InvalidInput(
            f"expected method auto, exact or studentized with correction max-t, found {settings.method!r}: T is "
            "studentised, so use holm for unstudentized tests",
            option="method",
        )
    if settings.resampling_risk is not None:
        raise InvalidInput(
            f"expected no resampling_risk with correction max-t, found {settings.resampling_risk}: drawing would stop "
            "at the decision of a single pair, so leave it out",
            option="resampling_risk",
        )


def largest_p(source: Resampler, pairs: list[tuple[int, int]], known: Array, draws: int) -> Array:
    r"""Compute two-sided p-values (k,) of the ``known`` (k,) pairs of groups, adjusted for their number and dependence.

    All groups are permuted together, B times. With the k pairs in descending order of their observed |T|,

    .. math:: p_{(j)} = \max_{i \le j} \; \frac{1 + \#\{b : \max_{l \ge i} |T^{*b}_{(l)}| \ge |T_{(i)}|\}}{B + 1},

    The largest |T| is compared with the largest of all pairs, the next with the largest of the remaining pairs, and so
    on. This step-down form rejects all that the single step rejects, and more.

    If all groups are alike (for a rate permuted within its denominator: if all rates are equal), a permutation does not
    change the distribution of the k statistics, and the probability of any rejection is at most alpha. If only some
    pairs are equal, the step-down needs the distribution of *their* statistics. Studentised, each is asymptotically
    standard normal, before and after a permutation. The correlation of two statistics also depends on the variance of a
    row, which is the same in groups of equal rate. For rates, the probability of any false rejection is therefore
    asymptotically at most alpha, whichever pairs are equal. For other metrics this holds if groups with the same metric
    have the same variance of a row, and approximately otherwise.

    The p-value is NaN if a pair is not known or its statistic does not exist; the other pairs are compared without it.
    An undefined statistic after a permutation counts as extreme.

    References
    ----------
    Westfall and Young 1993, algorithm 4.1; Ge, Dudoit and Speed 2003.
    """
    observed = np.where(known, _all_t(source.observed, pairs), np.nan)
    p, rivals = np.full(len(pairs), np.nan), np.flatnonzero(~np.isnan(observed))
    if len(rivals):
        drawn = (_all_t(source.permuted(number, size), pairs)[rivals] for number, size in blocks(draws))
        p[rivals], _ = stepped_down(observed[rivals], drawn)
    return p


def stepped_down(observed: Array, drawn: Iterable[Array]) -> tuple[Array, Array]:
    """Compute the step-down p-values of |T| (k,) from blocks of draws (k, b), and the largest of each draw, (B,).

    An undefined draw (NaN) counts as extreme, as does one that differs from the observed value by rounding.
    """
    order = np.argsort(-observed, kind="stable")
    extremes, largest = np.zeros(len(order), dtype=np.int64), []
    for block in drawn:
        of_the_rest = np.maximum.accumulate(np.where(np.isnan(block), np.inf, block)[order[::-1]], axis=0)[::-1]
        extremes += (of_the_rest >= observed[order, None] * (1 - EQUAL) - EQUAL).sum(axis=1)
        largest.append(of_the_rest[0])
    every, p = np.concatenate(largest), np.empty(len(order))
    p[order] = np.maximum.accumulate(monte_carlo_p(extremes, len(every)))
    return p, every


def _all_t(estimate: MetricEstimate, pairs: list[tuple[int, int]]) -> Array:
    """Compute |T| of every pair from the estimates (G, ...) -> (k, ...)."""
    ends = np.array(pairs).T
    return np.abs(studentized(MetricEstimate(estimate.value[ends], estimate.variance[ends])))
