"""Settings and preparation shared by the image data sets.

An image data set's module has the same names as any other (:mod:`pipeline.datasets`); its ``parse`` returns
:class:`Labelled`. There is one split, made with the first generator, whatever the number of ``repetitions``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.sampling import stratified_order
from fairness_audits.validation import Checked, Count, Positive
from fairness_audits.values import Array, ImageDataset, Provenance
from pipeline.raw_data.image_files import Pictures
from pipeline.raw_data.tabular import Split, random_split

UNREADABLE = "images that cannot be decoded"


@dataclass(frozen=True)
class ImageConfig(Checked, of="dataset"):
    """``image_size``: pixels a side. ``train_points``, ``test_points``: number of images, None for all.

    ``mean`` and ``std``: of each channel, for normalising pixels in [0, 1].
    """

    image_size: Count
    train_points: Count | None
    test_points: Count | None
    mean: Sequence[float]
    std: Sequence[Positive]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect_equal_lengths("mean", "std")


@dataclass(frozen=True)
class Labelled:
    """n images with labels (n,) and further partitions, (n,) each, -1 if unknown, with the names of the codes.

    ``held_out`` (n,) marks the test images of a published split. ``dropped`` counts images that were left out, by
    reason; ``unreadable`` lists those that could not be read.
    """

    pictures: Pictures
    label: Array
    label_name: str
    classes: tuple[str, ...]
    partitions: Mapping[str, Array] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    held_out: Array | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()

    def published_split(self) -> Split:
        """Return the published training and test images."""
        assert self.held_out is not None
        return np.flatnonzero(~self.held_out), np.flatnonzero(self.held_out)

    def random_split(self, train_fraction: float, rng: np.random.Generator) -> Split:
        """Return a random split of the images."""
        return random_split(len(self.label), train_fraction, rng)


def counted(reasons: Mapping[str, int]) -> dict[str, int]:
    """Return the reasons for which images were left out."""
    return {reason: count for reason, count in reasons.items() if count}


def assembled(
    name: str,
    origin: Provenance,
    labelled: Labelled,
    split: Split,
    config: ImageConfig,
    rng: np.random.Generator,
    *,
    maximum: float = 255.0,
) -> ImageDataset:
    """Return the data set of ``split``, or the number of rows in ``config``, each part in stratified random order.

    Only these images are decoded. Unreadable images are left out, counted and listed. Raises ValueError if there are
    fewer images than requested, if none is readable, or if the numbers of channels and means differ.
    """
    parts = [
        _first(rows[stratified_order(labelled.label[rows], rng)], points, key)
        for rows, points, key in zip(
            split, (config.train_points, config.test_points), ("train_points", "test_points"), strict=True
        )
    ]
    kept = np.concatenate(parts)
    found = labelled.pictures.decoded(kept, config.image_size)
    images = found.images
    if not found.readable.all():
        images, kept = images[found.readable], kept[found.readable]
    n_train = int(found.readable[: len(parts[0])].sum())
    if not 0 < n_train < len(kept):
        raise InvalidInput(
            f"{name}: {n_train} images to train on and {len(kept) - n_train} to test can be read, expected some of "
            f"each; unreadable: {', '.join(found.faults[:3]) or 'none'}",
            source=name,
        )
    if images.shape[1] != len(config.mean):
        raise InvalidInput(
            f"dataset.mean and dataset.std have {len(config.mean)} numbers, but the images of {name} have "
            f"{images.shape[1]} channels",
            source=name,
            option="mean",
            remedy="Give one number for each channel",
        )
    partitions = {labelled.label_name: labelled.label, **labelled.partitions}
    return ImageDataset(
        name=name,
        origin=origin,
        images=images,
        maximum=maximum,
        mean=tuple(float(value) for value in config.mean),
        std=tuple(float(value) for value in config.std),
        label=labelled.label[kept],
        label_name=labelled.label_name,
        classes=labelled.classes,
        partitions={key: codes[kept] for key, codes in partitions.items()},
        levels={labelled.label_name: labelled.classes, **labelled.levels},
        train=np.arange(n_train)[None],
        test=np.arange(n_train, len(kept))[None],
        dropped=counted({**labelled.dropped, UNREADABLE: int((~found.readable).sum())}),
        unreadable=(*labelled.unreadable, *found.faults),
    )


def _first(rows: Array, points: int | None, key: str) -> Array:
    if points is None:
        return rows
    if points > len(rows):
        problem = f"dataset.{key} asks for {points:,} images, but there are {len(rows):,}"
        raise InvalidInput(problem, option=key, remedy=f"Give at most {len(rows):,}, or null for all")
    return rows[:points]
