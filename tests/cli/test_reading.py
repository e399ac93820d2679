"""From a file to arrays: every bit of a number, the part of each column, and units that can be undone."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pipeline.cli import settings as options
from pipeline.cli.table import Attribute, Source, attribute, classes_of, feature_names, read_table, rows, sha256
from pipeline.cli.units import units
from pipeline.messages import listed, reason

PATH = "t.csv"
TABLE = pd.DataFrame(
    {
        "b": [1.5, 2.0, -1.0, 0.0],
        "y": ["no", "yes", "yes", "no"],
        "sex": ["m", "f", "f", "m"],
        "a": [True, False, True, True],
        "race": ["x", "y", "z", "x"],
    }
)
SENSITIVE = (Attribute("sex"), Attribute("race", "x"))
DATA = Source(PATH, TABLE)
X = np.column_stack([np.arange(8.0), 1000 * np.arange(8.0) ** 2, np.arange(8) % 2, np.full(8, 3.0)])
NAMES = ("near", "far", "binary", "constant")


def test_csv_and_parquet_hold_the_same_numbers_to_the_last_bit(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(-100, 100).repeat(10)
    table = pd.DataFrame({"x": numbers, "name": ["a", "é"] * 1000, "flag": [True, False] * 1000})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    # The index of a Parquet file is no row number.
    table.set_axis(np.arange(2000) + 7).to_parquet(tmp_path / "t.parquet")
    reference = read_table(tmp_path / "t.parquet")
    assert reference["x"].to_numpy().tobytes() == numbers.tobytes()
    for name in ("t.csv", "t.csv.gz", "bom.csv"):
        pd.testing.assert_frame_equal(read_table(tmp_path / name), reference, check_exact=True)
    assert sha256(tmp_path / "t.csv") == hashlib.sha256((tmp_path / "t.csv").read_bytes()).hexdigest()


def named(source: Source, apart: tuple[str, ...] = ("sex", "race"), included: bool = False, **given: Any) -> Any:
    asked = options.Rows(data=Path(PATH), **given)
    return feature_names(source, asked, "y", apart, "--sensitive", included)


def test_features_are_all_columns_without_another_part_in_the_files_order_or_those_named() -> None:
    made = rows(DATA, named(DATA), SENSITIVE)
    assert made.names == ("b", "a")
    np.testing.assert_array_equal(made.features, [[1.5, 1], [2, 0], [-1, 1], [0, 1]])
    assert made.features.dtype == np.float64
    np.testing.assert_array_equal(made.sensitive["sex"], [1, 0, 0, 1])
    np.testing.assert_array_equal(made.sensitive["race=x"], [1, 0, 0, 1])
    assert made.levels == {"sex": ("f", "m"), "race=x": ("not x", "x")}
    assert made.sensitive_inputs == ()
    assert named(DATA, features=("a", "b")) == ("a", "b")
    assert named(DATA, drop=("b",)) == ("a",)


def test_a_sensitive_column_can_be_an_input() -> None:
    source = Source(PATH, TABLE.assign(sex=[1, 0, 0, 1], race=[0, 1, 1, 0]))
    both = (Attribute("sex"), Attribute("race"))
    names = named(source, included=True)
    assert names == ("b", "sex", "a", "race")
    assert rows(source, names, both).sensitive_inputs == (1, 3)
    assert rows(source, named(source, features=("race", "b")), both).sensitive_inputs == (0,)


@pytest.mark.parametrize(
    ("label", "positive"),
    [
        *(([0, 1, 1, 0], None), ([0.0, 1.0, 1.0, 0.0], None), ([False, True, True, False], None)),
        *(([2, 1, 1, 2], "1"), ([-1.0, 1, 1, -1], "1")),
    ],
)
def test_labels_0_and_1_need_no_word_and_others_do(label: list[float], positive: str | None) -> None:
    codes, levels = classes_of(pd.Series(label, name="y"), 2, None, positive, PATH)
    np.testing.assert_array_equal(codes, [0, 1, 1, 0])
    assert len(levels) == 2


def test_more_classes_are_numbers_of_the_models_outputs_or_names_in_their_order() -> None:
    for label, names in (([0, 2, 1, 2], None), (["a", "c", "b", "c"], ("a", "b", "c"))):
        codes, levels = classes_of(pd.Series(label, name="y"), 3, names, None, PATH)
        np.testing.assert_array_equal(codes, [0, 2, 1, 2])
        assert levels == (names or ("0", "1", "2"))
    # A class that no row has is still one of the model's.
    assert classes_of(pd.Series([0, 3, 1]), 4, None, None, PATH)[1] == ("0", "1", "2", "3")


def test_codes_stay_text_and_gaps_are_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("zip,state,n\n01,NA,1\n1,,2\n")
    usual, told = (read_table(tmp_path / "t.csv", **how) for how in ({}, {"text": ["zip"], "missing": ["-"]}))
    assert usual["zip"].tolist() == [1, 1]
    assert usual["state"].isna().all()
    assert told["zip"].tolist() == ["01", "1"]
    assert told["state"].isna().tolist() == [False, True]


def test_an_equals_sign_may_be_part_of_a_columns_name() -> None:
    assert attribute("race=x", ["race"]) == Attribute("race", "x")
    assert attribute("race=x", ["race", "race=x"]) == Attribute("race=x")
    assert attribute("sex", ["race"]) == Attribute("sex")


def test_units_are_standard_deviations_of_columns_of_more_than_two_values_and_can_be_undone() -> None:
    made = units(X, NAMES, "continuous")
    assert made.standardized == ("near", "far")
    z = made.inward(X)
    np.testing.assert_allclose(z[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z[:, :2].std(axis=0), 1)
    np.testing.assert_array_equal(z[:, 2:], X[:, 2:])
    np.testing.assert_allclose(made.outward(z), X, rtol=1e-12)
    np.testing.assert_allclose(made.network_input(torch.tensor(z)).numpy(), X, rtol=1e-12)
    kept = units(X, NAMES, "none")  # changes no bit
    np.testing.assert_array_equal(kept.inward(X), X)
    np.testing.assert_array_equal(kept.network_input(torch.tensor(X)).numpy(), X)
    assert units(X[:, [0, 2, 3]], ("near", "binary", "constant"), None).standardized == kept.standardized == ()


def test_long_lists_end_in_a_count_and_long_errors_after_a_line() -> None:
    assert listed([1, 2, 3], 2) == "1, 2 and 1 more"
    assert listed([1, 2], 2) == "1, 2"
    assert reason(RuntimeError("first.\nsecond")) == "RuntimeError: first"
    scripted = "The following operation failed in the TorchScript interpreter.\nTraceback\nRuntimeError: sizes differ\n"
    assert reason(RuntimeError(scripted)) == "RuntimeError: sizes differ"
    assert reason(KeyError()) == "KeyError: no further text"
