"""The batches of the CIFAR archives: pickled dictionaries of an array of images and lists of labels.

A pickle can run any program when it is loaded. These are read by a loader that builds arrays, lists, dictionaries,
numbers and texts, and refuses everything else, so that even a wrong file could do no harm.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.datasets import image_archives
from pipeline.types import Array

SIDE = 32
CHANNELS = 3

ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
"""All that a batch may name: how an array is put together. The first has moved within NumPy since."""


def read(path: Path, folder: str, names: Sequence[str]) -> dict[str, Mapping[bytes, Any]]:
    """The pickled dictionaries ``folder/name`` in the archive at ``path``, by name.

    Raises ValueError for a damaged archive, a missing member, and a pickle that holds more than data.
    """
    members = image_archives.contents(path, [f"{folder}/{name}" for name in names])
    batches: dict[str, Mapping[bytes, Any]] = {}
    for name in names:
        try:
            # The batches were pickled by Python 2: their texts are bytes.
            batch = _Loader(io.BytesIO(members[f"{folder}/{name}"]), encoding="bytes").load()
        except Exception as error:
            raise ValueError(f"{path}, {name}: {error}; delete the archive and fetch it again") from error
        if not isinstance(batch, dict):
            raise ValueError(f"{path}, {name}: expected a dictionary, found a {type(batch).__name__}")
        batches[name] = batch
    return batches


def images(batch: Mapping[bytes, Any], name: str) -> Array:
    """A batch's images (n, 3, 32, 32) uint8."""
    data = batch.get(b"data")
    wide = CHANNELS * SIDE * SIDE
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != wide:
        shape = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else f"a {type(data).__name__}"
        raise ValueError(f"{name}: expected images as uint8 (n, {wide}), found {shape}")
    return data.reshape(-1, CHANNELS, SIDE, SIDE)


def labels(batch: Mapping[bytes, Any], key: bytes, classes: int, name: str) -> Array:
    """A batch's labels under ``key``, (n,) int64 in 0 to ``classes`` - 1, one for each of its images."""
    found = batch.get(key)
    n = len(images(batch, name))
    if not isinstance(found, list) or len(found) != n:
        amount = f"{len(found)}" if isinstance(found, list) else f"a {type(found).__name__}"
        raise ValueError(f"{name}: expected a list of {n} {key.decode()}, found {amount}")
    codes = np.array(found, dtype=np.int64)
    if n and not 0 <= codes.min() <= codes.max() < classes:
        raise ValueError(f"{name}: expected {key.decode()} of 0 to {classes - 1}, found {codes.min()} to {codes.max()}")
    return codes


def class_names(meta: Mapping[bytes, Any], key: bytes, name: str) -> tuple[str, ...]:
    """The names of the classes, in the order of their numbers."""
    found = meta.get(key)
    if not isinstance(found, list) or not all(isinstance(text, bytes) for text in found):
        raise ValueError(f"{name}: expected a list of names under {key.decode()}, found a {type(found).__name__}")
    return tuple(text.decode() for text in found)


class _Loader(pickle.Unpickler):
    """Builds data and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return ALLOWED[module.replace("numpy._core", "numpy.core"), name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"names {module}.{name}, which is not data, so it is not the published file"
            ) from None
