"""The step-down form of the largest |T|."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest

from pipeline.audits.permutation.draws import BLOCK, CountResampler
from pipeline.audits.permutation.pairs import largest_p
from pipeline.audits.permutation.statistics import MetricEstimate, Proportion
from pipeline.types import Array

PAIRS = list(combinations(range(4), 2))
EVERY = np.ones(len(PAIRS), dtype=bool)


@dataclass(frozen=True)
class Drawn:
    """A resampler of what it is given: values (G,) and (G, B), variances 1/2, so that T is a difference of values."""

    values: Array
    permuted_values: Array

    @property
    def observed(self) -> MetricEstimate:
        return MetricEstimate(self.values, np.full(self.values.shape, 0.5))

    @property
    def units(self) -> tuple[int, ...]:
        return (1,) * len(self.values)

    def permuted(self, block: int, size: int) -> MetricEstimate:
        drawn = self.permuted_values[:, block * BLOCK : block * BLOCK + size]
        return MetricEstimate(drawn, np.full(drawn.shape, 0.5))

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        raise NotImplementedError


def by_definition(values: Array, permuted: Array, known: Array) -> Array:
    """One loop over pairs in descending order of |T|, each against the largest |T*| of itself and those after it."""
    t = np.array([abs(values[a] - values[b]) for a, b in PAIRS])
    drawn = np.array([np.abs(permuted[a] - permuted[b]) for a, b in PAIRS])
    order = [int(pair) for pair in np.argsort(-t) if known[pair]]
    p, reached = np.full(len(PAIRS), np.nan), 0.0
    for place, pair in enumerate(order):
        beyond = sum(drawn[order[place:], b].max() >= t[pair] for b in range(permuted.shape[1]))
        reached = max(reached, (1 + beyond) / (permuted.shape[1] + 1))
        p[pair] = reached
    return p


@pytest.mark.parametrize("draws", [37, BLOCK + 300])
def test_each_pair_is_compared_with_the_largest_of_those_that_are_left(draws: int) -> None:
    rng = np.random.default_rng(1)
    values, permuted = np.array([0.0, 0.4, 1.1, 2.9]), rng.normal(size=(4, draws)) / np.sqrt(2)
    for known in (EVERY, np.array([True, False, True, True, True, False])):
        found = largest_p(Drawn(values, permuted), PAIRS, known, draws)
        np.testing.assert_allclose(found, by_definition(values, permuted, known))


def test_one_outlying_group_does_not_hide_the_others_and_never_costs_them() -> None:
    """Single-step p-values, (1 + #{max of all >= |T|}) / (B + 1), are never smaller, and some are larger."""
    rng = np.random.default_rng(2)
    values, permuted = np.array([0.0, 2.2, 0.1, 9.0]), rng.normal(size=(4, 2000)) / np.sqrt(2)
    stepped = largest_p(Drawn(values, permuted), PAIRS, EVERY, 2000)
    t = np.array([abs(values[a] - values[b]) for a, b in PAIRS])
    largest = np.array([np.abs(permuted[a] - permuted[b]) for a, b in PAIRS]).max(axis=0)
    single = (1 + (largest >= t[:, None]).sum(axis=1)) / 2001
    assert (stepped <= single).all()
    assert stepped[PAIRS.index((0, 1))] < 0.6 * single[PAIRS.index((0, 1))]


def test_a_statistic_that_a_permutation_does_not_have_counts_as_extreme() -> None:
    permuted = np.zeros((4, 99))
    permuted[0, :9] = np.nan
    p = largest_p(Drawn(np.array([0.0, 0.0, 0.0, 3.0]), permuted), PAIRS, EVERY, 99)
    assert p[PAIRS.index((2, 3))] == pytest.approx(10 / 100)


def test_pairs_with_an_infinite_statistic_are_the_most_extreme() -> None:
    permuted = np.random.default_rng(3).normal(size=(4, 99))
    values = np.array([0.0, 2.2, 0.1, np.inf])
    found = largest_p(Drawn(values, permuted), PAIRS, EVERY, 99)
    np.testing.assert_allclose(found, by_definition(values, permuted, EVERY))
    assert [found[pair] for pair, groups in enumerate(PAIRS) if 3 in groups] == [1 / 100] * 3


def test_where_one_rate_differs_the_others_are_falsely_rejected_no_more_often_than_the_level() -> None:
    """Rates .6, .6, .6 and .9: the three false rejections that are possible, together, at most one time in twenty."""
    false, true, simulations, positives = 0, 0, 400, np.array([120, 60, 90, 150])
    equal = [pair for pair, groups in enumerate(PAIRS) if 3 not in groups]
    for simulation in range(simulations):
        rng = np.random.default_rng(simulation)
        hits = rng.binomial(positives, [0.6, 0.6, 0.6, 0.9])
        counts = np.stack([hits, positives - hits, np.zeros(4, dtype=int)], axis=-1)
        source = CountResampler(Proportion(1.0), counts, simulation)
        p = largest_p(source, PAIRS, EVERY, 199)
        false += bool((p[equal] <= 0.05).any())
        true += bool((np.delete(p, equal) <= 0.05).any())
    assert 0.015 < false / simulations < 0.05 + 4 * np.sqrt(0.05 * 0.95 / simulations)
    assert true / simulations > 0.95
