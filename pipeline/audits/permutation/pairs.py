"""More than two groups: a test of every pair, and p-values that allow for their number.

The corrections are those of :mod:`pipeline.audits.correction`, and ``max_t``, the largest |T| of the pairs
(:mod:`pipeline.audits.permutation.largest`). A pair's own test may be another than that of T (exact, say, for a rate),
so ``max_t`` gives the larger of the two p-values: no pair is rejected that its own test accepts. With more than one
pair these p-values come from random permutations, and are not exact even where the pair's own is. A single pair needs
no correction: it keeps the p-value of its own test.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from pipeline.audits.correction import corrected
from pipeline.audits.permutation.largest import largest_p
from pipeline.audits.permutation.metrics import Metric, Rate, UserMetric
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.resamplers import countable, resampler
from pipeline.audits.permutation.result import PairedTests
from pipeline.audits.permutation.run import resolved, tested
from pipeline.audits.permutation.settings import Settings
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
        adjusted = np.maximum(_largest(data, measured, settings, pairs, known, rng), p)
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


def _largest(
    data: Predictions | Counts,
    metric: Metric,
    settings: Settings,
    pairs: list[tuple[int, int]],
    known: Array,
    rng: np.random.Generator,
) -> Array:
    """p-values (pairs,) of the largest |T| of the ``known`` pairs; rates are permuted within their outcome."""
    within = isinstance(metric, Rate) and countable(data)
    seed = int(rng.integers(2**63))
    source = resampler(data, metric, seed, settings.smoothing, settings.bootstraps, within)
    return largest_p(source, pairs, known, settings.draws)
