"""CIFAR-10: 60,000 photographs of 32 x 32 pixels in colour, of ten classes; 50,000 to train on, 10,000 to test.

The official archive holds six pickled batches, which are read where they are (:mod:`pipeline.datasets.cifar_batches`).
In its place an archive of the same images as JPEG files may stand, ``{train,test}/<class>/<number>.jpg``: a lossy copy,
whose origin is ``jpeg``, since distances measured on it are not those of the published images. Partition: the class.

Source: Krizhevsky (2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from pipeline.datasets import cifar_batches, image_archives, image_sets
from pipeline.datasets.download import Source
from pipeline.datasets.image_archives import Held, Pictures, TarImages
from pipeline.types import Array, ImageDataset, Origin

ARCHIVE = "cifar-10-python.tar.gz"
FOLDER = "cifar-10-batches-py"
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST = "test_batch"
META = "batches.meta"
COPY = "cifar10-jpeg.tar"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
SOURCES = (
    Source(
        filename=ARCHIVE,
        urls=("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",),
        sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        size=170_498_071,
        licence="none stated; cite Krizhevsky (2009)",
        home=HOME,
    ),
)
ALTERNATIVES: tuple[tuple[Origin, Source], ...] = (
    (
        "jpeg",
        Source(
            filename=COPY,
            urls=(),
            sha256="1ad627445b8629ff82b88551943f1ac202800b46e74b28ce7626d12a2b8d051d",
            size=92_682_240,
            licence="as the official archive, of whose images it is a lossy copy",
            home=HOME,
        ),
    ),
)
TWIN = None
OPTIONAL = True


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """Nothing beyond what every image dataset has."""


@dataclass(frozen=True)
class Photographs:
    """n images, their classes (n,) and which of them are to test (n,)."""

    pictures: Pictures
    label: Array
    test: Array
    unreadable: tuple[str, ...] = ()


def parse(folder: Path, filename: str = ARCHIVE) -> Photographs:
    """The archive ``filename`` in ``folder``; ValueError naming what is damaged, missing or odd in it."""
    return _copied(folder / filename) if filename == COPY else _official(folder / filename)


def _official(path: Path) -> Photographs:
    batches = cifar_batches.read(path, FOLDER, (*TRAIN, TEST, META))
    classes = cifar_batches.class_names(batches[META], b"label_names", META)
    if classes != CLASSES:
        raise ValueError(f"{path}, {META}: expected the classes {', '.join(CLASSES)}, found {', '.join(classes)}")
    images = [cifar_batches.images(batches[name], name) for name in (*TRAIN, TEST)]
    labels = [cifar_batches.labels(batches[name], b"labels", len(CLASSES), name) for name in (*TRAIN, TEST)]
    test = np.repeat([False] * len(TRAIN) + [True], [len(part) for part in labels])
    return Photographs(Held(np.concatenate(images)), np.concatenate(labels), test)


def _copied(path: Path) -> Photographs:
    """The JPEG files by their folders; a name that fits none is listed."""
    names, labels, test, odd = [], [], [], []
    for name in image_archives.names(path):
        part, label, *rest = (*PurePosixPath(name).parts[-3:], "", "")
        if part in ("train", "test") and label in CLASSES and rest[0].endswith(".jpg"):
            names.append(name)
            labels.append(CLASSES.index(label))
            test.append(part == "test")
        else:
            odd.append(f"{name}: expected train or test, a class, and a .jpg file")
    return Photographs(
        TarImages(path, tuple(names)), np.array(labels, dtype=np.int64), np.array(test, dtype=bool), tuple(odd)
    )


def prepare(
    rows: Photographs | None, config: Config, rngs: Sequence[np.random.Generator], origin: Origin
) -> ImageDataset:
    """The published split, or a part of it stratified by class."""
    if rows is None:
        raise ValueError("cifar10 is made of images: parse an archive first")
    odd = {"files with an odd name": len(rows.unreadable)} if rows.unreadable else {}
    labelled = image_sets.Labelled(rows.pictures, rows.label, "class", CLASSES, dropped=odd, unreadable=rows.unreadable)
    split = np.flatnonzero(~rows.test), np.flatnonzero(rows.test)
    return image_sets.assembled("cifar10", origin, labelled, split, config, rngs[0])
