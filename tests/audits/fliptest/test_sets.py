"""Definition 1, Proposition 2, and the maps whose flipsets are known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.types import Array


def linear_rule(x: Array, weights: Array, threshold: float) -> Array:
    return (x @ weights > threshold).astype(np.int64)


def optimal_assignment(x: Array, y: Array) -> Array:
    """The cheapest of all n! one-to-one maps, squared L1: the images of x."""
    cost = np.abs(x[:, None] - y[None]).sum(axis=-1) ** 2
    everyone = np.arange(len(x))
    best = min(permutations(range(len(x))), key=lambda order: cost[everyone, order].sum())
    return y[list(best)]


points = st.integers(-4, 4)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.tuples(*(st.lists(points, min_size=2 * n, max_size=2 * n),) * 2)), points)
def test_net_size_is_zero_exactly_where_the_optimal_assignment_finds_parity(
    drawn: tuple[list[int], list[int]], threshold: int
) -> None:
    x, y = (np.array(values, dtype=float).reshape(-1, 2) for values in drawn)
    weights = np.array([1.0, -0.5])
    flips = Flipsets(linear_rule(x, weights, threshold), linear_rule(optimal_assignment(x, y), weights, threshold))
    parity = linear_rule(x, weights, threshold).sum() == linear_rule(y, weights, threshold).sum()
    assert (flips.positive.sum() == flips.negative.sum()) == parity


def test_proposition_2_within_one_true_label_is_equal_opportunity() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(40):
        h_x, h_y, label_x, label_y = rng.integers(0, 2, size=(4, 12))
        positives = min(label_x.sum(), label_y.sum())
        own, other = h_x[label_x == 1][:positives], h_y[label_y == 1][:positives]
        net = Flipsets(own, rng.permutation(other)).net
        assert (net == 0) == (own.sum() == other.sum())
        seen.add(net == 0)
    assert seen == {True, False}


def test_net_size_is_the_difference_of_two_counts_whatever_the_map() -> None:
    rng = np.random.default_rng(1)
    decision, image = rng.integers(0, 2, size=(2, 500))
    flips = Flipsets(decision, image)
    assert flips.net == decision.sum() - image.sum() == flips.positive.sum() - flips.negative.sum()
    assert flips.either.sum() == (decision != image).sum() > 0
    assert not (flips.positive & flips.negative).any()


def test_a_shift_along_a_linear_rule_flips_the_strip_below_the_boundary() -> None:
    x = np.random.default_rng(2).normal(size=(4000, 3))
    weights, shift, threshold = np.array([1.0, -2.0, 0.5]), np.array([0.5, 0.0, 1.0]), 0.3
    flips = Flipsets(linear_rule(x, weights, threshold), linear_rule(x + shift, weights, threshold))
    score, gain = x @ weights, weights @ shift
    np.testing.assert_array_equal(flips.negative, (score <= threshold) & (score > threshold - gain))
    assert flips.negative.sum() > 100
    assert not flips.positive.any()


def test_the_identity_flips_nobody() -> None:
    decision = np.array([0, 1, 1, 0])
    flips = Flipsets(decision, decision.copy())
    assert not flips.either.any()
    assert flips.net == 0


def test_the_inverse_map_exchanges_the_flipsets() -> None:
    rng = np.random.default_rng(3)
    women, order = rng.normal(size=(300, 2)), rng.permutation(300)
    men = women[order] * [1.3, 0.7] + [0.4, -0.2]
    weights, threshold = np.array([1.0, 0.6]), 0.1
    h_women, h_men = linear_rule(women, weights, threshold), linear_rule(men, weights, threshold)
    there = Flipsets(h_women[order], h_men)
    back = Flipsets(h_men, h_women[order])
    np.testing.assert_array_equal(back.positive, there.negative)
    np.testing.assert_array_equal(back.negative, there.positive)
    assert there.positive.any()
    assert there.negative.any()


def test_what_is_no_decision_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected decision_image in \{0, 1\}, found .*apply a threshold first"):
        Flipsets(np.array([0, 1]), np.array([0.2, 0.7]))
    with pytest.raises(ValueError, match="expected one decision_image for each of 2 people, found shape \\(3,\\)"):
        Flipsets(np.array([0, 1]), np.array([0, 1, 1]))
