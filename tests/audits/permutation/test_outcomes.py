"""What a permutation test sees is checked before it is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.audits.permutation.outcomes import Counts, Predictions, decided

LABEL, SCORE = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.8, 0.4, 0.6, 0.6])
GROUP = np.array([0, 0, 1, 1, 2])
ROWS = Predictions(LABEL, SCORE, GROUP, ("a", "b", "c"), prediction=decided(SCORE, 0.6))


def test_rows_become_the_table_of_their_combinations() -> None:
    table = ROWS.counted().table
    assert table.sum() == 5
    assert (table[0, 0, 0], table[0, 1, 1]) == (1, 1)
    assert (table[1, 1, 0], table[1, 0, 1]) == (1, 1)
    assert table[2, 1, 1] == 1


def test_a_decision_is_positive_at_the_threshold_itself() -> None:
    np.testing.assert_array_equal(decided(np.array([0.49, 0.5, 0.51]), 0.5), [0, 1, 1])


def test_pairing_and_counting_commute() -> None:
    pair = ROWS.pair(2, 0)
    assert pair.groups == ("c", "a")
    np.testing.assert_array_equal(pair.counted().table, ROWS.counted().pair(2, 0).table)


def test_a_threshold_on_bins_counts_the_decisions_of_the_rows(rng: np.random.Generator) -> None:
    score, label, group = rng.random(500), rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    edges = np.linspace(0, 1, 11)
    table = np.zeros((2, 2, 10), dtype=np.int64)
    np.add.at(table, (group, label, np.minimum(np.searchsorted(edges, score, "right") - 1, 9)), 1)
    bins = Counts(table, ("a", "b"), edges[:-1], edges[1:])
    rows = Predictions(label, score, group, ("a", "b"), prediction=decided(score, edges[7]))
    np.testing.assert_array_equal(bins.at(edges[7]).table, rows.counted().table)
    with pytest.raises(ValueError, match=r"cuts through the scores from 0\.7 to 0\.8"):
        bins.at(0.75)
    with pytest.raises(ValueError, match="cuts through"):
        bins.at(1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": SCORE[:3]}, r"expected score of shape \(5,\)"),
        ({"score": np.array([0.1, np.nan, 0.4, np.inf, 0.6])}, "score has 2 values that are not finite"),
        ({"group": GROUP.astype(float)}, "expected group as integer codes"),
        ({"group": np.zeros(5, dtype=int)}, r"groups \['b', 'c'\] have no rows"),
        ({"group": GROUP + 1}, "expected group codes below 3, found 3"),
        ({"groups": ("a",), "group": np.zeros(5, dtype=int)}, "at least two groups"),
        ({"prediction": np.array([0, 1, 2, 0, 1])}, r"expected prediction in \{0, 1\}, found 2"),
        ({"weight": -SCORE}, "expected weight >= 0, found -0.8"),
        ({"cluster": np.array([0, 0, 0, 1, 2])}, r"1 clusters \(the first has code 0\) have rows in more than one"),
    ],
)
def test_bad_rows_are_named(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(ROWS, **change)


def test_rates_need_decisions_and_plain_rows() -> None:
    with pytest.raises(ValueError, match="rates need decisions"):
        replace(ROWS, prediction=None).counted()
    with pytest.raises(ValueError, match="weighted or clustered rows are not a table"):
        replace(ROWS, weight=SCORE).counted()
    with pytest.raises(ValueError, match=r"expected label in \{0, 1\}, found 3"):
        replace(ROWS, label=LABEL * 3).counted()


@pytest.mark.parametrize(
    ("table", "lower", "upper", "message"),
    [
        (np.ones((2, 2, 3), int), [0.0, 1.0], [0.0, 1.0], r"of shape \(2, 2, 2\), found \(2, 2, 3\)"),
        (np.ones((2, 2, 2)), [0.0, 1.0], [0.0, 1.0], "expected counts, integers >= 0"),
        (-np.ones((2, 2, 2), int), [0.0, 1.0], [0.0, 1.0], "expected counts, integers >= 0"),
        (np.ones((2, 2, 2), int), [1.0, 0.0], [1.0, 0.0], "in ascending order"),
        (np.ones((2, 2, 2), int), [0.0, 0.4], [0.5, 1.0], "do not overlap"),
        (np.array([[[1, 0], [0, 0]], [[0, 0], [0, 0]]]), [0.0, 1.0], [0.0, 1.0], r"groups \['b'\] have no rows"),
    ],
)
def test_bad_tables_are_named(table: np.ndarray, lower: list, upper: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Counts(table, ("a", "b"), np.array(lower), np.array(upper))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)
