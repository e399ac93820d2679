"""Law school: strict parsing, the encoding, the groups, and the counts of the official file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import law
from pipeline.seeds import generators

CONFIG = law.Config(train_fraction=0.8)
GOOD = {"race": "White", "sex": "1", "LSAT": "39.0", "UGPA": "3.1", "region_first": "GL", "ZFYA": "-0.98"}


def raw(folder: Path, *changes: dict[str, str]) -> Path:
    """A raw file of good rows with these changes; its first column has no name, as in the official file."""
    rows = [[str(i), *(GOOD | change).values()] for i, change in enumerate(changes)]
    text = "\n".join(",".join(row) for row in [["", *GOOD], *rows]) + "\n"
    (folder / law.FILE).write_text(text)
    return folder


def students(n: int = 120) -> pd.DataFrame:
    """n made-up rows as parse() returns them."""
    i = np.arange(n)
    return pd.DataFrame(
        {
            "race": [law.RACES[j % 8] for j in i],
            "sex": np.where(i % 3 == 0, "Female", "Male"),
            "LSAT": 20.0 + i % 29,
            "UGPA": 2.0 + (i % 21) / 10,
            "ZFYA": (i * 7 % n) / 10 - 3,
        }
    )


def test_the_needed_columns_are_read_with_sexes_by_name(tmp_path: Path) -> None:
    rows = law.parse(raw(tmp_path, {}, {"sex": "2", "race": "Black", "LSAT": "29.5", "UGPA": "0.0"}))
    assert list(rows) == ["race", "sex", "LSAT", "UGPA", "ZFYA"]
    assert rows["sex"].tolist() == ["Female", "Male"]
    assert rows.iloc[1].tolist() == ["Black", "Male", 29.5, 0.0, -0.98]
    assert (rows.dtypes == students().dtypes).all()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("race", "black", "row 3, column 'race': 'black' is an unknown category: expected one of"),
        ("sex", "3", "row 3, column 'sex': '3' is an unknown category"),
        ("LSAT", "160", r"row 3, column 'LSAT': '160' is out of range: expected 10\.0 to 48\.0"),
        ("LSAT", "", "row 3, column 'LSAT': '' is not a number"),
        ("UGPA", "4.4", r"row 3, column 'UGPA': '4\.4' is out of range: expected 0\.0 to 4\.3"),
        ("ZFYA", "NA", "row 3, column 'ZFYA': 'NA' is not a number"),
        ("ZFYA", "-6.5", r"row 3, column 'ZFYA': '-6\.5' is out of range"),
    ],
)
def test_a_malformed_value_is_named(tmp_path: Path, column: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"law_data\.csv, {message}"):
        law.parse(raw(tmp_path, {}, {column: value}))


def test_a_missing_column_and_a_short_row_are_named(tmp_path: Path) -> None:
    path = raw(tmp_path, {}) / law.FILE
    text = path.read_text()
    path.write_text(text.replace("ZFYA", "FYA"))
    with pytest.raises(ValueError, match=r"row 1: columns \['ZFYA'\] are missing"):
        law.parse(tmp_path)
    path.write_text(text + "1,White,2\n")
    with pytest.raises(ValueError, match=r"row 3: expected 7 fields .* found 3"):
        law.parse(tmp_path)


def test_every_input_says_what_its_name_says_and_none_is_standardised() -> None:
    rows = students()
    data = law.prepare(rows, CONFIG, generators("t", repetitions=2), "twin")
    expected = {"LSAT": rows["LSAT"], "UGPA": rows["UGPA"]}
    expected |= {f"race={race}": rows["race"] == race for race in law.RACES}
    expected |= {"sex=Female": rows["sex"] == "Female", "sex=Male": rows["sex"] == "Male"}
    assert data.feature_names == tuple(expected)
    for column, values in zip(data.features.T, expected.values(), strict=True):
        np.testing.assert_array_equal(column, values)
    assert data.continuous == ()
    assert data.sensitive_inputs == data.feature_names[2:]
    np.testing.assert_array_equal(data.batch("test").features[1], data.features[data.test[1]])


def test_students_of_other_races_are_in_neither_group_and_stay() -> None:
    rows = students()
    data = law.prepare(rows, CONFIG, generators("t", repetitions=1), "twin")
    race = data.protected["race"]
    np.testing.assert_array_equal(race == 0, rows["race"] == "Black")
    np.testing.assert_array_equal(race == 1, rows["race"] == "White")
    assert (race == -1).sum() == len(rows) * 6 / 8
    np.testing.assert_array_equal(data.protected["sex"], rows["sex"] == "Male")
    assert data.levels == {"race": ("Black", "White"), "sex": ("Female", "Male")}
    assert len(data.label) == len(rows)


def test_the_label_is_an_average_strictly_above_the_median() -> None:
    rows = students(5).assign(ZFYA=[0.3, -1.0, 0.09, 2.0, 0.09])
    data = law.prepare(rows, CONFIG, generators("t", repetitions=1), "twin")
    assert data.label.tolist() == [1, 0, 0, 1, 0]
    assert data.outcomes["ZFYA"].tolist() == rows["ZFYA"].tolist()


def test_splits_partition_the_rows_differently_in_each_repetition() -> None:
    data = law.prepare(students(121), CONFIG, generators("t", repetitions=3), "twin")
    assert data.train.shape == (3, 96)  # floor of 96.8
    for train, test in zip(data.train, data.test, strict=True):
        assert sorted([*train, *test]) == list(range(121))
    assert not (data.train[0] == data.train[1]).all()


def test_without_rows_there_is_nothing_to_prepare() -> None:
    with pytest.raises(ValueError, match="law is made of rows"):
        law.prepare(None, CONFIG, generators("t", repetitions=1), "official")


def test_the_official_file_gives_the_published_counts(official: Callable[[str], Path]) -> None:
    rows = law.parse(official("law"))
    data = law.prepare(rows, CONFIG, generators("t", repetitions=1), "official")
    assert data.features.shape == (21_791, 12)
    assert (data.train.shape, data.test.shape) == ((1, 17_432), (1, 4_359))
    race = data.protected["race"]
    assert [int((race == code).sum()) for code in (0, 1, -1)] == [1_282, 18_285, 2_224]
    assert np.median(data.outcomes["ZFYA"]) == 0.09
    np.testing.assert_allclose(data.features[:, :2].mean(axis=0), [36.77, 3.227], atol=0.005)
    np.testing.assert_allclose(data.features[:, :2].std(axis=0), [5.447, 0.4142], atol=5e-4)
