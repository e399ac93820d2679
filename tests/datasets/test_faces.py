"""UTKFace and Adience: what names and tables say of a face, what is left out and listed, bins, groups and splits.

Nobody here has Adience's files: its tables and archives are small ones of the official format.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairness_audits.values import ImageDataset
from pipeline.datasets import adience, utkface
from pipeline.raw_data.image_sets import Labelled
from tests.datasets.builders import prepared
from tests.errors import invalid
from tests.files import jpeg

Archive = Callable[..., Path]
DATE = "20170116174525125"
HEADER = [*adience.COLUMNS, "x", "y", "dx", "dy", "tilt_ang", "fiducial_yaw_angle", "fiducial_score"]


def pictured(name: str, rows: Labelled, **changes: Any) -> ImageDataset:
    """The dataset of all images, unless said otherwise."""
    data: ImageDataset = prepared(name, rows, **{"train_points": None, "test_points": None} | changes)
    return data


@pytest.fixture
def named(archive: Archive) -> Callable[..., Labelled]:
    """UTKFace of these names, whose greys are 10, 20, ... in this order."""

    def parsed(*names: str) -> Labelled:
        files = {f"UTKFace/{name}": jpeg(10 * (i + 1)) for i, name in enumerate(names)}
        return utkface.parse(archive(files, utkface.COPY).parent, utkface.COPY)

    return parsed


def test_age_gender_and_race_are_those_of_the_name(named: Callable[..., Labelled]) -> None:
    ages = (1, 14, 15, 24, 25, 39, 40, 59, 60, 116)
    faces = named(*[f"{age}_{i % 2}_{i % 5}_{DATE}.jpg.chip.jpg" for i, age in enumerate(ages)])
    data = pictured("utkface", faces, image_size=40)
    face = data.images[:, 0, 0, 0].astype(int) // 10 - 1
    assert sorted(face) == list(range(10))
    np.testing.assert_array_equal(data.label, face // 2)
    np.testing.assert_array_equal(data.partitions["gender"], face % 2)
    np.testing.assert_array_equal(data.partitions["race"], face % 5)
    assert data.classes == ("0-14", "15-24", "25-39", "40-59", "60+")
    assert data.levels["gender"] == ("male", "female")
    assert data.levels["race"] == ("White", "Black", "Asian", "Indian", "Others")
    assert (data.label_name, list(data.partitions)) == ("age", ["age", "gender", "race"])
    assert (data.train.shape, data.test.shape) == ((1, 8), (1, 2))
    assert (data.dropped, data.unreadable) == ({}, ())


def test_every_face_is_in_the_test_set_of_one_fold_and_trains_the_others(named: Callable[..., Labelled]) -> None:
    faces = named(*[f"{age}_0_0_{DATE}.jpg.chip.jpg" for age in range(1, 24)])
    tested: list[int] = []
    for fold in range(1, utkface.FOLDS + 1):
        data = pictured("utkface", faces, image_size=40, fold=fold)
        face = data.images[:, 0, 0, 0].astype(int) // 10 - 1
        train, test = (face[rows[0]].tolist() for rows in (data.train, data.test))
        assert sorted(train + test) == list(range(23))
        assert len(test) in {4, 5}
        tested += test
    assert sorted(tested) == list(range(23))
    with invalid(option="fold"):
        pictured("utkface", faces, image_size=40, fold=utkface.FOLDS + 1)


@pytest.mark.parametrize(
    ("name", "race"),
    [
        (f"61_0_1_{DATE} .jpg.chip.jpg", 1),
        (f"61_0_1_{DATE}jpg.chip.jpg", 1),
        ("61_0_1_2017011022340900.jpg.chip.jpg", 1),
        ("61_0_1_201701161846515488.jpg.chip.jpg", 1),
        (f"61_0_{DATE}.jpg.chip.jpg", -1),
        *(
            (name, None)
            for name in (
                f"x_0_0_{DATE}.jpg.chip.jpg", f"61_2_0_{DATE}.jpg.chip.jpg", f"61_0_5_{DATE}.jpg.chip.jpg",
                f"61_{DATE}.jpg.chip.jpg", "61_0_0.jpg", "._61_0_0_20170101000000000.jpg.chip.jpg", "readme.txt",
            )
        ),
    ],
)  # fmt: skip
def test_an_odd_name_that_tells_enough_is_kept_and_another_is_left_out_counted_and_listed(
    named: Callable[..., Labelled], name: str, race: int | None
) -> None:
    faces = named(name, *[f"{age}_1_3_{DATE}.jpg.chip.jpg" for age in (20, 30, 40, 50)])
    data = pictured("utkface", faces, image_size=40)
    oldest = data.label == 4
    assert (data.partitions["race"][~oldest] == 3).all()
    assert (data.partitions["race"][oldest].tolist(), data.partitions["gender"][oldest].tolist()) == (
        ([], []) if race is None else ([race], [0])
    )
    assert data.dropped == ({"files without age and gender in the name": 1} if race is None else {})
    said = {None: "expected age_gender_race_date.jpg.chip.jpg", -1: "no race in the name, kept as unknown"}
    assert data.unreadable == ((f"UTKFace/{name}: {said[race]}",) if race in said else ())


def test_the_check_counts_the_faces(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive({f"UTKFace/{age}_1_3_{DATE}.jpg.chip.jpg": b"" for age in range(20)}, utkface.ARCHIVE)
    (source,), (copy,) = utkface.SOURCES, utkface.ALTERNATIVES
    assert (source.sha256, source.check, copy.filename) == (None, utkface.check, utkface.COPY)
    with invalid(source=path.name):
        utkface.check(path)
    for published in (20, 21):
        monkeypatch.setattr(utkface, "FACES", published)
        utkface.check(path)
    monkeypatch.setattr(utkface, "FACES", 19)
    with invalid(source=path.name):
        utkface.check(path)


def test_the_copy_at_hand(official: Callable[..., Path]) -> None:
    faces = utkface.parse(official("utkface", utkface.COPY), utkface.COPY)
    assert (len(faces.label), faces.dropped) == (23_707, {})
    assert [name.split(":")[0].split("/")[1].split(".")[0] for name in faces.unreadable] == [
        "39_1_20170116174525125",
        "61_1_20170109142408075",
        "61_1_20170109150557335",
    ]
    # All but the three give a race.
    np.testing.assert_array_equal(np.bincount(faces.partitions["race"] + 1), [3, 10_078, 4_525, 3_434, 3_975, 1_692])
    np.testing.assert_array_equal(np.bincount(faces.partitions["gender"]), [12_390, 11_317])
    data = pictured("utkface", faces, image_size=32, train_points=40, test_points=10)
    assert (data.images.shape, len(data.unreadable)) == ((50, 3, 32, 32), 3)
    whole = faces.random_split(0.8, np.random.default_rng(0))
    assert [len(part) for part in whole] == [18_965, 4_742]


# Adience.


def table(folder: Path, fold: int, *faces: tuple[str, str, str]) -> Path:
    """A fold's table of faces (face_id, age, gender), all of one user."""
    rows = [[f"{fold}@N03", f"{face}_o.jpg", face, age, gender, *["0"] * 7] for face, age, gender in faces]
    path = folder / adience.FOLDS[fold]
    path.write_text("".join("\t".join(row) + "\n" for row in [HEADER, *rows]))
    return path


