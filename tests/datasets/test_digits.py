"""Handwritten digits: always there, and enlarged as the docstring says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import digits
from pipeline.seeds import generators
from pipeline.types import ImageDataset

Made = Callable[..., ImageDataset]

SIZE_8: dict[str, Any] = {"image_size": 8, "interpolation": "nearest", "train_points": None, "test_points": None}


@pytest.fixture
def made(configured: Callable[..., digits.Config]) -> Made:
    def prepare(**changes: Any) -> ImageDataset:
        config = configured("digits", **SIZE_8 | changes)
        return digits.prepare(digits.parse(), config, generators("t", repetitions=1), digits.ORIGIN)

    return prepare


def test_the_digits_are_there_as_published(made: Made) -> None:
    data = made()
    assert (data.origin, data.images.shape, data.maximum) == ("bundled", (1_797, 1, 8, 8), 16)
    assert (data.train.shape, data.test.shape) == ((1, 1_437), (1, 360))
    np.testing.assert_array_equal(np.bincount(data.label), [178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
    assert (data.classes, list(data.partitions)) == (tuple("0123456789"), ["digit"])
    pixels = data.pixels(np.arange(1_797))
    assert (pixels.min(), pixels.max()) == (0, 1)
    # The whole set, whatever its order.
    published = digits.parse().pictures.decoded(np.arange(1_797), 8).images
    assert sorted(image.tobytes() for image in data.images) == sorted(image.tobytes() for image in published)


def test_by_the_nearest_pixel_a_change_is_as_many_times_longer_as_the_image_is_wider(
    made: Callable[..., ImageDataset],
) -> None:
    small = made(test_points=20)
    large = made(test_points=20, image_size=32)
    np.testing.assert_array_equal(large.images, small.images.repeat(4, axis=2).repeat(4, axis=3))
    a, b = (np.linalg.norm(np.diff(data.pixels(data.test[0][:2]), axis=0)) for data in (small, large))
    assert b == pytest.approx(4 * a)


def test_interpolated_pixels_have_finer_steps_in_the_same_range(made: Made) -> None:
    small = made(test_points=50)
    large = made(test_points=50, image_size=32, interpolation="bilinear")
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
    same = made(test_points=50, interpolation="bilinear")
    np.testing.assert_array_equal(same.images, small.images)
    assert same.maximum == 16
