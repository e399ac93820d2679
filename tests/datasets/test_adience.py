"""Adience, on small tables and archives of the official format: nobody here has the official ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.datasets import adience
from pipeline.seeds import generators
from pipeline.types import ImageDataset

Made = Callable[..., ImageDataset]
Packed = Callable[[Path, Mapping[str, bytes]], Path]
HEADER = [*adience.COLUMNS, "x", "y", "dx", "dy", "tilt_ang", "fiducial_yaw_angle", "fiducial_score"]


@pytest.fixture
def made(configured: Callable[..., adience.Config], raw: Path) -> Callable[..., ImageDataset]:
    def prepare(**changes: Any) -> ImageDataset:
        settings = {"image_size": 20, "train_points": None, "test_points": None, "split": "folds"} | changes
        config = configured("adience", **settings)
        return adience.prepare(adience.parse(raw), config, generators("t", repetitions=1), "official")

    return prepare


def table(folder: Path, fold: int, *faces: tuple[str, str, str]) -> Path:
    """A fold's table of faces (face_id, age, gender), all of one user."""
    rows = [[f"{fold}@N03", f"{face}_o.jpg", face, age, gender, *["0"] * 7] for face, age, gender in faces]
    path = folder / adience.FOLDS[fold]
    path.write_text("".join("\t".join(row) + "\n" for row in [HEADER, *rows]))
    return path


def image_name(fold: int, face: str) -> str:
    return f"aligned/{fold}@N03/landmark_aligned_face.{face}.{face}_o.jpg"


@pytest.fixture
def raw(tmp_path: Path, packed: Packed, jpeg: Callable[..., bytes]) -> Path:
    """In fold f the faces 10 f to 10 f + 7, one of each group; the grey is the number of the face."""
    files: dict[str, bytes] = {}
    for fold in range(5):
        faces = [(str(10 * fold + i), age, "mf"[i % 2]) for i, age in enumerate(adience.GROUP_OF)]
        table(tmp_path, fold, *faces)
        files |= {image_name(fold, face): jpeg(int(face)) for face, _, _ in faces}
    packed(tmp_path / adience.ARCHIVE, files)
    return tmp_path


def test_folds_0_to_3_are_to_train_and_fold_4_is_to_test(made: Made) -> None:
    data = made()
    assert (data.images.shape, data.train.shape, data.test.shape) == ((40, 3, 20, 20), (1, 32), (1, 8))
    face = data.images[:, 0, 0, 0].astype(int)
    assert sorted(face[data.test[0]]) == list(range(40, 48))
    np.testing.assert_array_equal(data.label, face % 10)
    np.testing.assert_array_equal(data.partitions["gender"], face % 2)
    assert (data.classes[4], data.levels["gender"]) == ("25-32", ("male", "female"))
    assert (data.label_name, list(data.partitions)) == ("age", ["age", "gender"])
    assert (data.dropped, data.unreadable) == ({}, ())


def test_a_random_split_mixes_the_folds(made: Made) -> None:
    data = made(split="random")
    assert (data.train.shape, data.test.shape) == ((1, 32), (1, 8))
    folds = data.images[data.test[0], 0, 0, 0] // 10
    assert len(set(folds.tolist())) > 1


def test_faces_of_unknown_age_or_gender_are_left_out_and_counted(raw: Path, made: Made) -> None:
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


def test_an_image_that_is_missing_or_broken_is_counted_and_named(
    raw: Path, packed: Packed, jpeg: Callable[..., bytes], made: Made
) -> None:
    files = {image_name(fold, str(10 * fold + i)): jpeg(10 * fold + i) for fold in range(5) for i in range(8)}
    del files[image_name(0, "3")]
    files[image_name(4, "44")] = b"broken"
    packed(raw / adience.ARCHIVE, files)
    data = made()
    assert data.dropped == {"images that cannot be decoded": 2}
    assert data.unreadable == (
        f"{image_name(0, '3')}: not in aligned.tar.gz",
        f"{image_name(4, '44')}: no image (6 bytes)",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("(25, 32)", "(25, 99)", r"fold_2_data\.txt, line 6, column 'age': '\(25, 99\)' is unknown: expected one of"),
        ("\tf\t", "\tx\t", r"fold_2_data\.txt, line 3, column 'gender': 'x' is unknown: expected one of"),
        ("user_id", "user", r"line 1: expected the columns user_id, .*, found user, original_image"),
        ("\t0\n", "\n", r"line 2: expected 12 fields, found 11"),
    ],
)
def test_a_malformed_table_is_named(raw: Path, old: str, new: str, message: str) -> None:
    path = raw / adience.FOLDS[2]
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        adience.parse(raw)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"line 1: expected the columns .* found nothing"),
        ("\t".join(HEADER).encode(), "has a header and no faces"),
        (b"\xff\xfe\xfa", "is no table in UTF-8"),
        (None, r"fold_0_data\.txt is missing: put it there by hand"),
    ],
)
def test_an_empty_unreadable_or_missing_table_is_named(raw: Path, content: bytes | None, message: str) -> None:
    path = raw / adience.FOLDS[0]
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        adience.parse(raw)


def test_the_files_count_only_with_the_published_numbers(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {source.filename: source.check for source in adience.SOURCES}
    assert list(checks) == [*adience.FOLDS, adience.ARCHIVE]
    assert all(source.sha256 is None and not source.urls for source in adience.SOURCES)
    fold, archive = checks[adience.FOLDS[4]], checks[adience.ARCHIVE]
    assert fold is not None
    assert archive is not None
    with pytest.raises(ValueError, match="expected at least 3,703 faces in fold 4, found 8"):
        fold(raw / adience.FOLDS[4])
    with pytest.raises(ValueError, match=r"expected at least 17,452 images .*, found 40"):
        archive(raw / adience.ARCHIVE)
    monkeypatch.setattr(adience, "AT_LEAST", (8,) * 5)
    monkeypatch.setattr(adience, "USED", 40)
    fold(raw / adience.FOLDS[4])
    archive(raw / adience.ARCHIVE)
    content = (raw / adience.ARCHIVE).read_bytes()
    (raw / adience.ARCHIVE).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a whole archive"):
        archive(raw / adience.ARCHIVE)


def test_the_official_files(official: Callable[..., Path]) -> None:
    faces = adience.parse(official("adience"))
    assert len(faces.label) + sum(faces.dropped.values()) == 19_370
    assert [len(part) for part in faces.published_split()] == [14_007, 3_445]
