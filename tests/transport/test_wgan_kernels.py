"""Products of matrices in the compiled GAN: rounded once a product, added in the order of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from pipeline.transport.wgan_kernels import LANES, ROWS, add_products
from pipeline.types import Array

_njit: Any = njit
TINY = np.finfo(np.float32).eps
LARGE = 2.0**30
LAYOUTS: dict[str, Any] = {
    "rows": lambda w: w,
    "transposed": lambda w: w.T.copy().T,
    "part of wider rows": lambda w: np.concatenate([w, w], axis=1)[:, : w.shape[1]],
}


@_njit
def added(out: Array, weights: Array, x: Array) -> None:
    add_products(out, weights, x)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_whole_numbers_are_exact(kind: Any, layout: str) -> None:
    rng = np.random.default_rng(0)
    for rows, columns in ((ROWS, ROWS), (12, 8), (2 * ROWS, 0), (128, 64)):
        weights = rng.integers(-50, 50, (rows, columns)).astype(kind)
        x, before = (rng.integers(-50, 50, (n, LANES)).astype(kind) for n in (columns, rows))
        out = before.copy().ravel()
        added(out, LAYOUTS[layout](weights), x.ravel())
        np.testing.assert_array_equal(out.reshape(rows, LANES), before + weights @ x)


@pytest.mark.parametrize(
    ("start", "weights", "x", "expected"),
    [
        # (1 + e)^2 - 1 - 2 e is e^2, which a product that is rounded by itself has lost.
        (-1 - 2 * TINY, (1 + TINY, 0, 0, 0), 1 + TINY, TINY**2),
        # Of 1, then large and minus large, only the other order keeps the 1.
        (0, (1, LARGE, -LARGE, 0), 1, 0),
        (0, (-LARGE, LARGE, 1, 0), 1, 1),
    ],
)
def test_columns_are_added_in_their_order_and_products_are_not_rounded_before(
    start: float, weights: tuple[float, ...], x: float, expected: float
) -> None:
    out = np.full(ROWS * LANES, start, np.float32)
    added(out, np.tile(np.array(weights, np.float32), (ROWS, 1)), np.full(ROWS * LANES, x, np.float32))
    assert (out == np.float32(expected)).all()
