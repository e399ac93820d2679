"""Exact maps and the plans that they are: the paper's propositions, least cost, and which rows a map knows."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog
from scipy.stats import ks_2samp

from fairness_audits.transport import exact, plan, quality
from fairness_audits.transport.cost import COSTS, cost_matrix, paired_costs
from fairness_audits.values import Array, TransportMap
from tests.errors import invalid


def points(n: int, d: int, seed: int, whole: bool = False) -> Array:
    values = np.random.default_rng(seed).normal(size=(n, d)) * 2
    return np.round(values) if whole else values


def assert_masses(found: plan.TransportPlan, n: int, m: int) -> None:
    """Every source point sends one unit, and every target point receives an equal share."""
    sent = np.bincount(found.row, weights=found.mass, minlength=len(found.source))
    received = np.bincount(found.column, weights=found.mass, minlength=len(found.target))
    np.testing.assert_array_equal(sent, np.bincount(found.source_atom) * found.unit)
    np.testing.assert_array_equal(received * m, np.bincount(found.target_atom) * found.total)
    assert found.total == n * found.unit


def least_cost(x: Array, y: Array, a: Array, b: Array) -> float:
    """The mean cost of the best plan from x, of weights a, to y, of weights b, as a linear program."""
    rows, columns = np.kron(np.eye(len(x)), np.ones(len(y))), np.kron(np.ones(len(x)), np.eye(len(y)))
    equal = {"A_eq": np.vstack([rows, columns]), "b_eq": np.concatenate([a / a.sum(), b / b.sum()])}
    return float(linprog(cost_matrix(x, y).ravel(), **equal).fun)


@pytest.mark.parametrize("cost", ["squared_l1", "l1", "squared_l2", "l2"])
@pytest.mark.parametrize("whole", [False, True])
def test_equal_sizes_cost_what_the_hungarian_algorithm_finds(cost: str, whole: bool) -> None:
    x, y = points(60, 2, 1, whole), points(60, 2, 2, whole)
    costs = cost_matrix(x, y, cost)
    found = plan.best_plan(x, y, cost)
    assert found.cost == pytest.approx(costs[linear_sum_assignment(costs)].mean(), abs=1e-12)
    assert found.gap == pytest.approx(0, abs=1e-9)
    assert_masses(found, 60, 60)


@pytest.mark.parametrize(("n", "m"), [(8, 5), (4, 12), (7, 7)])
@pytest.mark.parametrize("whole", [False, True])
def test_unequal_sizes_cost_what_the_linear_program_finds(n: int, m: int, whole: bool) -> None:
    x, y = points(n, 3, 3, whole), points(m, 3, 4, whole)
    found = plan.best_plan(x, y)
    assert found.cost == pytest.approx(least_cost(x, y, np.ones(n), np.ones(m)), abs=1e-9)
    assert_masses(found, n, m)


@pytest.mark.parametrize(("n", "m", "d"), [(300, 300, 2), (300, 170, 5), (90, 400, 2)])
def test_pairs_priced_in_give_the_plan_of_all_pairs(monkeypatch: pytest.MonkeyPatch, n: int, m: int, d: int) -> None:
    x, y = points(n, d, 5), points(m, d, 6) + 1
    whole = plan.best_plan(x, y)
    for name, number in {"DENSE": 0, "SAMPLE": 20, "NEIGHBOURS": 2, "BLOCK": 1000}.items():
        monkeypatch.setattr(plan, name, number)
    given_pairs, solve = [], plan._simplex

    def counted(a: Array, b: Array, costs: Any) -> Any:
        given_pairs.append(costs.size)
        return solve(a, b, costs)

    monkeypatch.setattr(plan, "_simplex", counted)
    found = plan.best_plan(x, y)
    assert found.cost == pytest.approx(whole.cost, rel=1e-9)
    assert abs(found.gap) < 1e-9 * found.cost
    assert_masses(found, n, m)
    assert len(given_pairs) > 3, "the sample's potentials alone were enough: this tests no pricing"
    assert max(given_pairs[1:]) < n * m / 4


def people(n: int, seed: int) -> Array:
    """Rows of two whole numbers and a category (n, 6): many are alike."""
    rng = np.random.default_rng(seed)
    kind = np.eye(4)[rng.choice(4, n, p=[0.7, 0.15, 0.1, 0.05])]
    return np.column_stack([rng.integers(17, 60, n), rng.integers(1, 6, n) * 8, kind]) / [13, 12, 1, 1, 1, 1]


@pytest.mark.parametrize(("n", "m"), [(1561, 13946), (5421, 8000), (8000, 5421), (1990, 9973)])
def test_pairs_priced_in_give_a_best_plan_of_unequal_groups_with_repeated_rows(
    monkeypatch: pytest.MonkeyPatch, n: int, m: int
) -> None:
    """However large masses get, as they do with both sizes, and though those of a sample are no whole numbers."""
    monkeypatch.setattr(plan, "DENSE", 0)
    monkeypatch.setattr(plan, "SAMPLE", 400)
    found = plan.best_plan(people(n, 1), people(m, 2) + 0.5)
    assert max(len(found.source) / n, len(found.target) / m) < 1 / 2
    assert found.gap == pytest.approx(0, abs=1e-9 * found.cost)
    assert_masses(found, n, m)


@given(
    counts=st.tuples(*[st.lists(st.integers(1, 9000), min_size=1, max_size=9)] * 2),
    seed=st.integers(0, 10**6),
    dense=st.sampled_from([0, plan.DENSE]),
)
@example(counts=([65537 - 15] + [1] * 15, [6250] * 15 + [6241]), seed=0, dense=plan.DENSE)
@settings(max_examples=60, deadline=None)
def test_repeated_rows_of_any_two_sizes_cost_what_the_linear_program_finds(
    counts: tuple[list[int], list[int]], seed: int, dense: int
) -> None:
    rng = np.random.default_rng(seed)
    atoms = [np.unique(rng.normal(size=(len(count), 2)), axis=0) for count in counts]
    x, y = (rng.permutation(np.repeat(rows, count, axis=0)) for rows, count in zip(atoms, counts, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "DENSE", dense)
        patch.setattr(plan, "SAMPLE", 4)
        found = plan.best_plan(x, y)
    assert found.cost == pytest.approx(least_cost(*atoms, *map(np.array, counts)), rel=1e-8)
    assert found.gap == pytest.approx(0, abs=1e-9 * found.cost)
    assert_masses(found, len(x), len(y))


@pytest.mark.parametrize(("n", "m"), [(50, 50), (30, 47)])
def test_points_of_one_feature_go_in_order(n: int, m: int) -> None:
    x, y = points(n, 1, 7, whole=True), points(m, 1, 8)
    # With a second feature that is the same for all the solver takes the long way.
    first, second = (np.column_stack([rows, np.zeros(len(rows))]) for rows in (x, y))
    assert plan.best_plan(x, y).cost == pytest.approx(plan.best_plan(first, second).cost, rel=1e-12)


@given(
    first=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    second=st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
@settings(max_examples=50, deadline=None)
def test_overlaps_of_two_rows_of_intervals_have_both_lengths(first: list[int], second: list[int]) -> None:
    a, b = np.array(first) * sum(second), np.array(second) * sum(first)
    i, j, length = plan.overlaps(a, b)
    np.testing.assert_array_equal(np.bincount(i, weights=length), a)
    np.testing.assert_array_equal(np.bincount(j, weights=length), b)
    assert len(length) <= len(a) + len(b) - 1


def test_points_and_costs_that_are_not_finite_are_errors_and_so_is_a_solver_that_stops_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = points(5, 2, 9)
    broken = x.copy()
    broken[2, 0] = np.nan
    with invalid(option="y"):
        plan.best_plan(x, broken)
    with invalid(option="x"):
        plan.best_plan(x, x * 1e200)
    monkeypatch.setattr(plan, "ITERATIONS_PER_ATOM", 0.01)
    with invalid(option="x"):
        plan.best_plan(points(80, 2, 1), points(80, 2, 2))


# Costs of pairs by matrix and by row agree, in NumPy and in torch.


X = np.array([[0.0, 0.0], [1.0, -2.0]])
Y = np.array([[3.0, 4.0], [1.0, -2.0]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("l1", [[7, 3], [8, 0]]),
        ("squared_l1", [[49, 9], [64, 0]]),
        ("squared_l2", [[25, 5], [40, 0]]),
        ("l2", [[5, 5**0.5], [40**0.5, 0]]),
    ],
)
def test_the_named_costs_are_these(name: str, expected: list[list[float]]) -> None:
    np.testing.assert_allclose(cost_matrix(X, Y, name), expected)
    np.testing.assert_allclose(paired_costs(X, Y, name), np.diag(expected))
    tensors = torch.from_numpy(X)[:, None], torch.from_numpy(Y)[None]
    np.testing.assert_allclose(COSTS[name](*tensors).numpy(), expected)


# Exact maps: the paper's propositions, randomised maps of unequal groups, and which rows a map knows.


CONFIG = exact.Config(cost="squared_l1", image="expectation")
SAMPLE = exact.Config(cost="squared_l1", image="sample")


def fitted_map(x: Array, y: Array, config: exact.Config = CONFIG, seed: int = 0) -> TransportMap:
    return exact.fit([x], [y], config, [np.random.default_rng(seed)])


def image(x: Array, y: Array, config: exact.Config = CONFIG, seed: int = 0) -> Array:
    return exact.images(fitted_map(x, y, config, seed).parameters, [x])[0]


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


def test_which_of_equal_rows_gets_which_counterpart_is_drawn_and_mean_images_keep_the_targets_mean() -> None:
    x, y = np.zeros((30, 1)), np.arange(30.0)[:, None]
    orders = {tuple(image(x, y, seed=seed)[:, 0]) for seed in range(3)}
    assert len(orders) == 3
    assert tuple(range(30)) not in orders
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(47, 2)) + 1
    maps = fitted_map(x, y)
    np.testing.assert_allclose(exact.images(maps.parameters, [x])[0].mean(axis=0), y.mean(axis=0), atol=1e-12)


def test_drawn_images_are_real_targets_with_the_plans_probabilities() -> None:
    x, y = np.array([[0.0], [10.0]]), np.array([[0.0], [1.0], [20.0]])
    # Half a target's mass is left for each: 0 goes to 0 and, in a third, to 1; 10 to 1 in a third, and to 20.
    drawn = np.stack([image(x, y, SAMPLE, seed)[:, 0] for seed in range(600)])
    assert set(drawn[:, 0]) == {0.0, 1.0}
    assert set(drawn[:, 1]) == {1.0, 20.0}
    assert np.mean(drawn == 1, axis=0) == pytest.approx([1 / 3, 1 / 3], abs=0.08)
    np.testing.assert_allclose(image(x, y)[:, 0], [1 / 3, 41 / 3])


def test_rows_are_known_in_any_order_and_more_than_once_and_an_unknown_one_is_an_error() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    maps = fitted_map(x, y)
    asked = np.array([4, 4, 19, 0, 7])
    some, every = (exact.images(maps.parameters, [rows])[0] for rows in (x[asked], x))
    np.testing.assert_array_equal(some, every[asked])
    x = np.arange(6.0).reshape(3, 2)
    maps = fitted_map(x, x)
    # What is behind the rows of a shorter trial is no row.
    with invalid(option="rows", row=1):
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


# What is said of a map's quality has closed forms.


@pytest.mark.parametrize("whole", [False, True])
def test_ks_is_scipys_of_every_feature(whole: bool) -> None:
    rng = np.random.default_rng(0)
    real, generated = rng.normal(size=(300, 3)), rng.normal(size=(170, 3)) * [1, 2, 1] + [0, 0, 0.5]
    if whole:
        real, generated = np.round(real), np.round(generated)
    expected = [ks_2samp(real[:, j], generated[:, j]).statistic for j in range(3)]
    np.testing.assert_allclose(quality.ks(real, generated), expected, atol=1e-12)
    assert quality.ks(real, real).tolist() == [0, 0, 0]


def test_generated_rows_that_break_a_relation_by_three_have_an_error_larger_by_nine() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=(200, 2))
    real = np.column_stack([first, 2 * first[:, 0] - first[:, 1] + 4])
    broken = real + np.array([0, 0, 3])
    held_out, generated = quality.regression_errors(real, broken, rng)
    np.testing.assert_allclose(held_out, 0, atol=1e-20)
    # A change of 3 in the third is one of 3/2 in what the first should be, and of -3 for the second.
    np.testing.assert_allclose(generated - held_out, [2.25, 9, 9])


def test_of_real_rows_the_error_is_out_of_sample() -> None:
    """With k coefficients from h rows it is s^2 (1 + k/h) to first order, and s^2 (1 - k/h) in the sample."""
    rng = np.random.default_rng(2)
    draws = [quality.regression_errors(real, real, rng) for real in rng.normal(size=(200, 40, 5))]
    out, all_rows = (np.mean(errors) for errors in zip(*draws, strict=True))
    assert out == pytest.approx(1 + 5 / 15 * 1.0, abs=0.12)
    assert all_rows < out - 0.1


def test_exact_distances_are_of_the_plan_that_the_cost_chooses_and_weigh_both_groups_equally() -> None:
    x, y = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[4.0, 0.0], [9.0, 0.0]])
    found = quality.exact_distances(x, y)
    # Squared: 4 and 5 rather than 0 and 9.
    assert found == {"l1": 4.5, "squared_l1": 20.5}
    assert quality.mean_distance(x, y) == 20.5
    assert quality.mean_distance(x, y, "l1") == 4.5
    found = quality.exact_distances(np.array([[0.0]]), np.array([[1.0], [3.0]]))
    assert found == {"l1": 2.0, "squared_l1": 5.0}


def test_distances_healthy_maps_and_nearest_values_by_hand() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    assert quality.mean_distance(rows, rows, "l1") == 0
    assert quality.mean_distance(rows, rows + np.array([1, -2]), "l1") == 3
    assert quality.healthy(np.array([0.0, 0.12]))
    assert not quality.healthy(np.array([0.0, 0.1201]))
    real = np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0], [1.0, 5.0]])
    generated = np.array([[-3.0, 5.1], [0.6, 4.0], [2.4, 5.0], [2.6, 5.0], [99.0, 5.0]])
    expected = [[0, 5], [1, 5], [1, 5], [4, 5], [4, 5]]
    np.testing.assert_array_equal(quality.nearest_values(real, generated), expected)


@pytest.mark.parametrize("cost", ["squared_l1", "squared_l2", "l1"])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8, 1e12])
def test_a_plan_sees_every_column_or_says_which_it_does_not(cost: str, scale: float) -> None:
    """Against the best assignment by rational numbers, less what every plan pays in each row and column."""
    rng = np.random.default_rng(0)
    x, y = (np.column_stack([rng.integers(0, 5, 40) * scale, rng.normal(size=40)]) for _ in range(2))

    def paid(a: Array, b: Array) -> Fraction:
        differences = [abs(Fraction(float(p)) - Fraction(float(q))) for p, q in zip(a, b, strict=True)]
        whole = sum(differences, Fraction())
        return {"squared_l1": whole**2, "l1": whole}.get(cost, sum((one**2 for one in differences), Fraction()))

    costs = [[paid(a, b) for b in y] for a in x]
    reduced = [[one - min(row) for one in row] for row in costs]
    least = [min(column) for column in zip(*reduced, strict=True)]
    small = [[float(one - low) for one, low in zip(row, least, strict=True)] for row in reduced]
    best = sum((costs[i][j] for i, j in zip(*linear_sum_assignment(small), strict=True)), Fraction())
    found = plan.best_plan(x, y, cost)
    pairs = zip(found.source[found.row], found.target[found.column], found.mass.tolist(), strict=True)
    excess = float(sum((paid(a, b) * mass for a, b, mass in pairs), Fraction()) / found.total - best / 40)
    unseen = quality.unseen(x, y, cost, found.gap)
    assert not unseen[0]
    own = np.sqrt(x[:, 1].var() + y[:, 1].var()) ** (1 if cost == "l1" else 2)
    assert unseen[1] or excess <= quality.SMALL_ERROR * own
    assert unseen[1] == ((scale >= 1e8 and cost != "l1") or (scale == 1e12 and cost == "l1"))


def test_images_that_are_not_finite_are_counted_in_the_error_and_a_regression_needs_rows() -> None:
    rows = np.zeros((4, 2))
    broken = np.array([[0, np.nan], [np.inf, 0], [0, 0], [np.nan, np.nan]])
    for function in (quality.ks, quality.mean_distance, quality.nearest_values, quality.exact_distances):
        with invalid(row=0):
            function(rows, broken)
    with invalid(option="real"):
        quality.regression_errors(np.ones((8, 4)), np.ones((8, 4)), np.random.default_rng(0))


def test_a_right_map_is_beyond_chance_about_as_often_as_it_may_be() -> None:
    rng, sizes = np.random.default_rng(2), (300, 200, 150, 250)
    found = []
    for _ in range(600):
        x, y, held, there = (rng.normal(size=n) for n in sizes)
        image = np.quantile(y, np.clip((np.searchsorted(np.sort(x), held) + 0.5) / (len(x) + 1), 0, 1))
        found.append(quality.ks(there[:, None], image[:, None])[0])
    beyond = np.mean(np.array(found) > quality.chance_ks(sizes, 1, 0.05))
    assert 0.01 <= beyond <= 0.07
