"""Hiring, arrests, Gaussian and identical groups: closed-form moments, sizes, and fresh rows in every repetition."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import tabular
from pipeline.seeds import generators
from pipeline.types import Dataset
from pipeline.workflow import plugins

NAMES = ("hiring", "arrests", "gaussian", "identical")
SMALL: dict[str, dict[str, Any]] = {
    "hiring": {"train": 30, "test": 20},
    "arrests": {"n": 25},
    "gaussian": {"n": 25, "dimension": 3, "correlation": 0.5},
    "identical": {"n": 25, "shared": 2, "extra": 1, "delta": 1.0},
}
LARGE = 200_000


def draw(name: str, repetitions: int = 1, **settings: Any) -> Dataset:
    module = plugins.load("dataset", name)
    config = plugins.configure(module, {"name": name, **SMALL[name], **settings})
    data: Dataset = module.prepare(None, config, generators("t", name, repetitions=repetitions), "simulated")
    return data


def within(found: float, expected: float, deviation: float, n: int) -> bool:
    """Whether a mean of n draws of that standard deviation is as close to its expectation as four standard errors."""
    return abs(found - expected) < 4 * deviation / sqrt(n)


# What the four have in common.


@pytest.mark.parametrize("name", NAMES)
def test_every_repetition_draws_rows_of_its_own_and_more_of_them_change_none(name: str) -> None:
    data, alone = draw(name, repetitions=3), draw(name)
    size = len(alone.label)
    np.testing.assert_array_equal(data.features[:size], alone.features)
    np.testing.assert_array_equal(data.train[0], alone.train[0])
    for r, (train, test) in enumerate(zip(data.train, data.test, strict=True)):
        assert set(train) | set(test) == set(range(r * size, (r + 1) * size))
    assert not np.array_equal(data.features[:size], data.features[size : 2 * size])


@pytest.mark.parametrize("name", NAMES)
def test_both_groups_are_equally_large_on_both_sides_of_a_split(name: str) -> None:
    data = draw(name, repetitions=2)
    (attribute,) = data.protected
    for rows in (*data.train, *data.test):
        counts = np.bincount(data.protected[attribute][rows])
        assert counts[0] == counts[1]


def test_rows_of_a_draw_are_moved_to_where_the_draw_stands() -> None:
    zeros = np.zeros(2, dtype=np.int64)
    draws = [tabular.Draw(np.full((2, 1), float(r)), zeros, np.arange(2), train=1) for r in range(3)]
    data = tabular.stacked("toy", draws, feature_names=("x",), attribute="g", levels=("a", "b"))
    np.testing.assert_array_equal(data.train, [[0], [2], [4]])
    np.testing.assert_array_equal(data.features[data.test[:, 0], 0], [0, 1, 2])


# Hiring.


@pytest.fixture(scope="module")
def applicants() -> Dataset:
    return draw("hiring", train=LARGE, test=1)


@pytest.mark.parametrize(("sex", "poisson", "a", "b"), [(0, 25, 2, 2), (1, 31, 2, 7)])
def test_experience_and_hair_have_the_moments_of_poisson_and_beta(
    applicants: Dataset, sex: int, poisson: int, a: int, b: int
) -> None:
    work, hair = applicants.features[applicants.protected["sex"] == sex].T
    assert applicants.levels["sex"][sex] == ("Female", "Male")[sex]
    variance = poisson + 0.2**2
    assert within(work.mean(), poisson - 20, sqrt(variance), len(work))
    # The fourth central moment of a Poisson number is m + 3 m^2.
    assert within(work.var(), variance, sqrt(poisson + 2 * poisson**2), len(work))
    deviation = 35 * sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    assert within(hair.mean(), 35 * a / (a + b), deviation, len(hair))
    assert hair.std() == pytest.approx(deviation, rel=0.01)
    assert 0 < hair.min() < hair.max() < 35


def test_without_its_noise_experience_is_a_whole_number() -> None:
    """The fractions of years come from N(20, .2^2) alone, so their spread about whole years is .2."""
    work = draw("hiring", train=20_000, test=1).features[:, 0]
    assert (work - np.rint(work)).std() == pytest.approx(0.2, abs=0.01)


def test_who_is_hired_follows_the_stated_logistic_law_of_experience_alone(applicants: Dataset) -> None:
    work, hair = applicants.features.T
    probability = 1 / (1 + np.exp(25.5 - 2.5 * work))
    for group in (work < 9, (work >= 9) & (work < 10), (work >= 10) & (work < 10.4), (work >= 10.4) & (work < 12)):
        for long in (False, True):
            rows = group & ((hair > 14) == long)
            expected = probability[rows]
            assert within(applicants.label[rows].mean(), expected.mean(), 0.5, int(rows.sum()))
    assert applicants.label[work > 20].all()
    assert not applicants.label[work < 1].any()


def test_hiring_is_standardised_over_women_and_men_together() -> None:
    data = draw("hiring", repetitions=2, train=500, test=400)
    assert data.continuous == data.feature_names == ("work_experience", "hair_length")
    assert (data.train.shape, data.test.shape) == ((2, 1_000), (2, 800))
    batch = data.batch("train")
    np.testing.assert_allclose(batch.features.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(batch.features.std(axis=1), 1)
    women = batch.features[batch.protected["sex"] == 0]
    assert women[:, 0].mean() < -0.3
    assert women[:, 1].mean() > 0.3


@pytest.mark.parametrize("name", ["hiring", "arrests", "identical"])
def test_groups_come_in_random_order(name: str) -> None:
    """So that the first rows of a split are a sample of all of them."""
    data = draw(name, **({"train": 2_000, "test": 5} if name == "hiring" else {"n": 2_000}))
    (group,) = data.protected.values()
    assert within(group[data.train[0][:1_000]].mean(), 0.5, 0.5, 1_000)


# Arrests.


@pytest.mark.parametrize(("group", "p"), [(0, 1 / 2), (1, 1 / 4)])
def test_arrests_are_geometric_less_one(group: int, p: float) -> None:
    data = draw("arrests", n=LARGE)
    arrests = data.features[data.protected["group"] == group, 0]
    assert within(arrests.mean(), (1 - p) / p, sqrt(1 - p) / p, LARGE)
    for k in range(4):
        mass = p * (1 - p) ** k
        assert within((arrests == k).mean(), mass, sqrt(mass * (1 - mass)), LARGE)
    assert data.levels["group"][group] == ("S'", "S")[group]
    assert not data.label.any()


# Gaussian.


@pytest.mark.parametrize(("dimension", "correlation"), [(1, 0.0), (1, 0.5), (4, 0.5), (4, -0.3), (3, 1.0)])
def test_features_have_unit_variance_and_the_stated_correlation(dimension: int, correlation: float) -> None:
    data = draw("gaussian", n=LARGE, dimension=dimension, correlation=correlation)
    expected = (1 - correlation) * np.eye(dimension) + correlation * np.ones((dimension, dimension))
    for group in (0, 1):
        x = data.features[data.protected["group"] == group]
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=4 / sqrt(LARGE))
        np.testing.assert_allclose(x.T @ x / LARGE, expected, atol=4 * sqrt(2 / LARGE))


def test_the_fixed_points_are_the_first_two_rows_of_the_source_group_in_every_repetition() -> None:
    data = draw("gaussian", repetitions=4)
    for rows in data.train:
        source = rows[data.protected["group"][rows] == data.levels["group"].index("S")]
        np.testing.assert_array_equal(data.features[source[:2]], [[1, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(data.train, data.test)
    # Everything else differs from draw to draw.
    others = np.delete(data.features, [r * 50 + i for r in range(4) for i in (0, 1)], axis=0)
    assert len(np.unique(others[:, 0])) == 4 * 48


# Identical.


def test_shared_features_have_one_law_and_extra_ones_tell_the_groups_apart() -> None:
    data = draw("identical", n=LARGE, shared=2, extra=1, delta=1.5)
    group = data.protected["group"]
    assert data.feature_names == ("x1", "x2", "extra1")
    for g in (0, 1):
        means = data.features[group == g].mean(axis=0)
        np.testing.assert_allclose(means, [0, 0, 1.5 * g], atol=4 / sqrt(LARGE))
        np.testing.assert_allclose(np.cov(data.features[group == g].T), np.eye(3), atol=4 * sqrt(2 / LARGE))
    assert draw("identical", extra=0).feature_names == ("x1", "x2")


def test_labels_depend_on_nothing() -> None:
    data = draw("identical", n=LARGE)
    assert within(data.label.mean(), 0.5, 0.5, 2 * LARGE)
    columns = np.column_stack([data.features, data.protected["group"]])
    correlations = np.corrcoef(data.label, columns.T)[0, 1:]
    assert (np.abs(correlations) < 4 / sqrt(2 * LARGE)).all()
