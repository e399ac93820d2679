"""More than two groups: a test of every pair, and p-values that allow for their number.

The corrections are those of :mod:`pipeline.audits.inference`, and ``max_t``, the largest |T| of the pairs
(:func:`largest_p`). A pair's own test may be another than that of T (exact, say, for a rate),
so ``max_t`` gives the larger of the two p-values: no pair is rejected that its own test accepts. With more than one
pair these p-values come from random permutations, and are not exact even where the pair's own is. A single pair needs
no correction: it keeps the p-value of its own test.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from pipeline.audits.inference import corrected
from pipeline.audits.permutation.draws import BLOCK, Resampler
from pipeline.audits.permutation.metrics import Rate, UserMetric
from pipeline.audits.permutation.monte_carlo import Settings, extreme, monte_carlo_p
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.resamplers import countable, resampler
from pipeline.audits.permutation.run import PairedTests, resolved, tested
from pipeline.audits.permutation.statistics import MetricEstimate, studentized
from pipeline.types import Array

GUARANTEES = {
    "holm": "the chance of any false rejection among the pairs is at most alpha, if each test has its level",
    "bonferroni": "the chance of any false rejection among the pairs is at most alpha, if each test has its level",
    "bh": "the expected share of false ones among the rejections is at most alpha for positively dependent tests",
    "by": "the expected share of false ones among the rejections is at most alpha, if each test has its level",
    "max_t": "the chance of any rejection is at most alpha if all groups are alike (a rate: if all have the same rate)"
    ", and that of a false one in the limit of large groups if some differ (another metric than a rate: and equal "
    "groups have equal variances); the adjusted p-values are Monte-Carlo ones, of random permutations of all groups "
    "together",
    "none": "each test by itself has its level; over all pairs the chance of a false rejection is larger",
}

ONE_PAIR = "two groups are one comparison, which needs no correction: the p-value is that of its own test"


def all_pairs(
    data: Predictions | Counts,
    metric: str | UserMetric | Callable[[Array, Array, Array], float],
    settings: Settings | None = None,
    *,
    rng: np.random.Generator,
    correction: str = "holm",
) -> PairedTests:
    """Tests of all pairs of groups, in the order (0, 1), (0, 2), ..., (1, 2), ..., each on the rows of its two groups.

    Pairs whose metric is undefined are reported so and are no comparison. ``max_t`` takes the statistics of the tests
    from permutations of all groups together; the unadjusted tests beside it are those of ``settings``.
    Raises ValueError for an unknown correction, for ``max_t`` with one-sided, not studentised or sequential tests, and
    as ``permutation_test`` does.
    """
    if correction not in GUARANTEES:
        raise ValueError(f"expected a correction among {', '.join(GUARANTEES)}; found {correction!r}")
    if correction == "max_t":
        _check_max_t(settings or Settings())
    measured, settings = resolved(metric), settings or Settings()
    pairs = list(combinations(range(len(data.groups)), 2))
    tests = tuple(tested(data.pair(a, b), measured, settings, rng) for a, b in pairs)
    known = np.array([test.p_value is not None for test in tests])
    p = np.array([np.nan if test.p_value is None else test.p_value for test in tests])
    guarantee = GUARANTEES[correction]
    if correction == "max_t" and len(pairs) == 1:
        adjusted, guarantee = p, ONE_PAIR
    elif correction == "max_t":
        # Rates are permuted within their outcome.
        within = isinstance(measured, Rate) and countable(data)
        source = resampler(data, measured, int(rng.integers(2**63)), settings.smoothing, settings.bootstraps, within)
        adjusted = np.maximum(largest_p(source, pairs, known, settings.draws), p)
        known &= np.isfinite(adjusted)
    else:
        adjusted = corrected(p, correction)
    values = tuple(float(p) if ok else None for p, ok in zip(adjusted, known, strict=True))
    rejected = tuple(p is not None and p <= settings.alpha for p in values)
    return PairedTests(tests, values, rejected, correction, settings.alpha, guarantee)


def _check_max_t(settings: Settings) -> None:
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
    r"""Two-sided p-values (k,) of the ``known`` (k,) pairs of groups, which know how the pairs depend on one another.

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
    elsewhere. Source: Westfall and Young 1993, algorithm 4.1; Ge, Dudoit and Speed 2003.

    NaN where a pair is not known, or its statistic does not exist; the others are then compared without it. A statistic
    that does not exist after a permutation counts as extreme.
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
