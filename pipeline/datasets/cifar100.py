"""CIFAR-100: 60,000 photographs of 32 x 32 pixels in colour; 50,000 to train on, 10,000 to test.

Each has one of 100 classes and one of the 20 superclasses that these belong to; ``rows`` says which of them is the
label, and the partition. The official archive holds two pickled dictionaries, which are read where they are
(:mod:`pipeline.datasets.cifar_batches`).

Source: Krizhevsky (2009).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from pipeline.datasets import cifar_batches, image_sets
from pipeline.datasets.download import Source
from pipeline.datasets.image_archives import Held, Pictures
from pipeline.fields import one_of
from pipeline.types import Array, ImageDataset, Origin

ARCHIVE = "cifar-100-python.tar.gz"
FOLDER = "cifar-100-python"
PARTS = ("train", "test")
META = "meta"
KINDS = {"fine": 100, "coarse": 20}
"""How many classes there are of each kind."""
LABEL_NAMES = {"fine": "class", "coarse": "superclass"}

SOURCES = (
    Source(
        filename=ARCHIVE,
        urls=("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",),
        sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        size=169_001_437,
        licence="none stated; cite Krizhevsky (2009)",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
)
TWIN = None
OPTIONAL = True


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``rows``: the labels, ``fine`` (100 classes) or ``coarse`` (20 superclasses)."""

    rows: Annotated[str, one_of(KINDS)]


@dataclass(frozen=True)
class Photographs:
    """n images, their labels (n,) of either kind, the names of the classes, and which images are to test (n,)."""

    pictures: Pictures
    labels: Mapping[str, Array]
    classes: Mapping[str, tuple[str, ...]]
    test: Array


def parse(folder: Path) -> Photographs:
    """The archive in ``folder``; ValueError naming what is damaged, missing or odd in it."""
    path = folder / ARCHIVE
    batches = cifar_batches.read(path, FOLDER, (*PARTS, META))
    classes = {kind: cifar_batches.class_names(batches[META], f"{kind}_label_names".encode(), META) for kind in KINDS}
    for kind, count in KINDS.items():
        if len(classes[kind]) != count:
            raise ValueError(f"{path}, {META}: expected {count} {kind} classes, found {len(classes[kind])}")
    labels = {
        kind: np.concatenate(
            [cifar_batches.labels(batches[part], f"{kind}_labels".encode(), KINDS[kind], part) for part in PARTS]
        )
        for kind in KINDS
    }
    images = [cifar_batches.images(batches[part], part) for part in PARTS]
    test = np.repeat([False, True], [len(part) for part in images])
    return Photographs(Held(np.concatenate(images)), labels, classes, test)


def prepare(
    rows: Photographs | None, config: Config, rngs: Sequence[np.random.Generator], origin: Origin
) -> ImageDataset:
    """The published split, or a part of it stratified by the chosen label."""
    if rows is None:
        raise ValueError("cifar100 is made of images: parse the archive first")
    labelled = image_sets.Labelled(
        rows.pictures, rows.labels[config.rows], LABEL_NAMES[config.rows], rows.classes[config.rows]
    )
    split = np.flatnonzero(~rows.test), np.flatnonzero(rows.test)
    return image_sets.assembled("cifar100", origin, labelled, split, config, rngs[0])
