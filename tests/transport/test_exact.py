"""Exact maps: the paper's propositions, randomised maps of unequal groups, and which rows a map knows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.transport import exact
from pipeline.transport.cost import paired_costs
from pipeline.types import Array, TransportMap

CONFIG = exact.Config(cost="squared_l1", image="expectation")
SAMPLE = exact.Config(cost="squared_l1", image="sample")


def fitted(x: Array, y: Array, config: exact.Config = CONFIG, seed: int = 0) -> TransportMap:
    return exact.fit([x], [y], config, [np.random.default_rng(seed)])


def image(x: Array, y: Array, config: exact.Config = CONFIG, seed: int = 0) -> Array:
    return exact.images(fitted(x, y, config, seed).parameters, [x])[0]


@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), d=st.integers(1, 3), weight=st.floats(1e-3, 10))
@settings(max_examples=30, deadline=None)
def test_proposition_1(seed: int, n: int, d: int, weight: float) -> None:
    """Of all maps G with G(S) = S', the one of least loss (eq. 1) is exact, whatever the discriminator D."""
    rng = np.random.default_rng(seed)
    x, y, judged = rng.normal(size=(n, d)), rng.normal(size=(n, d)), rng.normal(size=n)

    def loss(order: tuple[int, ...]) -> float:
        return float(judged[list(order)].mean() + weight * paired_costs(x, y[list(order)]).mean())

    best = min(permutations(range(n)), key=loss)
    np.testing.assert_array_equal(image(x, y), y[list(best)])


@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 25), d=st.integers(1, 3), whole=st.booleans(), level=st.floats(-1, 1)
)
@settings(max_examples=60, deadline=None)
def test_proposition_2(seed: int, n: int, d: int, whole: bool, level: float) -> None:
    """|F+| - |F-| is how many more of S than of S' are positive: 0 if and only if there is demographic parity."""
    rng = np.random.default_rng(seed)
    x, y, direction = rng.normal(size=(n, d)) * 2, rng.normal(size=(n, d)) * 2, rng.normal(size=d)
    if whole:
        x, y = np.round(x), np.round(y)

    def h(rows: Array) -> Array:
        return np.asarray(rows @ direction > level)

    before, after = h(x), h(image(x, y))
    assert (before & ~after).sum() - (~before & after).sum() == h(x).sum() - h(y).sum()


def test_equal_groups_are_matched_one_to_one_even_where_rows_repeat() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 3, size=(40, 2)) * 1.0, rng.integers(0, 4, size=(40, 2)) * 1.0
    maps = fitted(x, y)
    moved = exact.images(maps.parameters, [x])[0]
    np.testing.assert_array_equal(np.sort(moved.view("f8,f8"), axis=0), np.sort(y.copy().view("f8,f8"), axis=0))
    assert maps.facts["split"].tolist() == [0.0]
    assert maps.facts["mean_cost"][0] == pytest.approx(paired_costs(x, moved).mean())
    assert maps.facts["gap"][0] == pytest.approx(0, abs=1e-9)


def test_which_of_equal_rows_gets_which_counterpart_is_drawn() -> None:
    x, y = np.zeros((30, 1)), np.arange(30.0)[:, None]
    orders = {tuple(image(x, y, seed=seed)[:, 0]) for seed in range(3)}
    assert len(orders) == 3
    assert tuple(range(30)) not in orders


def test_mean_images_of_an_unequal_group_keep_the_targets_mean() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(47, 2)) + 1
    maps = fitted(x, y)
    np.testing.assert_allclose(exact.images(maps.parameters, [x])[0].mean(axis=0), y.mean(axis=0), atol=1e-12)
    assert maps.facts["split"][0] > 0.5


