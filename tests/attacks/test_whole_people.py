"""The search among whole people: who is a candidate, what it finds, and what a policy makes of it."""

import numpy as np
import pytest

from fairness_audits.attacks.whole_people import Move, candidates, cells, column_shares, policy, search
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import from_directions
from fairness_audits.values import Array

COLUMNS = ((0,), (1, 2, 3), (4, 5))


def people(n: int = 600, seed: int = 0) -> Array:
    """A number, a category of three levels (the last one rare), and one of two that goes with its first level."""
    rng = np.random.default_rng(seed)
    level = np.where(np.arange(n) < 10, 2, rng.integers(0, 2, n))
    other = np.where(rng.random(n) < 0.99, level == 0, level != 0).astype(int)
    return np.column_stack([rng.normal(size=n), np.eye(3)[level], np.eye(2)[other]])


def test_a_share_is_the_squared_cosine_to_the_subspace_of_the_best_move() -> None:
    metric = from_directions(np.array([[0.6, 0.8, 0, 0, 0, 0], [0, 0, 0, 0, 1, -1.0]]))
    # The second category's move is a direction; half of a move between the first's levels is along the first axis.
    np.testing.assert_allclose(column_shares(people(), COLUMNS, metric), [0.36, 0.32, 1.0])
    x = people()
    v = np.array([1.0, 0.5, 0, 0, 0, 0])
    move = Move((0, 1), (0, 1), tuple(x[0, :2] + v[:2]))
    expected = ((metric.basis.T @ v) ** 2).sum() / (v @ v)
    assert move.share(x[:1], metric)[0] == pytest.approx(expected)
    assert move.share(move.of(x[:1]), metric)[0] == 0


def test_candidates_are_frequent_levels_quantiles_and_pairs_that_occur() -> None:
    moves = candidates(people(), COLUMNS, (1, 2, 0), 100)
    single = [move for move in moves if len(move.columns) == 1]
    assert [move.values for move in single if move.columns == (1,)] == [(1, 0, 0), (0, 1, 0)]
    assert sum(move.columns == (0,) for move in single) == 5
    # First level with second, and second with first: the others are 1 in 100.
    pairs = [move.values for move in moves if move.columns == (1, 2)]
    assert pairs == [(1, 0, 0, 0, 1), (0, 1, 0, 1, 0)]
    assert len(candidates(people(), COLUMNS, (1, 2, 0), 6)) == 5


def test_the_worst_is_the_candidate_of_the_highest_loss_and_the_row_itself_where_none_is_higher() -> None:
    x = people()
    metric = from_directions(np.array([[0, 1.0, -1, 0, 0, 0], [0, 0, 0, 0, 1, -1.0]]))
    moves = candidates(x, COLUMNS, (1, 2))

    def p(z: Array, _: Array) -> Array:
        return 0.5 + 0.3 * z[:, 1] - 0.2 * z[:, 4]

    found = search(p, x, moves, metric, 0.5)
    # The rare level is left for the first alone by half of the move, which is permitted.
    expected = np.min([p(move.of(x), x) for move in moves] + [p(x, x)], axis=0)
    np.testing.assert_allclose(found.at(found.worst), expected)
    assert (found.worst[(x[:, 1] == 0) & (x[:, 4] == 1)] == -1).all()
    ignored = search(lambda z, _: 1 / (1 + np.exp(-z[:, 0])), x, moves, metric, 0.5)
    assert (ignored.worst == -1).all()
    assert loss_ratio_test(ignored.own, ignored.at(ignored.worst), 1.25, 0.05).statistic == 1


def test_two_permitted_columns_may_not_move_against_each_other() -> None:
    """Along (1, 1) half of each axis counts, all of the diagonal, and nothing of (1, -1)."""
    metric = from_directions(np.array([[1.0, 1.0]]))
    x = np.array([[0.0, 0.0]] * 3)
    diagonal, across = Move((0, 1), (0, 1), (1.0, 1.0)), Move((0, 1), (0, 1), (1.0, -1.0))
    assert diagonal.share(x, metric) == pytest.approx([1, 1, 1])
    assert across.share(x, metric) == pytest.approx([0, 0, 0])
    given: list[int] = []
    search(lambda z, rows: given.append(len(rows)) or np.ones(len(z)), x, [diagonal, across], metric, 0.5)  # type: ignore[func-returns-value]
    assert given == [3, 3]


def test_a_policy_finds_what_is_systematic_and_not_what_is_erratic() -> None:
    rng = np.random.default_rng(1)
    n, cell, half = 4000, np.arange(4000) % 4, np.arange(4000) % 8 < 4
    erratic = np.exp(rng.normal(size=(n, 10)) - 0.5)  # of mean 1 each, of maximum far above
    assert erratic.max(axis=1).mean() > 2
    choice = policy(erratic, cell, half)
    assert erratic[np.arange(n), choice].mean() == pytest.approx(1, abs=0.08)
    systematic = erratic * np.where(np.arange(10) == 3, 1.5, 1.0)
    choice = policy(systematic, cell, half)
    assert (choice == 3).all()
    # Nothing is chosen by the rows that it is applied to.
    changed = np.where(half[:, None], erratic, systematic)
    assert (policy(changed, cell, half)[half] == 3).all()


def test_cells_are_of_label_and_present_values() -> None:
    x = people(50)
    moves = (Move((1,), COLUMNS[1], (1.0, 0.0, 0.0)), Move((0,), (0,), (0.0,)))
    found = cells(x, (np.arange(50) < 25).astype(int), moves, COLUMNS)
    keys = np.column_stack([np.arange(50) < 25, x[:, 1:4].argmax(1), x[:, 0] > 0])
    same = (keys[:, None] == keys[None]).all(axis=-1)
    np.testing.assert_array_equal(found[:, None] == found[None], same)
