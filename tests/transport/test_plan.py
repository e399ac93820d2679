"""The best plan has the right masses and the least cost, whichever way it is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from pipeline.transport import plan
from pipeline.transport.cost import cost_matrix, squared_l1
from pipeline.types import Array


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
    monkeypatch.setattr(plan, "DENSE", 0)
    monkeypatch.setattr(plan, "SAMPLE", 20)
    monkeypatch.setattr(plan, "NEIGHBOURS", 2)
    monkeypatch.setattr(plan, "BLOCK", 1000)
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
    # A function does not take the short way.
    assert plan.best_plan(x, y, "squared_l1").cost == pytest.approx(plan.best_plan(x, y, squared_l1).cost, rel=1e-12)


def test_a_cost_of_ones_own_decides() -> None:
    def second_matters(x: Array, y: Array) -> Array:
        return np.asarray(((x - y) ** 2 * [1e-9, 1.0]).sum(-1))

    x, y = np.array([[0.0, 0.0], [0.0, 9.0]]), np.array([[0.0, 9.0], [5.0, 0.0]])
    found = plan.best_plan(x, y, second_matters)
    moved = found.target[found.column[np.argsort(found.row)]][found.source_atom]
    np.testing.assert_array_equal(moved, y[::-1])


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


def test_points_and_costs_that_are_not_finite_are_errors() -> None:
    x = points(5, 2, 9)
    broken = x.copy()
    broken[2, 0] = np.nan
    with pytest.raises(ValueError, match="needs finite points, found 1 with NaN"):
        plan.best_plan(x, broken)
    with pytest.raises(ValueError, match=r"cost function gave NaN or infinite ones: mend it"):
        plan.best_plan(x, x, lambda a, b: (a - b).sum(-1) + np.inf)


def test_a_solver_that_stops_early_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "ITERATIONS_PER_ATOM", 0.01)
    with pytest.raises(ValueError, match=r"of 80 to 80 distinct points did not end.*Map fewer points"):
        plan.best_plan(points(80, 2, 1), points(80, 2, 2))
