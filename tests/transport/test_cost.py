"""Costs of pairs by matrix, by row and by function agree, in NumPy and in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.transport.cost import COSTS, cost_function, cost_matrix, paired_costs

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


def test_a_function_is_taken_as_it_is() -> None:
    def only_first(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(abs(x - y)[..., 0])

    np.testing.assert_array_equal(cost_matrix(X, Y, only_first), [[3, 1], [2, 0]])
    np.testing.assert_array_equal(paired_costs(X, Y, only_first), [3, 0])


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"among squared_l1, l1, squared_l2, l2, or a function.*found 'cosine'"):
        cost_function("cosine")