def image_name(fold: int, face: str) -> str:
    return f"aligned/{fold}@N03/landmark_aligned_face.{face}.{face}_o.jpg"


@pytest.fixture
def raw(tmp_path: Path, archive: Archive) -> Path:
    """In fold f the faces 10 f to 10 f + 7, one of each group; the grey is the number of the face."""
    files: dict[str, bytes] = {}
    for fold in range(5):
        faces = [(str(10 * fold + i), age, "mf"[i % 2]) for i, age in enumerate(adience.GROUP_OF)]
        table(tmp_path, fold, *faces)
        files |= {image_name(fold, face): jpeg(int(face)) for face, _, _ in faces}
    archive(files, adience.ARCHIVE)
    return tmp_path


@pytest.fixture
def made(raw: Path) -> Callable[..., ImageDataset]:
    return lambda split="folds": pictured("adience", adience.parse(raw), image_size=20, split=split)


def test_folds_0_to_3_are_to_train_and_fold_4_is_to_test_and_a_random_split_mixes_them(
    made: Callable[..., ImageDataset],
) -> None:
    data = made()
    assert (data.images.shape, data.train.shape, data.test.shape) == ((40, 3, 20, 20), (1, 32), (1, 8))
    face = data.images[:, 0, 0, 0].astype(int)
    assert sorted(face[data.test[0]]) == list(range(40, 48))
    np.testing.assert_array_equal(data.label, face % 10)
    np.testing.assert_array_equal(data.partitions["gender"], face % 2)
    assert (data.classes[4], data.levels["gender"]) == ("25-32", ("male", "female"))
    assert (data.label_name, list(data.partitions)) == ("age", ["age", "gender"])
    assert (data.dropped, data.unreadable) == ({}, ())
    data = made(split="random")
    assert (data.train.shape, data.test.shape) == ((1, 32), (1, 8))
    folds = data.images[data.test[0], 0, 0, 0] // 10
    assert len(set(folds.tolist())) > 1


