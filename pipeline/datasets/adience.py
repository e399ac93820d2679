"""Adience: faces from photographs on Flickr, with one of eight age groups and a gender.

Five tables, ``fold_0_data.txt`` to ``fold_4_data.txt``, name 19,370 faces; the images lie in ``aligned.tar.gz`` as
``aligned/<user>/landmark_aligned_face.<face>.<photograph>``. The label is the age group; gender is a partition. Faces
of unknown age, then of unknown gender, are left out and counted. Some faces have an age or a group that is not one of
the eight. :data:`STRAYS` assigns them to a group as the authors' program does.

``split: folds`` trains on the folds 0 to 3 and tests on fold 4; no person is in both. It gives 14,007 and 3,445 faces,
as published. ``split: random`` follows the paper's text: 80 % at random, rounded down.

The files are available on request (:data:`HOME`), so they are never downloaded. Their checksums are unknown, so their
content is checked instead.

Source: Eidinger, Enbar and Hassner (2014); preprocessing of Nanda et al. (2021), appendix A, and their program.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from fairness_audits.validation import Share
from fairness_audits.values import Generators, ImageDataset, Provenance
from pipeline.raw_data import image_files, image_sets
from pipeline.raw_data.image_files import ImageFiles
from pipeline.raw_data.image_sets import Labelled
from pipeline.raw_data.raw_table import anything, category, parsed
from pipeline.raw_data.source import Source

ARCHIVE = "aligned.tar.gz"
FOLDS = tuple(f"fold_{number}_data.txt" for number in range(5))
TEST_FOLD = 4
COLUMNS = ("user_id", "original_image", "face_id", "age", "gender")
"""The columns read from a tab-separated table. The other columns give the position of the face in the photograph."""

GROUPS = ("0-2", "4-6", "8-13", "15-20", "25-32", "38-43", "48-53", "60+")
TEXTS = ("(0, 2)", "(4, 6)", "(8, 12)", "(15, 20)", "(25, 32)", "(38, 43)", "(48, 53)", "(60, 100)")
GROUP_OF = {text: number for number, text in enumerate(TEXTS)}
STRAYS = {
    "2": 0, "3": 1, "(8, 23)": 2, "13": 2, "22": 3, "(27, 32)": 4, "23": 4, "29": 4, "34": 4, "35": 4, "(38, 42)": 5,
    "(38, 48)": 5, "36": 5, "42": 5, "45": 5, "46": 6, "55": 6, "57": 7, "58": 7,
}  # fmt: skip
GENDERS = ("male", "female")
UNKNOWN = -1
CODES = {
    "age": GROUP_OF | STRAYS | dict.fromkeys(("None", ""), UNKNOWN),
    "gender": {"m": 0, "f": 1, **dict.fromkeys(("u", ""), UNKNOWN)},
}

AT_LEAST = (4_272, 3_547, 3_714, 3_280, 3_703)
"""Published number of near-frontal faces (within 45 degrees) in each table: a lower bound on its rows."""
USED = 14_007 + 3_445
"""Published number of faces of known age and gender."""


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``split``: ``folds`` or ``random``, which trains on the share ``train_fraction``."""

    split: Literal["folds", "random"]
    train_fraction: Share


def parse(folder: Path) -> Labelled:
    """Return the faces of known age and gender in the order of the tables. Images are read lazily.

    Raises ValueError with the file, row and column of an unexpected value.
    """
    faces = pd.concat([_faces(folder / name).assign(fold=fold) for fold, name in enumerate(FOLDS)])
    aged = faces[faces["age"] != UNKNOWN]
    used = aged[aged["gender"] != UNKNOWN]
    return Labelled(
        ImageFiles(folder / ARCHIVE, tuple(used["name"])),
        used["age"].to_numpy(),
        "age",
        GROUPS,
        {"gender": used["gender"].to_numpy()},
        {"gender": GENDERS},
        held_out=(used["fold"] == TEST_FOLD).to_numpy(),
        dropped=image_sets.counted({"age unknown": len(faces) - len(aged), "gender unknown": len(aged) - len(used)}),
    )


def _faces(path: Path) -> pd.DataFrame:
    """Return the name in the archive, the age group and the gender of every face in a table."""
    readers = {name: category(tuple(CODES[name])) if name in CODES else anything for name in COLUMNS}
    rows = parsed(path, readers, delimiter="\t")
    name = "aligned/" + rows["user_id"] + "/landmark_aligned_face." + rows["face_id"] + "." + rows["original_image"]
    return pd.DataFrame({"name": name, **{column: rows[column].map(codes) for column, codes in CODES.items()}})


def check_table(path: Path, fold: int) -> None:
    """Raise ValueError unless the file at ``path`` has the published properties of a fold's table."""
    found = len(_faces(path))
    if found < AT_LEAST[fold]:
        raise ValueError(f"expected at least {AT_LEAST[fold]:,} faces in fold {fold}, found {found:,}")


def check_archive(path: Path) -> None:
    """Raise ValueError unless the archive at ``path`` is complete and holds at least the published number of faces."""
    found = sum("/landmark_aligned_face." in name for name in image_files.names(path))
    if found < USED:
        raise ValueError(f"expected at least {USED:,} images aligned/*/landmark_aligned_face.*, found {found:,}")


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Provenance) -> ImageDataset:
    """Return the images with age groups as classes, gender as a partition, and a split by folds or at random."""
    folds = config.split == "folds"
    split = rows.published_split() if folds else rows.random_split(config.train_fraction, rngs[0])
    return image_sets.assembled("adience", origin, rows, split, config, rngs[0])


LICENCE = "for research, after registration"
HOME = "https://talhassner.github.io/home/projects/Adience/Adience-data.html"
SOURCES = (
    *(
        Source(name, (), None, 10_000_000, LICENCE, HOME, functools.partial(check_table, fold=fold))
        for fold, name in enumerate(FOLDS)
    ),
    Source(ARCHIVE, (), None, 10_000_000_000, LICENCE, HOME, check_archive),
)
