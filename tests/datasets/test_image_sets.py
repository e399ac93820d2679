"""What image datasets share: settings, stratified subsets that grow, and nothing dropped in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.datasets import image_sets, tabular
from pipeline.datasets.image_files import Decoded, Held
from pipeline.types import Array, ImageDataset

CONFIG: dict[str, Any] = {"image_size": 4, "train_points": None, "test_points": None, "mean": [0.5], "std": [0.5]}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 10))
@settings(max_examples=50, deadline=None)
def test_every_beginning_of_the_order_has_each_class_in_proportion(counts: list[int], seed: int) -> None:
    label = np.repeat(np.arange(len(counts)), counts)
    order = image_sets.stratified_order(label, np.random.default_rng(seed))
    n, classes = len(label), len(counts)
    assert sorted(order) == list(range(n))
    seen = np.cumsum(label[order][:, None] == np.arange(classes), axis=0)
    share = np.array(counts) / n
    expected = np.arange(1, n + 1)[:, None] * share
    assert (np.abs(seen - expected) <= 0.5 + classes / 2 * share + 1e-9).all()


def test_of_equal_classes_each_block_has_every_one_and_which_rows_come_is_random() -> None:
    label = np.repeat(np.arange(5), 40)
    orders = [image_sets.stratified_order(label, np.random.default_rng(seed)) for seed in range(200)]
    for order in orders[:5]:
        assert all(len(set(block)) == 5 for block in label[order].reshape(-1, 5))
    first = [order[0] for order in orders]
    assert len(set(first)) > 100
    assert set(label[first]) == set(range(5))


@dataclass(frozen=True)
class Broken:
    """Images 0 to n - 1, of which some cannot be decoded."""

    n: int
    broken: tuple[int, ...]

    def decoded(self, rows: Array, size: int) -> Decoded:
        images = np.broadcast_to(rows[:, None, None, None], (len(rows), 1, size, size)).astype(np.uint8)
        faults = tuple(f"{row}.jpg: broken" for row in sorted(rows) if row in self.broken)
        return Decoded(images, ~np.isin(rows, self.broken), faults)


def made(n: int = 20, broken: tuple[int, ...] = (), **changes: Any) -> ImageDataset:
    labelled = image_sets.Labelled(
        Broken(n, broken),
        np.arange(n) % 2,
        "parity",
        ("even", "odd"),
        {"size": np.where(np.arange(n) < 5, -1, np.arange(n) // 10)},
        {"size": ("small", "large")},
        dropped={"odd names": 1},
        unreadable=("x.jpg: odd name",),
    )
    split = np.arange(n - 6), np.arange(n - 6, n)
    config = image_sets.ImageConfig(**(CONFIG | changes))
    return image_sets.assembled("toy", "official", labelled, split, config, np.random.default_rng(0))


def test_rows_keep_their_image_label_and_groups_together() -> None:
    data = made()
    number = data.images[:, 0, 0, 0].astype(int)
    assert (data.train.shape, data.test.shape, data.repetitions) == ((1, 14), (1, 6), 1)
    assert set(number[data.train[0]]) == set(range(14))
    assert set(number[data.test[0]]) == set(range(14, 20))
    np.testing.assert_array_equal(data.label, number % 2)
    np.testing.assert_array_equal(data.partitions["parity"], data.label)
    np.testing.assert_array_equal(data.partitions["size"], np.where(number < 5, -1, number // 10))
    assert data.levels == {"parity": ("even", "odd"), "size": ("small", "large")}
    assert (data.dropped, data.unreadable) == ({"odd names": 1}, ("x.jpg: odd name",))
    assert data.pixels(np.array([0])).max() <= 1


def test_a_subset_is_stratified_and_part_of_a_larger_one() -> None:
    whole, small = made(n=60), made(n=60, train_points=10, test_points=4)
    few = made(n=60, train_points=6)
    assert (small.train.shape, small.test.shape) == ((1, 10), (1, 4))
    assert (np.bincount(small.label[small.train[0]]) == 5).all()
    assert (np.bincount(small.label[small.test[0]]) == 2).all()
    numbers = [data.images[data.train[0], 0, 0, 0] for data in (few, small, whole)]
    np.testing.assert_array_equal(numbers[0], numbers[1][:6])
    np.testing.assert_array_equal(numbers[1], numbers[2][:10])


def test_images_that_cannot_be_decoded_are_left_out_counted_and_named() -> None:
    data = made(broken=(3, 17))
    number = data.images[:, 0, 0, 0].astype(int)
    assert set(number[data.train[0]]) == set(range(14)) - {3}
    assert set(number[data.test[0]]) == set(range(14, 20)) - {17}
    np.testing.assert_array_equal(data.label, number % 2)
    assert data.dropped == {"odd names": 1, image_sets.UNREADABLE: 2}
    assert data.unreadable == ("x.jpg: odd name", "3.jpg: broken", "17.jpg: broken")


def test_without_a_readable_image_to_test_there_is_no_dataset() -> None:
    with pytest.raises(ValueError, match=r"toy: 14 images to train on and 0 to test can be read.*14\.jpg: broken"):
        made(broken=tuple(range(14, 20)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_points": 15}, r"dataset\.train_points asks for 15 images of 14"),
        ({"mean": [0.5] * 3, "std": [1.0] * 3}, r"have 3 numbers, but the images of toy have 1 channels"),
    ],
)
def test_a_bad_setting_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


def test_a_random_split_parts_all_rows_and_rounds_the_training_part_down() -> None:
    train, test = tabular.random_split(23_708, 0.8, np.random.default_rng(0))
    assert (len(train), len(test)) == (18_966, 4_742)
    assert len(set(train) | set(test)) == 23_708


def test_held_images_of_the_right_size_are_handed_on_unchanged() -> None:
    images = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
    found = Held(images).decoded(np.array([1, 0]), 4)
    np.testing.assert_array_equal(found.images, images[::-1])
