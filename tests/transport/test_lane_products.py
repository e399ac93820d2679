from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from pipeline.transport.lane_products import LANES, ROWS, add_products
from pipeline.types import Array

_njit: Any = njit
TYPES = [np.float32, np.float64]


@_njit
def added(out: Array, weights: Array, x: Array) -> None:
    add_products(out, weights, x)


LAYOUTS: dict[str, Any] = {
    "rows": lambda w: w,
    "transposed": lambda w: w.T.copy().T,
    "part of wider rows": lambda w: np.concatenate([w, w], axis=1)[:, : w.shape[1]],
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(ROWS, 1), (12, 7), (2 * ROWS, 0), (128, 64)])
def test_products_of_whole_numbers_are_exact(kind: Any, layout: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows, columns = shape
    weights = rng.integers(-50, 50, shape).astype(kind)
    x, before = (rng.integers(-50, 50, (n, LANES)).astype(kind) for n in (columns, rows))
    out = before.copy().ravel()
    added(out, LAYOUTS[layout](weights), x.ravel())
    np.testing.assert_array_equal(out.reshape(rows, LANES), before + weights @ x)


@pytest.mark.parametrize("kind", TYPES)
def test_a_product_and_its_sum_are_rounded_once(kind: Any) -> None:
    """(1 + e)^2 - 1 - 2 e is e^2, which a product that is rounded by itself has lost."""
    tiny = np.finfo(kind).eps
    out = np.full(ROWS * LANES, -1 - 2 * tiny, kind)
    added(out, np.full((ROWS, 1), 1 + tiny, kind), np.full(LANES, 1 + tiny, kind))
    assert (out == tiny * tiny).all()


def test_columns_are_added_in_their_order() -> None:
    """Of 1, then large and minus large, only the other order keeps the 1."""
    large = np.float32(2.0**30)
    out = np.zeros(ROWS * LANES, np.float32)
    weights = np.tile(np.array([1, large, -large], np.float32), (ROWS, 1))
    added(out, weights, np.ones(3 * LANES, np.float32))
    assert (out == 0).all()
    out[:] = 0
    added(out, weights[:, ::-1].copy(), np.ones(3 * LANES, np.float32))
    assert (out == 1).all()