def test_drawn_images_are_real_targets_with_the_plans_probabilities() -> None:
    x, y = np.array([[0.0], [10.0]]), np.array([[0.0], [1.0], [20.0]])
    # Half a target's mass is left for each: 0 goes to 0 and, in a third, to 1; 10 to 1 in a third, and to 20.
    drawn = np.stack([image(x, y, SAMPLE, seed)[:, 0] for seed in range(600)])
    assert set(drawn[:, 0]) == {0.0, 1.0}
    assert set(drawn[:, 1]) == {1.0, 20.0}
    assert np.mean(drawn == 1, axis=0) == pytest.approx([1 / 3, 1 / 3], abs=0.08)
    np.testing.assert_allclose(image(x, y)[:, 0], [1 / 3, 41 / 3])


def test_rows_are_known_in_any_order_and_more_than_once() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    maps = fitted(x, y)
    asked = np.array([4, 4, 19, 0, 7])
    np.testing.assert_array_equal(
        exact.images(maps.parameters, [x[asked]])[0], exact.images(maps.parameters, [x])[0][asked]
    )


def test_trials_of_other_sizes_do_not_meet() -> None:
    rng = np.random.default_rng(4)
    source, target = ([rng.normal(size=(n, 2)) for n in sizes] for sizes in ((5, 9), (5, 4)))
    together = exact.fit(source, target, CONFIG, [np.random.default_rng(t) for t in range(2)])
    moved = exact.images(together.parameters, source)
    for t in range(2):
        np.testing.assert_array_equal(moved[t], image(source[t], target[t], seed=t))


def test_an_unknown_row_is_an_error_that_says_what_to_do() -> None:
    x = np.arange(6.0).reshape(3, 2)
    maps = fitted(x, x)
    # What is behind the rows of a shorter trial is no row.
    with pytest.raises(ValueError, match=r"2 of 3 rows are others\. Fit it on the rows to be mapped"):
        exact.images(maps.parameters, [np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 1.5]])])


@given(seed=st.integers(0, 10**6), n=st.integers(2, 12), m=st.integers(2, 12), kind=st.sampled_from(exact.IMAGES))
@settings(max_examples=30, deadline=None)
def test_the_opposite_direction_is_the_same_plan(seed: int, n: int, m: int, kind: str) -> None:
    """It costs what solving it anew costs; means of images over a group are means of the other group's people."""
    rng = np.random.default_rng(seed)
    x, y = np.round(rng.normal(size=(n, 2)) * 2), np.round(rng.normal(size=(m, 2)) * 2)
    both = exact.fit_both([x], [y], exact.Config("squared_l1", kind), *[[np.random.default_rng(k)] for k in (0, 1)])
    anew = exact.fit([y], [x], CONFIG, [np.random.default_rng(1)])
    assert both.facts["reverse_mean_cost"][0] == pytest.approx(anew.facts["mean_cost"][0])
    (back,) = exact.images(both.reverse, [y])
    if kind == "expectation":
        np.testing.assert_allclose(back.mean(axis=0), x.mean(axis=0), atol=1e-9)
    else:
        assert {tuple(row) for row in back} <= {tuple(row) for row in x}


def test_way_there_and_back_is_nowhere_where_everybody_has_a_counterpart_of_their_own() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 1
    both = exact.fit_both([x], [y], CONFIG, *[[np.random.default_rng(k)] for k in (0, 1)])
    (there,) = exact.images(both.parameters, [x])
    np.testing.assert_array_equal(exact.images(both.reverse, [there])[0], x)


def test_a_cost_that_is_not_symmetric_is_solved_in_both_directions() -> None:
    """Upwards is dear and downwards free: 0, 1 to 1, 2 costs 1 a person, and back nothing."""

    def upwards(x: Array, y: Array) -> Array:
        return np.asarray(np.maximum(y - x, 0).sum(-1))

    x, y = np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
    both = exact.fit_both([x], [y], exact.Config(upwards, "sample"), *[[np.random.default_rng(k)] for k in (0, 1)])
    assert both.facts["mean_cost"][0] == pytest.approx(1)
    assert both.facts["reverse_mean_cost"][0] == pytest.approx(0)
