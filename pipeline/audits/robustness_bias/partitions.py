"""The groups whose robustness is compared: the levels of the partitions of a dataset.

The elements of a partition are its levels; what P is compared with are the points of the partition's other levels.
Points of unknown level are in neither. Two levels make two elements but one comparison: each is the other's
complement, so their signs of sigma are opposite.

Nanda et al. (2021) count 151 elements in their five datasets. One for each level, of which are 10 classes of CIFAR-10,
100 and 20 of CIFAR-100, 8 classes and 2 genders of Adience, 5 classes, 2 genders and 5 races of UTKFace, is 152; one
for each comparison is 150.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.types import Array, ImageDataset


@dataclass(frozen=True)
class Partition:
    """``codes`` (n,) index ``levels``, -1 where the level is unknown. ``name`` says by what is parted."""

    name: str
    levels: tuple[str, ...]
    codes: Array

    def __post_init__(self) -> None:
        if len(self.codes) and not -1 <= self.codes.min() <= self.codes.max() < len(self.levels):
            raise ValueError(
                f"partition {self.name!r} has {len(self.levels)} levels, but codes from {self.codes.min()} to "
                f"{self.codes.max()}: expected -1 (unknown) to {len(self.levels) - 1}"
            )

    def __len__(self) -> int:
        """The number of elements."""
        return len(self.levels)

    def element(self, level: int) -> tuple[Array, Array]:
        """The points of this level, and those of the others, (n,) bool each."""
        inside = self.codes == level
        return inside, (self.codes >= 0) & ~inside

    @property
    def comparisons(self) -> Array:
        """A number for each level, the same for two levels that are each other's complement: (L,)."""
        return np.zeros(2, dtype=np.int64) if len(self) == 2 else np.arange(len(self))


def partitions_of(dataset: ImageDataset, rows: Array) -> tuple[Partition, ...]:
    """The partitions of a dataset, restricted to these rows; the classes come first."""
    names = sorted(dataset.partitions, key=lambda name: name != dataset.label_name)
    return tuple(Partition(name, dataset.levels[name], dataset.partitions[name][rows]) for name in names)


def elements(levels: Mapping[str, Sequence[str]]) -> int:
    """How many elements partitions with these levels have: one for each level."""
    return sum(len(names) for names in levels.values())


def comparisons(levels: Mapping[str, Sequence[str]]) -> int:
    """How many elements there are to compare with the others: a partition of two levels counts once."""
    return sum(1 if len(names) == 2 else len(names) for names in levels.values())
