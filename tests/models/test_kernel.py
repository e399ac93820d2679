"""A support vector machine evaluated in blocks."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from pipeline.models import kernel
from pipeline.types import Array


def machine(far: float = 0.0) -> dict[str, Array]:
    """Two machines of 7 and 4 support vectors on columns 2 and 0, the second padded."""
    rng = np.random.default_rng(0)
    dual = rng.normal(size=(2, 7))
    dual[1, 4:] = 0
    return {
        "support": far + rng.normal(size=(2, 7, 2)),
        "dual": dual,
        "gamma": np.array([0.5, 2.0]),
        "intercept": np.array([0.1, -0.2]),
        "columns": np.array([[2, 0], [2, 0]]),
    }


@pytest.mark.parametrize("far", [0.0, 1e5])
def test_the_score_is_the_kernel_expansion_wherever_the_data_lie(far: float) -> None:
    parameters = machine(far)
    x = far + np.random.default_rng(1).normal(size=(2, 50, 3))
    expected = [
        np.exp(-gamma * cdist(rows[:, [2, 0]], v, "sqeuclidean")) @ a + b
        for rows, v, a, gamma, b in zip(
            x, *(parameters[name] for name in ("support", "dual", "gamma", "intercept")), strict=True
        )
    ]
    found = kernel.score(parameters, x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(kernel.predict(parameters, x), np.array(expected) > 0)
    assert set(np.unique(kernel.predict(parameters, x))) == {0, 1}


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, x = machine(), np.random.default_rng(1).normal(size=(2, 50, 3))
    whole = kernel.score(parameters, x)
    monkeypatch.setattr(kernel, "CELLS", 15)
    np.testing.assert_allclose(kernel.score(parameters, x), whole, rtol=1e-13)


def test_padding_and_unseen_columns_change_nothing() -> None:
    parameters, x = machine(), np.random.default_rng(1).normal(size=(2, 50, 3))
    scores = kernel.score(parameters, x)
    padded = {**parameters, "support": parameters["support"].copy()}
    padded["support"][1, 4:] = 1e9
    moved = x.copy()
    moved[..., 1] += 100
    np.testing.assert_array_equal(kernel.score(padded, moved), scores)


def test_a_machine_without_support_vectors_says_its_intercept() -> None:
    parameters = machine()
    parameters["dual"] = np.zeros((2, 7))
    np.testing.assert_array_equal(kernel.score(parameters, np.ones((2, 3, 3))), np.tile([[0.1], [-0.2]], 3))
