"""UTKFace: what a file name says, odd names that are kept or listed, bins, groups and split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import utkface
from pipeline.datasets.image_sets import Labelled
from pipeline.seeds import generators
from pipeline.types import ImageDataset

Packed = Callable[[Path, Mapping[str, bytes]], Path]
Jpeg = Callable[..., bytes]
Made = Callable[..., ImageDataset]
DATE = "20170116174525125"


@pytest.fixture
def made(configured: Callable[..., utkface.Config]) -> Callable[..., ImageDataset]:
    def prepare(faces: Labelled, **changes: Any) -> ImageDataset:
        settings = {"image_size": 40, "train_points": None, "test_points": None, "train_fraction": 0.8} | changes
        return utkface.prepare(faces, configured("utkface", **settings), generators("t", repetitions=1), "official")

    return prepare


def named(folder: Path, packed: Packed, jpeg: Jpeg, *names: str) -> Labelled:
    """The faces of an archive of these names, whose greys are 10, 20, ... in this order."""
    files = {f"UTKFace/{name}": jpeg(10 * (i + 1)) for i, name in enumerate(names)}
    packed(folder / utkface.ARCHIVE, files)
    return utkface.parse(folder)


def test_age_gender_and_race_are_those_of_the_name(tmp_path: Path, packed: Packed, jpeg: Jpeg, made: Made) -> None:
    ages = (1, 14, 15, 24, 25, 39, 40, 59, 60, 116)
    names = [f"{age}_{i % 2}_{i % 5}_{DATE}.jpg.chip.jpg" for i, age in enumerate(ages)]
    data = made(named(tmp_path, packed, jpeg, *names))
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


def test_odd_names_that_tell_enough_are_kept(tmp_path: Path, packed: Packed, jpeg: Jpeg) -> None:
    faces = named(
        tmp_path,
        packed,
        jpeg,
        f"24_0_1_{DATE} .jpg.chip.jpg",
        f"55_1_0_{DATE}jpg.chip.jpg",
        "14_0_0_2017011022340900.jpg.chip.jpg",
        "28_1_2_201701161846515488.jpg.chip.jpg",
    )
    assert [faces.classes[code] for code in faces.label] == ["0-14", "15-24", "25-39", "40-59"]
    assert faces.unreadable == ()


def test_a_face_without_a_race_is_kept_with_its_race_unknown_and_listed(
    tmp_path: Path, packed: Packed, jpeg: Jpeg, made: Made
) -> None:
    names = [f"{age}_1_3_{DATE}.jpg.chip.jpg" for age in (20, 30, 40, 50)]
    faces = named(tmp_path, packed, jpeg, f"61_0_{DATE}.jpg.chip.jpg", *names)
    data = made(faces)
    oldest = data.label == 4
    assert (data.partitions["race"][oldest], data.partitions["gender"][oldest]) == ([-1], [0])
    assert (data.partitions["race"][~oldest] == 3).all()
    assert data.unreadable == (f"UTKFace/61_0_{DATE}.jpg.chip.jpg: no race in the name, kept as unknown",)
    assert data.dropped == {}


@pytest.mark.parametrize(
    "name",
    [
        f"x_0_0_{DATE}.jpg.chip.jpg",
        f"30_2_0_{DATE}.jpg.chip.jpg",
        f"30_0_5_{DATE}.jpg.chip.jpg",
        f"30_{DATE}.jpg.chip.jpg",
        "30_0_0.jpg",
        "._30_0_0_20170101000000000.jpg.chip.jpg",
        "readme.txt",
    ],
)
def test_a_name_that_tells_too_little_is_left_out_counted_and_listed(
    tmp_path: Path, packed: Packed, jpeg: Jpeg, made: Made, name: str
) -> None:
    names = [f"{age}_1_3_{DATE}.jpg.chip.jpg" for age in (20, 30, 40)]
    faces = named(tmp_path, packed, jpeg, name, *names)
    assert len(faces.label) == 3
    data = made(faces, train_fraction=0.5)
    assert data.dropped == {"files without age and gender in the name": 1}
    assert data.unreadable == (f"UTKFace/{name}: expected age_gender_race_date.jpg.chip.jpg",)


def test_a_broken_image_is_left_out_counted_and_named(tmp_path: Path, packed: Packed, jpeg: Jpeg, made: Made) -> None:
    files = {f"UTKFace/{age}_1_3_{DATE}.jpg.chip.jpg": jpeg(age) for age in range(1, 20)}
    broken = f"UTKFace/20_1_3_{DATE}.jpg.chip.jpg"
    packed(tmp_path / utkface.COPY, files | {broken: jpeg(3)[:300]})
    data = made(utkface.parse(tmp_path, utkface.COPY))
    assert len(data.label) == 19
    assert data.dropped == {"images that cannot be decoded": 1}
    (fault,) = data.unreadable
    assert fault.startswith(f"{broken}: ")
    assert "truncated" in fault.lower()


def test_the_check_counts_the_faces(tmp_path: Path, packed: Packed, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"UTKFace/{age}_1_3_{DATE}.jpg.chip.jpg": b"" for age in range(20)}
    path = packed(tmp_path / utkface.ARCHIVE, files)
    (source,), (copy,) = utkface.SOURCES, utkface.ALTERNATIVES
    assert (source.sha256, source.check, copy.filename) == (None, utkface.check, utkface.COPY)
    with pytest.raises(ValueError, match=r"expected 23,708 faces, or one fewer, .* found 20"):
        utkface.check(path)
    for published in (20, 21):
        monkeypatch.setattr(utkface, "FACES", published)
        utkface.check(path)
    monkeypatch.setattr(utkface, "FACES", 19)
    with pytest.raises(ValueError, match="expected 19 faces"):
        utkface.check(path)


def test_the_copy_at_hand(official: Callable[..., Path], made: Made) -> None:
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
    data = made(faces, image_size=32, train_points=40, test_points=10)
    assert (data.images.shape, len(data.unreadable)) == ((50, 3, 32, 32), 3)
    whole = faces.random_split(0.8, np.random.default_rng(0))
    assert [len(part) for part in whole] == [18_965, 4_742]
