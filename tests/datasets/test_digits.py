"""Handwritten digits: always there, and enlarged as the docstring says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import digits
from pipeline.seeds import generators

COMMON: dict[str, Any] = {
    "image_size": 8,
    "train_points": None,
    "test_points": None,
    "mean": [0.5],
    "std": [0.5],
    "train_fraction": 0.8,
    "interpolation": "nearest",
}


def rngs() -> Sequence[np.random.Generator]:
    return generators("t", repetitions=1)


def config(**changes: Any) -> digits.Config:
    return digits.Config(**(COMMON | changes))


def test_the_digits_are_there_as_published() -> None:
    rows = digits.parse()
    data = digits.prepare(rows, config(), rngs(), digits.ORIGIN)
    assert (data.origin, data.images.shape, data.maximum) == ("bundled", (1_797, 1, 8, 8), 16)
    assert (data.train.shape, data.test.shape) == ((1, 1_437), (1, 360))
    np.testing.assert_array_equal(np.bincount(data.label), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    assert (data.classes, list(data.partitions)) == (tuple("0123456789"), ["digit"])
    pixels = data.pixels(np.arange(1_797))
    assert (pixels.min(), pixels.max()) == (0, 1)
    # The whole set, whatever its order.
    assert sorted(image.tobytes() for image in data.images) == sorted(image.tobytes() for image in rows.images)


def test_by_the_nearest_pixel_a_change_is_as_many_times_longer_as_the_image_is_wider() -> None:
    small = digits.prepare(digits.parse(), config(test_points=20), rngs(), "bundled")
    large = digits.prepare(digits.parse(), config(test_points=20, image_size=32), rngs(), "bundled")
    np.testing.assert_array_equal(large.images, small.images.repeat(4, axis=2).repeat(4, axis=3))
    a, b = (np.linalg.norm(np.diff(data.pixels(data.test[0][:2]), axis=0)) for data in (small, large))
    assert b == pytest.approx(4 * a)


def test_interpolated_pixels_have_finer_steps_in_the_same_range() -> None:
    small = digits.prepare(digits.parse(), config(test_points=50), rngs(), "bundled")
    large = digits.prepare(
        digits.parse(), config(test_points=50, image_size=32, interpolation="bilinear"), rngs(), "bundled"
    )
    assert large.maximum == 240
    rows = np.arange(len(small.label))
    a, b = small.pixels(rows), large.pixels(rows)
    assert b.max() <= 1
    # The pixel i of 32 lies at (i + 1/2) / 4 - 1/2 among the 8, and is weighed linearly between its two neighbours.
    place = np.clip((np.arange(32) + 0.5) / 4 - 0.5, 0, 7)
    weight = np.maximum(1 - np.abs(place[:, None] - np.arange(8)), 0)
    np.testing.assert_allclose(b, weight @ a @ weight.T, atol=1.01 / 240)
    assert len(np.unique(large.images)) > 200
    # At the size that they have nothing is interpolated.
    same = digits.prepare(digits.parse(), config(test_points=50, interpolation="bilinear"), rngs(), "bundled")
    np.testing.assert_array_equal(same.images, small.images)
    assert same.maximum == 16
