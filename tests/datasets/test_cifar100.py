"""CIFAR-100: fine and coarse labels of the same images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import cifar100
from pipeline.seeds import generators

Packed = Callable[[Path, Mapping[str, bytes]], Path]
GREYS = {"train": [0, 41, 57, 99, 12], "test": [7, 93]}


def rngs() -> Sequence[np.random.Generator]:
    return generators("t", repetitions=1)


def config(**changes: Any) -> cifar100.Config:
    common: dict[str, Any] = {
        "image_size": 32,
        "train_points": None,
        "test_points": None,
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
    }
    return cifar100.Config(**(common | {"rows": "fine"} | changes))


@pytest.fixture
def members(cifar_batch: Callable[..., bytes], python2: Callable[[Any], bytes]) -> dict[str, bytes]:
    """Images whose grey is the class, of superclass class // 5."""
    parts = {
        f"{cifar100.FOLDER}/{part}": cifar_batch(greys, fine_labels=greys, coarse_labels=[grey // 5 for grey in greys])
        for part, greys in GREYS.items()
    }
    names = {"fine_label_names": [f"f{i}" for i in range(100)], "coarse_label_names": [f"c{i}" for i in range(20)]}
    return parts | {f"{cifar100.FOLDER}/{cifar100.META}": python2(names)}


@pytest.mark.parametrize(("rows", "name", "divisor"), [("fine", "class", 1), ("coarse", "superclass", 5)])
def test_either_labels_of_the_same_images(
    tmp_path: Path, packed: Packed, members: dict[str, bytes], rows: str, name: str, divisor: int
) -> None:
    packed(tmp_path / cifar100.ARCHIVE, members)
    data = cifar100.prepare(cifar100.parse(tmp_path), config(rows=rows), rngs(), "official")
    grey = data.images[:, 1, 3, 3].astype(int)
    assert sorted(grey[data.train[0]]) == sorted(GREYS["train"])
    assert sorted(grey[data.test[0]]) == sorted(GREYS["test"])
    np.testing.assert_array_equal(data.label, grey // divisor)
    assert (data.label_name, list(data.partitions), len(data.classes)) == (name, [name], 100 // divisor)
    assert data.classes[3] == f"{rows[0]}3"


def test_too_few_classes_and_missing_labels_are_named(
    tmp_path: Path,
    packed: Packed,
    members: dict[str, bytes],
    cifar_batch: Callable[..., bytes],
    python2: Callable[[Any], bytes],
) -> None:
    short = {"fine_label_names": ["f"] * 100, "coarse_label_names": ["c"] * 19}
    packed(tmp_path / cifar100.ARCHIVE, members | {f"{cifar100.FOLDER}/{cifar100.META}": python2(short)})
    with pytest.raises(ValueError, match="meta: expected 20 coarse classes, found 19"):
        cifar100.parse(tmp_path)
    packed(tmp_path / cifar100.ARCHIVE, members | {f"{cifar100.FOLDER}/test": cifar_batch([1], fine_labels=[1])})
    with pytest.raises(ValueError, match="test: expected a list of 1 coarse_labels, found a NoneType"):
        cifar100.parse(tmp_path)


def test_without_rows_there_is_nothing_to_prepare() -> None:
    with pytest.raises(ValueError, match="cifar100 is made of images"):
        cifar100.prepare(None, config(), rngs(), "official")


def test_the_official_archive(archive: Callable[[str, str], Path]) -> None:
    found = cifar100.parse(archive("cifar100", cifar100.ARCHIVE))
    for part, count in ((~found.test, 50_000), (found.test, 10_000)):
        np.testing.assert_array_equal(np.bincount(found.labels["fine"][part]), [count // 100] * 100)
        np.testing.assert_array_equal(np.bincount(found.labels["coarse"][part]), [count // 20] * 20)
    # Every class belongs to one superclass.
    pairs = set(zip(found.labels["fine"].tolist(), found.labels["coarse"].tolist(), strict=True))
    assert len(pairs) == 100
