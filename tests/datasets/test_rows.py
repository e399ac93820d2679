"""The four tables as datasets: which rows are kept, what every input says, labels, groups and splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets import adult, compas, law, ssl, tabular
from pipeline.seeds import generators
from pipeline.types import Dataset
from pipeline.workflow import plugins

Rows = Callable[..., pd.DataFrame]
CHOICES: dict[str, tuple[Any, ...]] = {"adult": ("complete",), "compas": ("complete",), "law": (), "ssl": (345,)}


def made(name: str, rows: pd.DataFrame, repetitions: int = 1, fraction: float = 0.8) -> Dataset:
    module = plugins.load("dataset", name)
    rngs = generators("t", repetitions=repetitions)
    data: Dataset = module.prepare(rows, module.Config(fraction, *CHOICES[name]), rngs, "twin")
    return data


# Splits.


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize(("n", "fraction"), [(200, 0.8), (201, 0.8), (203, 0.7), (199, 0.5), (20, 0.29)])
def test_splits_partition_the_rows_and_depend_on_their_own_generator_alone(
    rows_of: Rows, name: str, n: int, fraction: float
) -> None:
    rows = rows_of(name)
    if name == "ssl":
        rows = rows[rows["race"].isin(ssl.LEVELS)].head(300)
        rows = rows.assign(**{feature: np.arange(300) % 2 for feature in ssl.TIMES})
    data = made(name, rows.head(n), 3, fraction)
    assert data.train.shape == (3, int(n * round(fraction * 100)) // 100)  # floor, in whole numbers
    for train, test in zip(data.train, data.test, strict=True):
        assert sorted([*train, *test]) == list(range(n))
        # COMPAS is stratified: within one row of the exact share of each class.
        assert name != "compas" or abs(data.label[train].sum() - fraction * data.label.sum()) < 1
    assert not (data.train[0] == data.train[1]).all()
    np.testing.assert_array_equal(made(name, rows.head(n), 5, fraction).train[:3], data.train)


def test_the_row_that_is_left_over_goes_to_the_class_with_the_larger_remainder(rows_of: Rows) -> None:
    """7 and 8 rows at 80 %: 5.6 and 6.4 of 12, so 6 and 6."""
    data = made("compas", rows_of("compas").head(15).assign(two_year_recid=[0] * 7 + [1] * 8))
    assert np.bincount(data.label[data.train[0]]).tolist() == [6, 6]


def test_both_sides_of_a_stratified_split_come_in_random_order(rows_of: Rows) -> None:
    data = made("compas", rows_of("compas").head(2_000))
    for rows in (data.train[0], data.test[0]):
        label, half = data.label[rows], len(rows) // 2
        assert abs(label[:half].mean() - label[half:].mean()) < 0.12


@pytest.mark.parametrize("name", CHOICES)
def test_only_continuous_inputs_are_standardised_by_their_own_training_rows(rows_of: Rows, name: str) -> None:
    data = made(name, rows_of(name).head(900), 2)
    assert data.continuous == {"adult": adult.CONTINUOUS, "compas": ("priors_count",)}.get(name, ())
    for r in range(2):
        for j, column in enumerate(data.feature_names):
            train, test = data.features[data.train[r], j], data.features[data.test[r], j]
            if column in data.continuous and train.std():
                test = (test - train.mean()) / train.std()
            np.testing.assert_allclose(data.batch("test").features[r, :, j], test, rtol=1e-9, atol=1e-12)


# Which rows are kept.


def test_adults_rows_are_dropped_for_want_of_occupation_or_country_and_counted_once_each(rows_of: Rows) -> None:
    rows = rows_of("adult").head(20).copy()
    rows.loc[[1, 2, 3], "occupation"] = "?"
    rows.loc[[3, 4], "native-country"] = "?"
    kept, dropped = adult.filtered(rows)
    assert dropped == {"occupation unknown": 3, "native-country unknown": 1}
    assert len(kept) == 16
    assert made("adult", rows).dropped == dropped
    assert adult.filtered(rows, "all")[1] == {}


def test_each_row_of_compas_is_dropped_by_the_first_rule_that_it_breaks(rows_of: Rows) -> None:
    rows = rows_of("compas").head(30).copy()
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
    assert compas.filtered(kept)[1] == {}


def test_a_kept_row_that_no_input_can_encode_is_refused(rows_of: Rows) -> None:
    rows = rows_of("adult").head(20).copy()
    rows.loc[7, "workclass"] = "Never-worked"
    with pytest.raises(ValueError, match="kept row 7, column 'workclass': 'Never-worked' has no one-hot column"):
        made("adult", rows)
    values = pd.Series(["b", "a", "b"], name="x")
    found = tabular.indicators(values, ("a", "b"))
    assert {key: column.tolist() for key, column in found.items()} == {
        "x=a": [False, True, False],
        "x=b": [True, False, True],
    }


# What every input, label and group says.


def said_of_adult(rows: pd.DataFrame) -> dict[str, Any]:
    inputs = {name: rows[name] for name in adult.CONTINUOUS}
    for name in ("workclass", "marital-status", "occupation", "relationship"):
        known = adult.ENCODED[name]
        assert list(known) == sorted(known)
        inputs |= {f"{name}={value}": rows[name] == value for value in known}
    return {
        "inputs": inputs,
        "label": rows["income"] == ">50K",
        "protected": {"sex": rows["sex"] == "Male", "race": rows["race"] == "White"},
        "levels": {"sex": ("Female", "Male"), "race": ("non-White", "White")},
        "sensitive": (),
    }


def said_of_compas(rows: pd.DataFrame) -> dict[str, Any]:
    protected = {"sex": rows["sex"] == "Female", "race": rows["race"] == "Caucasian"}
    ages = {f"age_cat={age}": rows["age_cat"] == age for age in ("25 - 45", "Greater than 45", "Less than 25")}
    return {
        "inputs": {
            **protected,
            "priors_count": rows["priors_count"],
            **ages,
            "c_charge_degree=F": rows["c_charge_degree"] == "F",
        },
        "label": rows["two_year_recid"],
        "protected": protected,
        "levels": {"sex": ("Male", "Female"), "race": ("African-American", "Caucasian")},
        "sensitive": ("sex", "race"),
    }


def said_of_law(rows: pd.DataFrame) -> dict[str, Any]:
    dummies = {f"race={race}": rows["race"] == race for race in law.RACES}
    dummies |= {"sex=Female": rows["sex"] == "Female", "sex=Male": rows["sex"] == "Male"}
    race = rows["race"].map({"Black": 0, "White": 1}).fillna(-1)
    assert (race == -1).any()
    return {
        "inputs": {"LSAT": rows["LSAT"], "UGPA": rows["UGPA"], **dummies},
        "label": rows["ZFYA"] > np.median(rows["ZFYA"]),
        "protected": {"race": race, "sex": rows["sex"] == "Male"},
        "levels": {"race": ("Black", "White"), "sex": ("Female", "Male")},
        "sensitive": tuple(dummies),
        "outcomes": {"ZFYA": rows["ZFYA"]},
    }


def said_of_ssl(rows: pd.DataFrame) -> dict[str, Any]:
    # Scaled over people of all races before the others are left out.
    numbers = rows.assign(age=rows["age"].map(ssl.AGES))[list(ssl.FEATURES)].astype(float)
    kept = rows["race"].isin(["BLK", "WHI"])
    assert not kept.all()
    rows = rows[kept]
    return {
        "inputs": dict(((numbers - numbers.mean()) / numbers.std(ddof=0))[kept]),
        "label": rows["score"] >= 345,
        "protected": {"race": rows["race"] == "WHI"},
        "levels": {"race": ("BLK", "WHI")},
        "sensitive": (),
        "outcomes": {"score": rows["score"]},
    }


SAID = {"adult": said_of_adult, "compas": said_of_compas, "law": said_of_law, "ssl": said_of_ssl}


@pytest.mark.parametrize("name", SAID)
def test_every_input_label_and_group_says_what_its_name_says(rows_of: Rows, name: str) -> None:
    rows = rows_of(name).head(900)
    data, said = made(name, rows, 2), SAID[name](rows)
    assert data.feature_names == tuple(said["inputs"])
    for column, values in zip(data.features.T, said["inputs"].values(), strict=True):
        np.testing.assert_allclose(column, values, rtol=1e-12)
    np.testing.assert_array_equal(data.label, said["label"])
    assert (data.levels, data.sensitive_inputs) == (said["levels"], said["sensitive"])
    for found, expected in ((data.protected, said["protected"]), (data.outcomes, said.get("outcomes", {}))):
        assert set(found) == set(expected)
        for key, values in found.items():
            np.testing.assert_array_equal(values, expected[key])


def test_the_law_schools_label_is_an_average_strictly_above_the_median(rows_of: Rows) -> None:
    rows = rows_of("law").head(5).assign(ZFYA=[0.3, -1.0, 0.09, 2.0, 0.09])
    assert made("law", rows).label.tolist() == [1, 0, 0, 1, 0]


def test_an_age_of_the_list_is_its_first_two_digits_and_the_youngest_are_ten() -> None:
    assert {band: 10 if band.startswith("less") else int(band[:2]) for band in ssl.AGES} == ssl.AGES


def test_people_of_unknown_age_are_dropped_first_and_counted(rows_of: Rows) -> None:
    rows = rows_of("ssl").head(900).copy()
    rows.loc[[0, 1, 2], "age"] = ""
    rows.loc[[0, 1, 2], "trend"] = 50.0
    data = made("ssl", rows)
    others = int((~rows["race"].isin(["BLK", "WHI"]))[3:].sum())
    assert data.dropped == {"age at latest arrest unknown": 3, "race neither BLK nor WHI": others}
    assert np.abs(data.features[:, data.feature_names.index("trend")]).max() < 10


def test_an_input_that_is_the_same_for_everybody_is_named(rows_of: Rows) -> None:
    with pytest.raises(ValueError, match=r"inputs \['trend'\] are the same for everybody"):
        made("ssl", rows_of("ssl").head(900).assign(trend=0.1))
