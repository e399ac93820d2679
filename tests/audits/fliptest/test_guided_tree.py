"""The tree cuts where the association is strongest, and its statistics are those of the rows themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.fliptest.subgroups import (
    Limits,
    best_split,
    binned,
    correlation,
    effects,
    grown,
    interval,
    p_value,
    products,
)
from pipeline.types import Array

LIMITS = Limits(depth=3, minimum_leaf=50, bins=8, confidence=0.95)


def planted(n: int = 2000) -> tuple[Array, Array, Array]:
    """Output and group agree where the second feature is above 1, and are independent elsewhere."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), np.zeros(n)])
    z = rng.integers(0, 2, n).astype(float)
    noise = rng.integers(0, 2, n)
    return x, np.where((x[:, 1] > 1) & (rng.random(n) < 0.8), z, noise), z


def test_the_correlation_and_its_interval_are_those_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300).astype(float)
    y = 100 + z + rng.normal(size=300)
    r = correlation(products(y, z).sum(axis=1))
    expected = stats.pearsonr(y, z)
    assert r == pytest.approx(expected.statistic, rel=1e-9)
    low, high = interval(r, np.array(300), 0.9)
    assert (low, high) == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-9)
    assert p_value(r, np.array(300)) == pytest.approx(expected.pvalue, rel=0.15)


def test_the_published_interval_is_fishers_divided_among_six_contexts() -> None:
    """Black et al. 2020, section 5.5: [.2452, .2941]."""
    low, high = interval(np.array(0.26982), np.array(10_000), 1 - 0.05 / 6)
    assert (low, high) == pytest.approx((0.2452, 0.2941), abs=5e-5)


def test_the_level_of_the_interval_is_its_confidence() -> None:
    rng = np.random.default_rng(0)
    y, z = rng.normal(size=(2, 4000, 60))
    r = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(y, z, strict=True)])
    low, high = interval(r, np.array(60), 0.9)
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(0.9, abs=0.02)
    assert (p_value(r, np.array(60)) < 0.1).mean() == pytest.approx(0.1, abs=0.02)


def test_what_does_not_vary_has_no_correlation_and_no_effect() -> None:
    z = np.tile([0.0, 1.0], 50)
    for y in (np.full(100, 0.1), np.full(100, 1e6 + 0.1)):
        sums = products(y, z).sum(axis=1)
        assert np.isnan(correlation(sums))
        assert effects(sums, 0.95) == 0
    few = products(np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0])).sum(axis=1)
    assert np.isnan(interval(correlation(few), few[0], 0.95)).all()
    assert effects(few, 0.95) == 0


def test_the_effect_is_the_end_of_the_interval_nearest_to_zero() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 400).astype(float)
    y = (rng.random(400) < 0.3 + 0.3 * z).astype(float)
    low, _ = interval(np.corrcoef(y, z)[0, 1], np.array(400), 0.95)
    assert effects(products(y, z).sum(axis=1), 0.95) == pytest.approx(low)
    assert effects(products(1 - y, z).sum(axis=1), 0.95) == pytest.approx(low)
    assert effects(products(rng.permutation(y), z).sum(axis=1), 0.9999) == 0


def test_few_values_are_cut_at_each_and_many_at_quantiles() -> None:
    cuts, bins = binned(np.array([3.0, 1, 1, 7, 3]), 3)
    assert (cuts.tolist(), bins.tolist()) == ([1, 3], [1, 0, 0, 2, 1])
    values = np.random.default_rng(0).normal(size=1000)
    cuts, bins = binned(values, 10)
    assert len(cuts) == 9
    assert (np.bincount(bins) == 100).all()
    # Most are equal: no cut leaves all rows on one side.
    cuts, bins = binned(np.repeat([0.0, 1, 2, 3], [1, 1, 1, 97]), 3)
    assert len(cuts) == 0
    assert set(bins) == {0}


def test_the_split_is_the_best_of_all_cuts() -> None:
    x, y, z = planted()
    bins = [binned(column, 8) for column in x.T]
    rows = np.flatnonzero(x[:, 0] > -0.5)
    found = best_split(rows, bins, y - y.mean(), z - z.mean(), LIMITS)
    assert found is not None
    scores = {}
    for column, (cuts, _) in enumerate(bins):
        for cut in cuts:
            left = x[rows, column] <= cut
            sides = [effects(products(y[rows][s], z[rows][s]).sum(axis=1), 0.95) for s in (left, ~left)]
            if min(left.sum(), (~left).sum()) >= 50:
                scores[column, cut] = (np.mean(sides), max(sides))
    own = effects(products(y[rows], z[rows]).sum(axis=1), 0.95)
    better = {key: mean for key, (mean, most) in scores.items() if most > own}
    assert better
    assert (found.column, found.value) == max(better, key=lambda key: better[key])
    assert found.column == 1


def test_children_part_their_parent_and_no_leaf_is_too_small() -> None:
    x, y, z = planted()
    contexts = grown(x, y, z, LIMITS)
    inside = [context.contains(x) for context in contexts]
    assert inside[0].all()
    for number, context in enumerate(contexts):
        children = [c for c, other in enumerate(contexts) if other.parent == number]
        assert len(children) in (0, 2)
        if children:
            assert np.array_equal(inside[children[0]] ^ inside[children[1]], inside[number])
            assert not (inside[children[0]] & inside[children[1]]).any()
        assert context.depth <= 3
        assert inside[number].sum() >= 50
    assert len({tuple(sorted(context.bounds.items())) for context in contexts}) == len(contexts)


def test_depth_0_and_leaves_too_large_leave_the_root() -> None:
    x, y, z = planted()
    assert len(grown(x, y, z, Limits(0, 50, 8, 0.95))) == 1
    assert len(grown(x, y, z, Limits(3, 1500, 8, 0.95))) == 1


def test_shifting_and_scaling_the_output_changes_no_context() -> None:
    x, y, z = planted()
    one, two = (grown(x, values, z, LIMITS) for values in (y, 1e4 - 3 * y))
    assert [c.bounds for c in one] == [c.bounds for c in two]
    assert all(a.parent == b.parent for a, b in itertools.zip_longest(one, two))
