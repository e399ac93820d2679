"""COMPAS: strict parsing, ProPublica's filter, the encoding and the stratified splits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import compas
from pipeline.seeds import generators

CONFIG = compas.Config(train_fraction=0.8, rows="complete")
GOOD = dict(
    zip(
        compas.PARSED,
        ("Male", "Caucasian", "25 - 45", "3", "-1", "F", "0", "Low", "1", "30", "0", "1", "2"),
        strict=True,
    )
)  # as text, as in the file


def raw(folder: Path, *changes: dict[str, str]) -> Path:
    """A raw file of good rows with these changes, and a column that nobody asks for."""
    header = ["id", *compas.PARSED]
    rows = [[str(i), *({**GOOD, **change}[name] for name in compas.PARSED)] for i, change in enumerate(changes)]
    text = "\n".join(",".join(row) for row in [header, *rows]) + "\n"
    (folder / compas.FILE).write_text(text)
    return folder


def defendants(n: int = 200) -> pd.DataFrame:
    """n made-up rows as parse() returns them; about 30 % reoffend."""
    i = np.arange(n)
    return pd.DataFrame(
        {
            "sex": np.where(i % 3 == 0, "Female", "Male"),
            "race": np.where(i % 5 < 2, "Caucasian", "African-American"),
            "age_cat": [compas.AGES[j % 3] for j in i],
            "priors_count": i % 11,
            compas.DAYS: (i % 21 - 10).astype(float),
            "c_charge_degree": np.where(i % 2 == 0, "F", "M"),
            "is_recid": (i % 10 < 3).astype(int),
            "score_text": [("Low", "Medium", "High")[j % 3] for j in i],
            "two_year_recid": (i % 10 < 3).astype(int),
            "age": 18 + i % 50,
            **{name: i % (j + 2) for j, name in enumerate(compas.JUVENILE)},
        }
    )


def test_the_needed_columns_are_read_and_a_missing_number_of_days_is_nan(tmp_path: Path) -> None:
    rows = compas.parse(raw(tmp_path, {}, {compas.DAYS: ""}, {"sex": "Female"}))
    assert list(rows) == list(compas.PARSED)
    assert rows["sex"].tolist() == ["Male", "Male", "Female"]
    np.testing.assert_array_equal(rows[compas.DAYS], [-1.0, np.nan, -1.0])
    assert (rows.dtypes == defendants().dtypes).all()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("sex", "Unknown", "row 3, column 'sex': 'Unknown' is an unknown category: expected one of"),
        ("race", "caucasian", "row 3, column 'race': 'caucasian' is an unknown category"),
        ("age_cat", "", "row 3, column 'age_cat': '' is an unknown category"),
        ("priors_count", "many", "row 3, column 'priors_count': 'many' is not a whole number"),
        ("priors_count", "-3", "row 3, column 'priors_count': '-3' is out of range"),
        (compas.DAYS, "soon", f"row 3, column '{compas.DAYS}': 'soon' is not a whole number"),
        ("two_year_recid", "2", "row 3, column 'two_year_recid': '2' is out of range: expected 0 to 1"),
        ("score_text", "None", "row 3, column 'score_text': 'None' is an unknown category"),
    ],
)
def test_a_malformed_value_is_named(tmp_path: Path, column: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"compas-scores-two-years\.csv, {message}"):
        compas.parse(raw(tmp_path, {}, {column: value}))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = raw(tmp_path, {}) / compas.FILE
    path.write_text(path.read_text().replace("race", "ethnicity"))
    with pytest.raises(ValueError, match=r"row 1: columns \['race'\] are missing"):
        compas.parse(tmp_path)


def test_each_row_is_dropped_by_the_first_rule_that_it_breaks() -> None:
    rows = defendants(30)
    rows.loc[0, compas.DAYS] = np.nan
    rows.loc[[1, 2], compas.DAYS] = [-31.0, 31.0]
    rows.loc[3, compas.DAYS] = 30.0  # just within
    rows.loc[[2, 4], "is_recid"] = -1  # row 2 is out already
    rows.loc[5, "c_charge_degree"] = "O"
    rows.loc[6, "score_text"] = "N/A"
    rows.loc[[7, 8], "race"] = ["Other", "Hispanic"]
    kept, dropped = compas.filtered(rows)
    assert list(dropped.items()) == [
        ("days between arrest and screening unknown", 1),
        ("arrest and screening more than 30 days apart", 2),
        ("no recidivism record", 1),
        ("ordinary traffic offence", 1),
        ("no COMPAS score", 1),
        ("race neither African-American nor Caucasian", 2),
    ]
    assert len(kept) == 30 - sum(dropped.values())
    assert compas.filtered(defendants(30))[1] == {}


def test_every_input_says_what_its_name_says() -> None:
    rows = defendants()
    data = compas.prepare(rows, CONFIG, generators("t", repetitions=1), "twin")
    expected = {
        "sex": rows["sex"] == "Female",
        "race": rows["race"] == "Caucasian",
        "priors_count": rows["priors_count"],
        "age_cat=25 - 45": rows["age_cat"] == "25 - 45",
        "age_cat=Greater than 45": rows["age_cat"] == "Greater than 45",
        "age_cat=Less than 25": rows["age_cat"] == "Less than 25",
        "c_charge_degree=F": rows["c_charge_degree"] == "F",
    }
    assert data.feature_names == tuple(expected)
    for column, values in zip(data.features.T, expected.values(), strict=True):
        np.testing.assert_array_equal(column, values)
    assert data.continuous == ("priors_count",)
    assert data.sensitive_inputs == ("sex", "race")
    np.testing.assert_array_equal(data.protected["sex"], expected["sex"])
    np.testing.assert_array_equal(data.protected["race"], expected["race"])
    assert data.levels == {"sex": ("Male", "Female"), "race": ("African-American", "Caucasian")}
    np.testing.assert_array_equal(data.label, rows["two_year_recid"])


def test_priors_are_standardised_and_indicators_are_not() -> None:
    data = compas.prepare(defendants(), CONFIG, generators("t", repetitions=2), "twin")
    train = data.batch("train").features
    np.testing.assert_allclose(train[:, :, 2].mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(train[:, :, 2].std(axis=1), 1, rtol=1e-12)
    assert set(np.unique(np.delete(train, 2, axis=2))) == {0.0, 1.0}


@pytest.mark.parametrize(("n", "fraction"), [(200, 0.8), (201, 0.8), (203, 0.7), (199, 0.5), (20, 0.29)])
def test_splits_partition_the_rows_with_the_label_share_on_both_sides(n: int, fraction: float) -> None:
    data = compas.prepare(defendants(n), compas.Config(fraction, "complete"), generators("t", repetitions=4), "twin")
    assert data.train.shape[1] == int(n * round(fraction * 100)) // 100  # floor, in whole numbers
    for train, test in zip(data.train, data.test, strict=True):
        assert sorted([*train, *test]) == list(range(n))
        # Within one row of the exact share of each class.
        assert abs(data.label[train].sum() - fraction * data.label.sum()) < 1
    assert not (data.train[0] == data.train[1]).all()


def test_the_row_that_is_left_over_goes_to_the_class_with_the_larger_remainder() -> None:
    """7 and 8 rows at 80 %: 5.6 and 6.4 of 12, so 6 and 6."""
    rows = defendants(15).assign(two_year_recid=[0] * 7 + [1] * 8)
    data = compas.prepare(rows, CONFIG, generators("t", repetitions=1), "twin")
    assert np.bincount(data.label[data.train[0]]).tolist() == [6, 6]


def test_both_sides_of_a_split_come_in_random_order() -> None:
    data = compas.prepare(defendants(2_000), CONFIG, generators("t", repetitions=1), "twin")
    for rows in (data.train[0], data.test[0]):
        label, half = data.label[rows], len(rows) // 2
        assert abs(label[:half].mean() - label[half:].mean()) < 0.12


def test_the_official_file_gives_the_published_counts(official: Callable[[str], Path]) -> None:
    rows = compas.parse(official("compas"))
    assert len(rows) == 7_214
    data = compas.prepare(rows, CONFIG, generators("t", repetitions=2), "official")
    assert data.features.shape == (5_278, 7)
    assert data.dropped == {
        "days between arrest and screening unknown": 307,
        "arrest and screening more than 30 days apart": 735,
        "race neither African-American nor Caucasian": 894,
    }
    assert data.train.shape == (2, 4_222)
    assert data.test.shape == (2, 1_056)
    # ProPublica's own two-way table of two_year_recid by race, after its filter.
    race, label = data.protected["race"], data.label
    assert [int((race == r).sum()) for r in (0, 1)] == [3_175, 2_103]
    assert [int(label[race == r].sum()) for r in (0, 1)] == [1_661, 822]
