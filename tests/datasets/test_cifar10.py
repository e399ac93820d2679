"""CIFAR-10: the official archive, and the copy as JPEG files that may stand in for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import cifar10
from pipeline.seeds import generators

Packed = Callable[[Path, Mapping[str, bytes]], Path]


def rngs() -> Sequence[np.random.Generator]:
    return generators("t", repetitions=1)


def config(**changes: Any) -> cifar10.Config:
    common: dict[str, Any] = {
        "image_size": 32,
        "train_points": None,
        "test_points": None,
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
    }
    return cifar10.Config(**(common | changes))


@pytest.fixture
def members(cifar_batch: Callable[..., bytes], python2: Callable[[Any], bytes]) -> dict[str, bytes]:
    """Five batches of two images and a test batch of three; the greys tell them apart, the last digit is the class."""
    batches = {name: [10 * i + 2, 10 * i + 3] for i, name in enumerate(cifar10.TRAIN)}
    batches[cifar10.TEST] = [100, 101, 109]
    files = {f"{cifar10.FOLDER}/readme.html": b"<html>"}
    for name, greys in batches.items():
        files[f"{cifar10.FOLDER}/{name}"] = cifar_batch(greys, labels=[grey % 10 for grey in greys])
    meta = {"label_names": list(cifar10.CLASSES), "num_cases_per_batch": 10_000, "num_vis": 3_072}
    return files | {f"{cifar10.FOLDER}/{cifar10.META}": python2(meta)}


def test_the_official_split_and_labels(tmp_path: Path, packed: Packed, members: dict[str, bytes]) -> None:
    packed(tmp_path / cifar10.ARCHIVE, members)
    data = cifar10.prepare(cifar10.parse(tmp_path), config(), rngs(), "official")
    assert (data.images.shape, data.images.dtype, data.maximum) == ((13, 3, 32, 32), np.uint8, 255)
    grey = data.images[:, 0, 0, 0].astype(int)
    assert sorted(grey[data.train[0]]) == [2, 3, 12, 13, 22, 23, 32, 33, 42, 43]
    assert sorted(grey[data.test[0]]) == [100, 101, 109]
    np.testing.assert_array_equal(data.label, grey % 10)
    assert data.classes[data.label[grey == 2][0]] == "bird"
    assert list(data.partitions) == ["class"]
    assert (data.origin, data.mean, data.dropped, data.unreadable) == ("official", (0.5,) * 3, {}, ())


@pytest.mark.parametrize("lost", [cifar10.TRAIN[2], cifar10.TEST, cifar10.META])
def test_a_missing_batch_is_named(tmp_path: Path, packed: Packed, members: dict[str, bytes], lost: str) -> None:
    del members[f"{cifar10.FOLDER}/{lost}"]
    packed(tmp_path / cifar10.ARCHIVE, members)
    with pytest.raises(ValueError, match=rf"cifar-10-python\.tar\.gz lacks cifar-10-batches-py/{lost}"):
        cifar10.parse(tmp_path)


def test_classes_in_another_order_are_refused(
    tmp_path: Path, packed: Packed, members: dict[str, bytes], python2: Callable[[Any], bytes]
) -> None:
    members[f"{cifar10.FOLDER}/{cifar10.META}"] = python2({"label_names": list(cifar10.CLASSES[::-1])})
    packed(tmp_path / cifar10.ARCHIVE, members)
    with pytest.raises(ValueError, match=r"expected the classes airplane, .*, found truck, ship"):
        cifar10.parse(tmp_path)


def test_the_copy_has_classes_and_split_in_its_folders_and_odd_names_are_listed(
    tmp_path: Path, packed: Packed, jpeg: Callable[..., bytes]
) -> None:
    files = {
        "train/cat/0000.jpg": jpeg(30, 32, 32),
        "train/truck/0000.jpg": jpeg(90, 32, 32),
        "train/cat/0001.jpg": b"broken",
        "test/ship/0000.jpg": jpeg(80, 32, 32),
        "test/unicorn/0000.jpg": jpeg(1, 32, 32),
        "labels.txt": b"cat",
    }
    packed(tmp_path / cifar10.COPY, files)
    data = cifar10.prepare(cifar10.parse(tmp_path, cifar10.COPY), config(image_size=16), rngs(), "jpeg")
    assert (data.origin, data.images.shape) == ("jpeg", (3, 3, 16, 16))
    classes = {int(image[0, 0, 0]): data.classes[label] for image, label in zip(data.images, data.label, strict=True)}
    assert classes == {30: "cat", 90: "truck", 80: "ship"}
    np.testing.assert_array_equal(data.images[data.test[0]], 80)
    assert data.dropped == {"files with an odd name": 2, "images that cannot be decoded": 1}
    assert [fault.split(":")[0] for fault in data.unreadable] == [
        "labels.txt",
        "test/unicorn/0000.jpg",
        "train/cat/0001.jpg",
    ]


def test_the_sources_say_which_is_official() -> None:
    (official,), ((origin, copy),) = cifar10.SOURCES, cifar10.ALTERNATIVES
    assert (official.filename, origin, copy.filename) == (cifar10.ARCHIVE, "jpeg", cifar10.COPY)
    assert cifar10.TWIN is None
    with pytest.raises(ValueError, match="cifar10 is made of images"):
        cifar10.prepare(None, config(), rngs(), "official")


def test_the_official_archive(archive: Callable[[str, str], Path]) -> None:
    found = cifar10.parse(archive("cifar10", cifar10.ARCHIVE))
    for part, count in ((~found.test, 5_000), (found.test, 1_000)):
        np.testing.assert_array_equal(np.bincount(found.label[part]), [count] * 10)


def test_the_copy_at_hand(archive: Callable[[str, str], Path]) -> None:
    found = cifar10.parse(archive("cifar10", cifar10.COPY), cifar10.COPY)
    assert (len(found.label), found.unreadable) == (60_000, ())
    for part, count in ((~found.test, 5_000), (found.test, 1_000)):
        np.testing.assert_array_equal(np.bincount(found.label[part]), [count] * 10)
    data = cifar10.prepare(found, config(train_points=40, test_points=20), rngs(), "jpeg")
    np.testing.assert_array_equal(np.bincount(data.label[data.train[0]]), [4] * 10)
    np.testing.assert_array_equal(np.bincount(data.label[data.test[0]]), [2] * 10)
    assert data.unreadable == ()
