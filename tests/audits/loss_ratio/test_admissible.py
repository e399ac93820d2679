"""Points that describe somebody who could exist."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pipeline.audits.loss_ratio.admissible import Admissible, check_categories, range_of

# Age from 17 to 90, a share, and a category of three levels.
PEOPLE = Admissible((np.array([17.0, 0, 0, 0, 0]), np.array([90.0, 1, 1, 1, 1])), whole=(0,), categories=((2, 3, 4),))


def test_nearest_is_the_admissible_point_of_least_distance() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(10, 100, 200), rng.normal(size=(200, 4))])
    shares = np.linspace(0, 1, 1001)
    corners = np.eye(3)
    for point, found in zip(points, PEOPLE.nearest(points), strict=True):
        age = min(range(17, 91), key=lambda whole: abs(whole - point[0]))
        share = shares[np.abs(shares - point[1]).argmin()]
        corner = min(corners, key=lambda e: float(((e - point[2:]) ** 2).sum()))
        np.testing.assert_allclose(found, [age, share, *corner], atol=1e-3)


def test_nearest_changes_nobody_who_is_admissible() -> None:
    people = np.array([[age, share, *corner] for age, share, corner in product((17, 40, 90), (0, 0.3, 1), np.eye(3))])
    np.testing.assert_array_equal(PEOPLE.nearest(people), people)
    assert PEOPLE.within(people).all()


def test_within_is_of_the_bounds_alone() -> None:
    points = np.array([[17.0, 0.5, 0.2, 0.2, 0.2], [16.9, 0.5, 1, 0, 0], [40, 0.5, 1, 0, 1.1], [90 + 1e-9, 1, 1, 0, 0]])
    np.testing.assert_array_equal(PEOPLE.within(points), [True, False, False, True])
    assert Admissible((np.full(5, -np.inf), np.full(5, np.inf))).within(points).all()


def test_range_of_is_attained() -> None:
    features = np.array([[1.0, -2], [3, 5], [2, 0]])
    np.testing.assert_array_equal(range_of(features), [[1, -2], [3, 5]])


@pytest.mark.parametrize("row", [[0.0, 0, 0], [1, 1, 0], [0.5, 0.5, 0], [2, -1, 0]])
def test_indicators_are_one_1_and_else_0(row: list[float]) -> None:
    good = np.eye(3)
    check_categories(good, [(0, 1, 2)], "abc")
    with pytest.raises(
        ValueError, match="1 rows, the first of them row 3, have no single 1 among the indicators a, b, c"
    ):
        check_categories(np.vstack([good, row]), [(0, 1, 2)], "abc")


def test_no_whole_number_within_the_bounds() -> None:
    with pytest.raises(ValueError, match="whole number within the bounds of feature 0"):
        Admissible((np.array([0.2]), np.array([0.8])), whole=(0,)).nearest(np.zeros((1, 1)))
