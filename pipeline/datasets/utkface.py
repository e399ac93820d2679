"""UTKFace: 23,708 faces, aligned and cropped to 200 x 200 pixels, whose file names give age, gender and race.

A name is ``age_gender_race_date.jpg.chip.jpg``. The label is the age in five bins: 0-14, 15-24, 25-39, 40-59, 60 and
over. Gender and race are partitions. Two kinds of names are exceptions, all listed in ``unreadable``: three names have
no race, which is then unknown (the authors' program gives such a face the gender and race of the previous face); a face
without age and gender in its name is left out. A blank or a missing dot before ``jpg`` is accepted.

The names are sorted and shuffled, and the first 80 % are the training set: 18,966 and 4,742 of 23,708. The authors'
order is unknown. With ``fold`` the test set is one fifth of the same order, and the training set the rest.

A repackaged copy with 23,707 faces has a recorded checksum. The checksum of the official archive is unknown, so its
content is checked (:func:`check`).

Source: Zhang et al. (2017); bins and split of Nanda et al. (2021), appendix A, and their program.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Share, one_of
from fairness_audits.values import Generators, ImageDataset, Provenance
from pipeline.raw_data import image_files, image_sets
from pipeline.raw_data.image_files import ImageFiles
from pipeline.raw_data.image_sets import Labelled
from pipeline.raw_data.source import Source

ARCHIVE = "UTKFace.tar.gz"
COPY = "utkface.tar"
FACES = 23_708
"""Published number of faces. A copy in circulation lacks one."""

NAME = re.compile(r"(\d{1,3})_([01])(?:_([0-4]))?_\d{8,} ?\.?jpg\.chip\.jpg")
UNKNOWN = -1
FOLDS = 5
FIRST_AGES = (15, 25, 40, 60)
"""The first age of every bin except the youngest."""
AGES = ("0-14", "15-24", "25-39", "40-59", "60+")
LEVELS = {"gender": ("male", "female"), "race": ("White", "Black", "Asian", "Indian", "Others")}


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``train_fraction``: share of faces in the training set, rounded down. ``fold``: replaces it, see the module."""

    train_fraction: Share
    fold: Annotated[int, one_of(range(1, FOLDS + 1))] | None


def parse(folder: Path, filename: str = ARCHIVE) -> Labelled:
    """Return the faces in the archive ``filename``, sorted by name. Images are read lazily."""
    return _read(folder / filename)


def check(path: Path) -> None:
    """Raise InvalidInput unless the archive at ``path`` holds the published number of faces, or one fewer."""
    found = len(_read(path).label)
    if not FACES - 1 <= found <= FACES:
        problem = f"expected {FACES:,} faces, or one fewer, with age and gender in their names, found {found:,}"
        raise InvalidInput(problem, source=path)


def _read(path: Path) -> Labelled:
    kept, codes, odd, left_out = [], [], [], []
    for name in image_files.names(path):
        match = NAME.fullmatch(PurePosixPath(name).name)
        if match is None:
            left_out.append(f"{name}: expected age_gender_race_date.jpg.chip.jpg")
            continue
        if match[3] is None:
            odd.append(f"{name}: no race in the name, kept as unknown")
        kept.append(name)
        codes.append([int(match[1]), int(match[2]), int(match[3] or UNKNOWN)])
    age, gender, race = np.array(codes, dtype=np.int64).reshape(-1, 3).T
    return Labelled(
        ImageFiles(path, tuple(kept)),
        np.digitize(age, FIRST_AGES).astype(np.int64),
        "age",
        AGES,
        {"gender": gender, "race": race},
        LEVELS,
        dropped=image_sets.counted({"files without age and gender in the name": len(left_out)}),
        unreadable=(*odd, *left_out),
    )


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Provenance) -> ImageDataset:
    """Return the images with age bins as classes, gender and race as partitions, and a random split or a fold.

    The order is that of the generator, so all folds divide the faces alike.
    """
    if config.fold is None:
        split = rows.random_split(config.train_fraction, rngs[0])
    else:
        parts = np.array_split(rngs[0].permutation(len(rows.label)), FOLDS)
        test = parts.pop(config.fold - 1)
        split = np.concatenate(parts), test
    return image_sets.assembled("utkface", origin, rows, split, config, rngs[0])


LICENCE = "non-commercial research only"
HOME = "https://susanqq.github.io/UTKFace/"
SOURCES = (Source(ARCHIVE, (), None, 300_000_000, LICENCE, HOME, check),)
SHA256 = "4601aa9c45bc4bff230460e0a2582dc4dacbe489e751da9f0447895861fb3e35"
ALTERNATIVES = (Source(COPY, (), SHA256, 138_209_280, LICENCE, HOME),)
