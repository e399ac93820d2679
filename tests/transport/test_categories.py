"""Categories of counterparts keep the target group's shares."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.transport.categories import assigned, whole_counts


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.integers(1, 200))
def test_whole_counts_are_within_one_of_the_shares(shares: list[int], n: int) -> None:
    counts = whole_counts(np.array(shares), n)
    assert counts.sum() == n
    assert (np.abs(counts - n * np.array(shares) / sum(shares)) < 1).all()


def test_no_other_assignment_with_these_counts_has_a_larger_weight() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights, shares = rng.random((6, 3)), rng.dirichlet(np.ones(3))
        found = assigned(weights, shares)
        counts = whole_counts(shares, 6)
        np.testing.assert_array_equal(np.bincount(found, minlength=3), counts)
        totals = [
            sum(weights[i, level] for i, level in enumerate(one))
            for one in product(range(3), repeat=6)
            if (np.bincount(one, minlength=3) == counts).all()
        ]
        np.testing.assert_allclose(weights[np.arange(6), found].sum(), max(totals))


def test_hard_indicators_with_the_right_shares_stay_and_a_lean_majority_does_not_take_all() -> None:
    level = np.random.default_rng(1).integers(0, 4, 400)
    np.testing.assert_array_equal(assigned(np.eye(4)[level], np.bincount(level)), level)
    lean = np.tile([0.6, 0.4], (100, 1))
    np.testing.assert_array_equal(np.bincount(assigned(lean, np.array([0.6, 0.4]))), [60, 40])
