"""The regression is uncorrelated with the attribute, and the best among all that are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from pipeline.datasets import hiring
from pipeline.methods import parity_constrained
from pipeline.methods.parity_constrained import Config, orthogonal, unpenalised
from pipeline.seeds import generators
from pipeline.types import Dataset

RNGS = generators("parity", repetitions=2)


def test_scores_are_uncorrelated_with_every_attribute(population: Callable[..., Dataset]) -> None:
    data = population()
    found = parity_constrained.fit(data, Config(None), RNGS)
    batch = data.batch("train")
    score = (batch.features @ found.parameters["coef"][:, 0, :, None])[..., 0]
    for z in batch.protected.values():
        for r in range(2):
            assert abs(np.corrcoef(score[r], z[r])[0, 1]) < 1e-12
    assert (found.facts["correlation"] < 1e-12).all()
    assert found.facts["free_weights"].tolist() == [3, 3]


def test_only_the_named_attributes_bind(population: Callable[..., Dataset]) -> None:
    data = population()
    found = parity_constrained.fit(data, Config(["sex"]), RNGS)
    batch = data.batch("train")
    score = batch.features[0] @ found.parameters["coef"][0, 0]
    assert abs(np.corrcoef(score, batch.protected["sex"][0])[0, 1]) < 1e-12
    assert abs(np.corrcoef(score, batch.protected["race"][0])[0, 1]) > 1e-3


def test_it_is_the_minimum_of_the_constrained_problem(population: Callable[..., Dataset]) -> None:
    """A general solver of constrained problems ends in the same weights."""
    data = population(repetitions=1)
    batch = data.batch("train")
    x, y, z = batch.features[0], batch.label[0], batch.protected["sex"][0]
    a = (z - z.mean()) @ x / len(x)

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -(2 * y - 1) * (x @ w[:-1] + w[-1])).mean())

    def slope(w: np.ndarray) -> np.ndarray:
        residual = expit(x @ w[:-1] + w[-1]) - y
        return np.append(residual @ x, residual.sum()) / len(x)

    parity = {"type": "eq", "fun": lambda w: a @ w[:-1], "jac": lambda w: np.append(a, 0)}
    solved = minimize(loss, np.zeros(6), jac=slope, constraints=[parity], method="SLSQP", options={"ftol": 1e-14})
    found = parity_constrained.fit(data, Config(["sex"]), RNGS[:1])
    np.testing.assert_allclose(found.parameters["coef"][0, 0], solved.x[:-1], atol=1e-5)
    assert found.parameters["intercept"][0, 0] == pytest.approx(solved.x[-1], abs=1e-5)


def test_it_rewards_hair_to_make_up_for_experience() -> None:
    """Lipton et al. 2018: hire iff 1.4 work + 1.2 hair > .9, though the label depends on work alone."""
    data = hiring.prepare(None, hiring.Config(train=10_000, test=10), generators("h", repetitions=2), "simulated")
    found = parity_constrained.fit(data, Config(None), RNGS)
    coef, intercept = found.parameters["coef"][:, 0], found.parameters["intercept"][:, 0]
    np.testing.assert_allclose(coef, np.tile([1.46, 1.20], (2, 1)), atol=0.15)
    np.testing.assert_allclose(-intercept, 0.89, atol=0.05)


def test_rows_in_neither_group_train_but_do_not_bind(population: Callable[..., Dataset]) -> None:
    data = population()
    outside = data.features[:, 4] > 0
    race = np.where(outside, -1, data.protected["race"])
    found = parity_constrained.fit(replace(data, protected={"race": race}), Config(None), RNGS)
    batch = data.batch("train")
    score = batch.features[0] @ found.parameters["coef"][0, 0]
    inside = race[data.train[0]] >= 0
    assert abs(np.corrcoef(score[inside], batch.protected["race"][0][inside])[0, 1]) < 1e-12
    residual = expit(score + found.parameters["intercept"][0, 0]) - batch.label[0]
    assert residual.sum() == pytest.approx(0, abs=1e-5)


def test_where_no_direction_is_left_the_score_is_constant(population: Callable[..., Dataset]) -> None:
    data = population()
    only = replace(data, features=data.features[:, :1], feature_names=("proxy_sex",), continuous=("proxy_sex",))
    found = parity_constrained.fit(only, Config(["sex"]), RNGS)
    assert found.facts["free_weights"].tolist() == [0, 0]
    assert (found.parameters["coef"] == 0).all()
    shares = data.batch("train").label.mean(axis=1)
    np.testing.assert_allclose(expit(found.parameters["intercept"][:, 0]), shares)


def test_repeated_features_share_their_weight_and_change_no_score(population: Callable[..., Dataset]) -> None:
    data = population()
    degree = data.features[:, 3:4]
    names = (*data.feature_names, "none", "one")
    twice = replace(
        data, features=np.column_stack([data.features, 1 - degree, np.ones(len(degree))]), feature_names=names
    )
    one, two = (parity_constrained.fit(d, Config(None), RNGS) for d in (data, twice))
    assert two.facts["free_weights"].tolist() == [3, 3]
    score = [
        (d.batch("test").features @ f.parameters["coef"][:, 0, :, None])[..., 0] + f.parameters["intercept"]
        for d, f in ((data, one), (twice, two))
    ]
    np.testing.assert_allclose(score[0], score[1], atol=1e-6)
    np.testing.assert_allclose(two.parameters["coef"][..., 3], -two.parameters["coef"][..., 5], atol=1e-9)
    np.testing.assert_allclose(two.parameters["coef"][..., 6], 0, atol=1e-9)


def test_the_basis_is_orthonormal_and_orthogonal_to_the_constraints() -> None:
    a = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    basis = orthogonal(a)
    assert basis.shape == (3, 2)
    np.testing.assert_allclose(a @ basis, 0, atol=1e-14)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-14)
    assert orthogonal(np.zeros((1, 3))).shape == (3, 3)


def test_what_cannot_be_fitted_is_said(population: Callable[..., Dataset]) -> None:
    with pytest.raises(ValueError, match=r"method\.attributes among \['race', 'sex'\], found \['age'\]"):
        parity_constrained.fit(population(), Config(["age"]), RNGS)
    with pytest.raises(ValueError, match="both labels, found label 1 alone"):
        unpenalised(np.ones((3, 1)), np.ones(3, dtype=np.int64))
    x = np.linspace(-1, 1, 40)[:, None]
    with pytest.raises(ValueError, match="can be told apart without error"):
        unpenalised(x, (x[:, 0] > 0).astype(np.int64))
