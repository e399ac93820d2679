"""The loader of pickled batches builds data and refuses everything else."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import cifar_batches

Packed = Callable[[Path, Mapping[str, bytes]], Path]
Python2 = Callable[[Any], bytes]


def read(path: Path) -> Mapping[bytes, Any]:
    return cifar_batches.read(path, "f", ["b"])["b"]


def test_a_batch_of_python_2_is_read(tmp_path: Path, packed: Packed, python2: Python2) -> None:
    data = np.arange(2 * 3_072, dtype=np.uint8).reshape(2, -1)
    content = python2({"data": data, "labels": [3, 1], "names": ["cat", "dog"], "filenames": ["a.png", "b.png"]})
    assert b"numpy.core.multiarray" in content
    batch = read(packed(tmp_path / "a.tar.gz", {"f/b": content}))
    images = cifar_batches.images(batch, "b")
    # Red, green and blue one after the other, each row by row.
    np.testing.assert_array_equal(images[1, 2, 5], data[1, 2 * 1_024 + 5 * 32 :][:32])
    np.testing.assert_array_equal(cifar_batches.labels(batch, b"labels", 10, "b"), [3, 1])
    assert cifar_batches.class_names(batch, b"names", "b") == ("cat", "dog")


class Harm:
    """Pickled, it asks the loader to create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_would_run_something_is_refused_before_it_does(
    tmp_path: Path, packed: Packed, protocol: int
) -> None:
    evidence = tmp_path / "evidence"
    harm = pickle.dumps({b"data": Harm(evidence)}, protocol=protocol)
    path = packed(tmp_path / "a.tar.gz", {"f/b": harm})
    with pytest.raises(ValueError, match=r"a\.tar\.gz, b: names \S+, which is not data"):
        read(path)
    assert not evidence.exists()
    pickle.loads(harm)
    assert evidence.exists()


@pytest.mark.parametrize(("content", "message"), [(b"", "Ran out of input"), (b"\x80\x02}", "."), (b"text", ".")])
def test_a_damaged_pickle_is_named(tmp_path: Path, packed: Packed, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=rf"a\.tar, b: {message}.*; delete the archive and fetch it again"):
        read(packed(tmp_path / "a.tar", {"f/b": content}))


def test_a_missing_batch_is_named(tmp_path: Path, packed: Packed, python2: Python2) -> None:
    path = packed(tmp_path / "a.tar", {"f/b": python2({})})
    with pytest.raises(ValueError, match=r"a\.tar lacks f/c: delete it"):
        cifar_batches.read(path, "f", ["b", "c"])
    with pytest.raises(ValueError, match="expected a dictionary, found a list"):
        read(packed(tmp_path / "a.tar", {"f/b": python2([1])}))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (np.zeros((2, 3_072)), r"float64 \(2, 3072\)"),
        (np.zeros((2, 3_000), dtype=np.uint8), r"uint8 \(2, 3000\)"),
        ([0, 1], "a list"),
        (None, "a NoneType"),
    ],
)
def test_images_of_another_shape_are_refused(data: Any, found: str) -> None:
    with pytest.raises(ValueError, match=rf"b: expected images as uint8 \(n, 3072\), found {found}"):
        cifar_batches.images({b"data": data}, "b")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1], "expected a list of 2 labels, found 1"),
        (None, "found a NoneType"),
        ([0, 10], "of 0 to 9, found 0 to 10"),
        ([-1, 3], "found -1 to 3"),
    ],
)
def test_labels_must_be_one_an_image_and_of_the_classes(labels: Any, message: str) -> None:
    batch = {b"data": np.zeros((2, 3_072), dtype=np.uint8), b"labels": labels}
    with pytest.raises(ValueError, match=message):
        cifar_batches.labels(batch, b"labels", 10, "b")
