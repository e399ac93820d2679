"""The score of an architecture with probabilities is the probability of label 1."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch

from pipeline.models import logistic_mixture, mlp
from pipeline.types import Array

R, N, D, K = 2, 40, 3, 4


def parameters(model: ModuleType) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    if model is mlp:
        shapes = {"w1": (R, D, K), "b1": (R, K), "w2": (R, K, 2), "b2": (R, 2)}
        return {name: rng.normal(size=shape) for name, shape in shapes.items()}
    weight = rng.dirichlet(np.ones(K), R)
    return {"weight": weight, "coef": rng.normal(size=(R, K, D)), "intercept": rng.normal(size=(R, K))}


@pytest.mark.parametrize("model", [mlp, logistic_mixture])
def test_the_score_is_the_probability_of_label_1(model: ModuleType) -> None:
    own, x = parameters(model), np.random.default_rng(1).normal(size=(R, N, D))
    tensors = {name: torch.tensor(values) for name, values in own.items()}
    expected = model.log_probabilities(tensors, torch.tensor(x)).exp()[..., 1].numpy()
    found = model.score(own, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found > 0.5, model.predict(own, x) == 1)


def test_members_without_weight_do_not_count() -> None:
    own = {"weight": np.array([[1.0, 0.0]]), "coef": np.array([[[1.0], [9.0]]]), "intercept": np.array([[0.0, 9.0]])}
    np.testing.assert_allclose(logistic_mixture.score(own, np.array([[[0.0], [np.log(3)]]])), [[0.5, 0.75]])
