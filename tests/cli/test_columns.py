"""Each column has one part: feature, label or sensitive attribute; what does not fit is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.columns import Attribute, Choice, attribute, rows

PATH = Path("t.csv")
TABLE = pd.DataFrame(
    {
        "b": [1.5, 2.0, -1.0, 0.0],
        "y": ["no", "yes", "yes", "no"],
        "sex": ["m", "f", "f", "m"],
        "a": [True, False, True, True],
        "race": ["x", "y", "z", "x"],
    }
)
CHOICE = Choice(label="y", positive="yes", sensitive=(Attribute("sex"), Attribute("race", "x")))


def test_features_are_all_columns_without_another_part_in_the_files_order() -> None:
    made = rows(TABLE, CHOICE, PATH)
    assert made.names == ("b", "a")
    np.testing.assert_array_equal(made.features, [[1.5, 1], [2, 0], [-1, 1], [0, 1]])
    assert made.features.dtype == np.float64
    np.testing.assert_array_equal(made.label, [0, 1, 1, 0])
    assert made.label_levels == ("no", "yes")
    np.testing.assert_array_equal(made.sensitive["sex"], [1, 0, 0, 1])
    np.testing.assert_array_equal(made.sensitive["race=x"], [1, 0, 0, 1])
    assert made.levels == {"sex": ("f", "m"), "race=x": ("not x", "x")}
    assert made.sensitive_inputs == ()


def test_features_can_be_named_in_the_models_order() -> None:
    assert rows(TABLE, replace(CHOICE, features=("a", "b")), PATH).names == ("a", "b")
    assert rows(TABLE, replace(CHOICE, drop=("b",)), PATH).names == ("a",)


def test_a_sensitive_column_can_be_an_input() -> None:
    table = TABLE.assign(sex=[1, 0, 0, 1], race=[0, 1, 1, 0])
    choice = Choice(label="y", positive="yes", sensitive=(Attribute("sex"), Attribute("race")), include_sensitive=True)
    made = rows(table, choice, PATH)
    assert made.names == ("b", "sex", "a", "race")
    assert made.sensitive_inputs == (1, 3)
    assert rows(table, replace(choice, include_sensitive=False, features=("race", "b")), PATH).sensitive_inputs == (0,)


def test_labels_0_and_1_need_no_word_and_others_do() -> None:
    for label in ([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], [False, True, True, False]):
        made = rows(TABLE.assign(y=label), replace(CHOICE, positive=None), PATH)
        np.testing.assert_array_equal(made.label, [0, 1, 1, 0])
    np.testing.assert_array_equal(
        rows(TABLE.assign(y=[1, 2, 2, 1]), replace(CHOICE, positive="1"), PATH).label, [1, 0, 0, 1]
    )
    np.testing.assert_array_equal(
        rows(TABLE.assign(y=[-1.0, 1, 1, -1]), replace(CHOICE, positive="1"), PATH).label, [0, 1, 1, 0]
    )


def test_an_equals_sign_may_be_part_of_a_columns_name() -> None:
    assert attribute("race=x", ["race"]) == Attribute("race", "x")
    assert attribute("race=x", ["race", "race=x"]) == Attribute("race=x")
    assert attribute("sex", ["race"]) == Attribute("sex")


@pytest.mark.parametrize(
    ("table", "choice", "message"),
    [
        (TABLE.assign(b=["p", "q", "p", "q"]), CHOICE, r"'b' holds 'p', 'q'\. Encode these columns .* --drop b"),
        (TABLE.assign(b=[1, np.nan, 2, np.nan]), CHOICE, r"column 'b' is missing in 2 rows: 1, 3 \(counted from 0\)"),
        (TABLE.assign(b=[1, 1, np.inf, 2]), CHOICE, r"column 'b' is infinite in row 2 \(counted from 0\)"),
        (TABLE.assign(y=["no", None, "yes", "no"]), CHOICE, r"column 'y' \(--label\) is missing in row 1"),
        (TABLE.assign(sex=["m", "f", "m", None]), CHOICE, r"column 'sex' \(--sensitive\) is missing in row 3"),
        (TABLE.assign(y=["a", "b", "c", "a"]), CHOICE, r"the label 'y' must have two classes, found 3: a, b, c"),
        (TABLE.assign(y=["yes"] * 4), CHOICE, r"the label 'y' must have two classes, found 1"),
        (TABLE, replace(CHOICE, positive=None), r"the label 'y' holds no, yes, not 0 and 1: .* --positive 'yes'"),
        (TABLE, replace(CHOICE, positive="maybe"), r"--positive asks for the value 'maybe', but column 'y' .* no, yes"),
        (TABLE, replace(CHOICE, sensitive=(Attribute("race"),)), r"'race' must have two levels, found 3.*race=x"),
        (TABLE.assign(sex="m"), CHOICE, r"'sex' must have two levels, found 1: m: an attribute that is the same"),
        (TABLE.assign(race="x"), CHOICE, r"'race' is 'x' in every row"),
        (TABLE, replace(CHOICE, sensitive=(Attribute("race", "w"),)), r"--sensitive race=w asks for the value 'w'"),
        (TABLE, replace(CHOICE, sensitive=(Attribute("sexx"),)), r"--sensitive names 'sexx'.*did you mean 'sex'"),
        (TABLE, replace(CHOICE, sensitive=(Attribute("y"),)), r"'y' is given as --label and as --sensitive"),
        (TABLE, replace(CHOICE, features=("a", "b", "a")), r"--features names a more than once"),
        (TABLE, replace(CHOICE, features=("a", "y")), r"--features names y, which is also the label or dropped"),
        (TABLE, replace(CHOICE, drop=("a", "b")), r"no feature column is left"),
        (TABLE, replace(CHOICE, drop=("zzz",)), r"--drop names 'zzz'"),
    ],
)
def test_a_column_that_does_not_fit_is_named(table: pd.DataFrame, choice: Choice, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows(table, choice, PATH)


def test_missing_values_of_nullable_columns_are_seen() -> None:
    table = TABLE.assign(b=pd.array([1, None, 2, 3], dtype="Int64"))
    with pytest.raises(ValueError, match="column 'b' is missing in row 1"):
        rows(table, CHOICE, PATH)