def test_faces_of_unknown_age_or_gender_are_left_out_and_counted(raw: Path, made: Callable[..., ImageDataset]) -> None:
    table(raw, 0, ("0", "None", "m"), ("1", "", "u"), ("2", "(0, 2)", "u"), ("3", "(4, 6)", ""), ("4", "35", "f"))
    data = made()
    assert data.dropped == {"age unknown": 2, "gender unknown": 2}
    face = data.images[:, 0, 0, 0].astype(int)
    assert sorted(face[face < 10]) == [4]
    assert data.label[face == 4] == [4]


def test_every_stray_age_lies_in_or_beside_the_group_that_it_is_given() -> None:
    assert not set(adience.STRAYS) & set(adience.GROUP_OF)
    bounds = [tuple(int(part) for part in text.strip("()").split(", ")) for text in adience.GROUP_OF]
    for text, group in adience.STRAYS.items():
        first = int(text.strip("()").split(",")[0])
        distance = [max(low - first, first - high, 0) for low, high in bounds]
        assert distance[group] == min(distance), text


@pytest.mark.parametrize(
    ("old", "new", "column", "row"),
    [("(25, 32)", "(25, 99)", "age", 4), ("\tf\t", "\tx\t", "gender", 1), ("user_id", "user", "user_id", None)],
)
def test_a_malformed_table_is_named(raw: Path, old: str, new: str, column: str, row: int | None) -> None:
    path = raw / adience.FOLDS[2]
    path.write_text(path.read_text().replace(old, new))
    with invalid(source=path.name, column=column, row=row):
        adience.parse(raw)


def test_the_files_count_only_with_the_published_numbers(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {source.filename: source.check for source in adience.SOURCES}
    assert list(checks) == [*adience.FOLDS, adience.ARCHIVE]
    assert all(source.sha256 is None and not source.urls for source in adience.SOURCES)
    fold, archive = checks[adience.FOLDS[4]], checks[adience.ARCHIVE]
    assert fold is not None
    assert archive is not None
    with invalid(source=adience.FOLDS[4]):
        fold(raw / adience.FOLDS[4])
    with invalid(source=adience.ARCHIVE):
        archive(raw / adience.ARCHIVE)
    monkeypatch.setattr(adience, "AT_LEAST", (8,) * 5)
    monkeypatch.setattr(adience, "USED", 40)
    fold(raw / adience.FOLDS[4])
    archive(raw / adience.ARCHIVE)
    content = (raw / adience.ARCHIVE).read_bytes()
    (raw / adience.ARCHIVE).write_bytes(content[: len(content) // 2])
    with invalid(source=adience.ARCHIVE, remedy="Delete it and fetch it again"):
        archive(raw / adience.ARCHIVE)


def test_the_official_files(official: Callable[..., Path]) -> None:
    faces = adience.parse(official("adience"))
    assert len(faces.label) + sum(faces.dropped.values()) == 19_370
    assert [len(part) for part in faces.published_split()] == [14_007, 3_445]
