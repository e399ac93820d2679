"""Adult: strict parsing, the published counts, the encoding and the splits."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import adult
from pipeline.seeds import generators

CONFIG = adult.Config(train_fraction=0.8, rows="complete")
ROW = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, <=50K"
)


def raw(folder: Path, *rows: str, test: tuple[str, ...] = (ROW + ".",)) -> Path:
    """A raw folder with these training rows and, below its comment, these test rows."""
    (folder / "adult.data").write_text("".join(row + "\n" for row in rows))
    (folder / "adult.test").write_text("|1x3 Cross validator\n" + "".join(row + "\n" for row in test) + "\n")
    return folder


def people(n: int = 50) -> pd.DataFrame:
    """n made-up rows as parse() returns them, every category in turn."""
    i = np.arange(n)
    columns = {"age": 20 + i % 40, "education-num": 1 + i % 16, "capital-gain": i % 7 * 100}
    columns |= {"capital-loss": i % 3, "hours-per-week": 20 + i % 50}
    categories = {**adult.ENCODED, "race": adult.CATEGORIES["race"], "sex": adult.CATEGORIES["sex"]}
    categories |= {"native-country": ("Cuba", "Peru", "United-States"), "income": ("<=50K", ">50K")}
    frame = pd.DataFrame(columns | {name: [values[j % len(values)] for j in i] for name, values in categories.items()})
    return frame[[name for name in adult.FIELDS if name not in adult.LEFT_OUT]]


def test_both_files_are_read_and_their_spellings_of_the_label_agree(tmp_path: Path) -> None:
    rows = adult.parse(raw(tmp_path, ROW, ROW.replace("<=50K", ">50K"), test=(ROW.replace("<=50K", ">50K."),)))
    assert rows["income"].tolist() == ["<=50K", ">50K", ">50K"]
    assert rows["age"].tolist() == [39, 39, 39]
    assert rows["native-country"].tolist() == ["United-States"] * 3
    assert list(rows) == list(people())
    assert (rows.dtypes == people().dtypes).all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("39", "old", r"adult\.data, row 2, column 'age': 'old' is not a whole number"),
        ("77516", "?", r"adult\.data, row 2, column 'fnlwgt': '\?' is not a whole number"),
        ("State-gov", "Pirate", r"row 2, column 'workclass': 'Pirate' is an unknown category: expected one of \['\?'"),
        ("Bachelors", "Bachelor", "row 2, column 'education': 'Bachelor' is an unknown category"),
        ("White", "?", r"row 2, column 'race': '\?' is an unknown category"),
        ("13", "17", "row 2, column 'education-num': '17' is out of range: expected 1 to 16"),
        ("<=50K", "<=50K.", r"row 2, column 'income': '<=50K\.' is an unknown category"),
        (", Male", "", r"adult\.data, row 2: expected 15 fields \(age to income\), found 14"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adult.parse(raw(tmp_path, ROW, ROW.replace(old, new), ROW))


def test_rows_of_the_test_file_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"adult\.test, row 3, column 'income': '>50K' is an unknown category"):
        adult.parse(raw(tmp_path, ROW, test=(ROW + ".", ROW.replace("<=50K", ">50K"))))


def test_an_empty_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"adult\.data is empty"):
        adult.parse(raw(tmp_path))
    (tmp_path / "adult.data").unlink()
    with pytest.raises(ValueError, match=r"adult\.data is missing"):
        adult.parse(tmp_path)


def test_rows_are_dropped_for_want_of_occupation_or_country_and_counted_once_each() -> None:
    rows = people(20)
    rows.loc[[1, 2, 3], "occupation"] = "?"
    rows.loc[[3, 4], "native-country"] = "?"
    kept, dropped = adult.filtered(rows)
    assert dropped == {"occupation unknown": 3, "native-country unknown": 1}
    assert len(kept) == 16
    assert adult.prepare(rows, CONFIG, generators("t", repetitions=1), "official").dropped == dropped
    assert adult.filtered(people(20))[1] == {}


def test_a_kept_row_that_no_input_can_encode_is_refused() -> None:
    rows = people(20)
    rows.loc[7, "workclass"] = "Never-worked"
    with pytest.raises(ValueError, match="kept row 7, column 'workclass': 'Never-worked' has no one-hot column"):
        adult.prepare(rows, CONFIG, generators("t", repetitions=1), "official")


def test_every_input_decodes_to_the_row_it_came_from() -> None:
    rows = people(60)
    data = adult.prepare(rows, CONFIG, generators("t", repetitions=1), "twin")
    inputs = pd.DataFrame(data.features, columns=list(data.feature_names))
    assert inputs.shape == (60, 39)
    assert list(inputs)[:5] == list(adult.CONTINUOUS) == list(data.continuous)
    pd.testing.assert_frame_equal(inputs[list(adult.CONTINUOUS)], rows[list(adult.CONTINUOUS)].astype(float))
    for name in ("workclass", "marital-status", "occupation", "relationship"):
        block = inputs[[column for column in inputs if column.startswith(f"{name}=")]]
        assert list(block) == sorted(block)
        assert (block.sum(axis=1) == 1).all()
        assert block.idxmax(axis=1).str.removeprefix(f"{name}=").tolist() == rows[name].tolist()
    assert data.protected["sex"].tolist() == (rows["sex"] == "Male").tolist()
    assert data.protected["race"].tolist() == (rows["race"] == "White").tolist()
    assert data.levels == {"sex": ("Female", "Male"), "race": ("non-White", "White")}
    assert data.label.tolist() == (rows["income"] == ">50K").tolist()
    assert data.sensitive_inputs == ()


def test_splits_partition_the_rows_and_depend_on_their_own_generator_alone() -> None:
    data = adult.prepare(people(101), CONFIG, generators("t", repetitions=3), "twin")
    assert data.train.shape == (3, 80)  # floor(.8 x 101)
    assert data.test.shape == (3, 21)
    for train, test in zip(data.train, data.test, strict=True):
        assert sorted([*train, *test]) == list(range(101))
    assert not (data.train[0] == data.train[1]).all()
    more = adult.prepare(people(101), CONFIG, generators("t", repetitions=5), "twin")
    np.testing.assert_array_equal(more.train[:3], data.train)


def test_a_batch_is_standardised_by_its_own_training_rows() -> None:
    data = adult.prepare(people(100), CONFIG, generators("t", repetitions=2), "twin")
    for r in range(2):
        ages = data.features[:, 0]
        fitted_on = ages[data.train[r]]
        expected = (ages[data.test[r]] - fitted_on.mean()) / np.sqrt(((fitted_on - fitted_on.mean()) ** 2).mean())
        np.testing.assert_allclose(data.batch("test").features[r, :, 0], expected, rtol=1e-12)


def test_rows_are_needed() -> None:
    with pytest.raises(ValueError, match="parse the raw files or sample the twin first"):
        adult.prepare(None, CONFIG, generators("t", repetitions=1), "official")


def test_the_official_files_give_the_published_counts(official: Callable[[str], Path]) -> None:
    rows = adult.parse(official("adult"))
    assert len(rows) == 32_561 + 16_281
    data = adult.prepare(rows, CONFIG, generators("t", repetitions=2), "official")
    assert data.features.shape == (45_222, 39)
    assert data.dropped == {"occupation unknown": 2_809, "native-country unknown": 811}
    assert data.train.shape == (2, 36_177)
    assert data.test.shape == (2, 9_045)
    assert (data.features[:, 5:].sum(axis=0) > 0).all()  # every one-hot column is somebody's
    assert int(data.label.sum()) == 11_208
    assert np.isfinite(data.batch("train").features).all()


def test_the_official_files_are_parsed_in_half_a_second(official: Callable[[str], Path]) -> None:
    folder = official("adult")
    seconds = []
    for _ in range(3):  # the first one warms up
        started = time.process_time()
        adult.parse(folder)
        seconds.append(time.process_time() - started)
    assert min(seconds) < 0.5


def test_one_altered_character_of_the_official_file_is_found(official: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("adult.data", "adult.test"):
        shutil.copyfile(official("adult") / name, tmp_path / name)
    lines = (tmp_path / "adult.data").read_text().splitlines(keepends=True)
    lines[20_000] = lines[20_000].replace(", ", "; ", 1)
    (tmp_path / "adult.data").write_text("".join(lines))
    with pytest.raises(ValueError, match=r"adult\.data, row 20001: expected 15 fields .*, found 14"):
        adult.parse(tmp_path)
