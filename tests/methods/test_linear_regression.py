"""Least squares: the normal equations hold, dependent columns share their weight, the threshold is the outcome's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.methods import linear_regression
from pipeline.methods.linear_regression import Config
from pipeline.models import linear
from pipeline.seeds import generators
from pipeline.types import Dataset

RNGS = generators("ols", repetitions=2)


def students(n: int = 500) -> Dataset:
    """A score far from 0, two dummies for each of two schools, and an outcome that depends on both."""
    rng = np.random.default_rng(0)
    score, school = 1000 + 5 * rng.normal(size=n), rng.integers(0, 2, n)
    outcome = 0.2 * (score - 1000) + 0.6 * school + rng.normal(size=n)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    return Dataset(
        name="students",
        origin="simulated",
        features=np.column_stack([score, school == 0, school == 1]).astype(float),
        feature_names=("score", "A", "B"),
        continuous=(),
        label=(outcome > np.median(outcome)).astype(np.int64),
        label_name="above",
        protected={"school": school},
        levels={"school": ("A", "B")},
        train=order[:, :300],
        test=order[:, 300:],
        outcomes={"average": outcome},
    )


def test_the_residual_is_orthogonal_to_every_column_and_to_one() -> None:
    data = students()
    found = linear_regression.fit(data, Config("average", 0.0), RNGS)
    x = data.batch("train").features
    t = data.outcomes["average"][data.train]
    residual = t - linear.score(found.parameters, x)
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-8)
    np.testing.assert_allclose(np.einsum("rn,rnd->rd", residual, x - x.mean(axis=1, keepdims=True)), 0, atol=1e-7)
    np.testing.assert_allclose(found.facts["rmse"], np.sqrt((residual**2).mean(axis=1)))
    np.testing.assert_allclose(found.facts["r_squared"], 1 - (residual**2).sum(axis=1) / t.var(axis=1) / 300)
    assert found.facts["rank"].tolist() == [2, 2]


def test_the_levels_of_an_attribute_have_weights_of_sum_0() -> None:
    data = students()
    coef = linear_regression.fit(data, Config(None, None), RNGS).parameters["coef"]
    np.testing.assert_allclose(coef[:, 1] + coef[:, 2], 0, atol=1e-8)
    plain = np.linalg.lstsq(
        np.column_stack([data.features[data.train[0]][:, [0, 2]], np.ones(300)]),
        data.outcomes["average"][data.train[0]],
    )[0]
    assert coef[0, 2] - coef[0, 1] == pytest.approx(plain[1], abs=1e-6)
    assert coef[0, 0] == pytest.approx(plain[0], abs=1e-8)


def test_the_decision_is_that_the_prediction_exceeds_the_threshold_or_the_median() -> None:
    data = students()
    x = data.batch("test").features
    for threshold, expected in (
        (1.25, np.full(2, 1.25)),
        (None, np.median(data.outcomes["average"][data.train], axis=1)),
    ):
        parameters = linear_regression.fit(data, Config(None, threshold), RNGS).parameters
        np.testing.assert_allclose(parameters["threshold"], expected)
        prediction = linear.score(parameters, x)
        np.testing.assert_array_equal(linear.predict(parameters, x), prediction > expected[:, None])


def test_an_outcome_that_is_not_there_is_named() -> None:
    data = students()
    two = replace(data, outcomes={**data.outcomes, "other": data.outcomes["average"]})
    with pytest.raises(ValueError, match=r"method\.outcome among those of 'students' \(average\), found 'score'"):
        linear_regression.fit(data, Config("score", None), RNGS)
    with pytest.raises(ValueError, match=r"\(average, other\), found None"):
        linear_regression.fit(two, Config(None, None), RNGS)
    with pytest.raises(ValueError, match="none: its label is all that there is to predict"):
        linear_regression.fit(replace(data, outcomes={}), Config(None, None), RNGS)
