"""Whatever is odd about a raw file is an error that names file, row and column; nothing is read around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.datasets.raw_table import Reader, category, code, decimal, parsed, whole

ANY = code(".*", "anything")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def table(path: Path, text: str, name: Reader = ANY, age: Reader = ANY, **how: Any) -> pd.DataFrame:
    path.write_text(text, encoding="utf-8")
    return parsed(path, {"name": name, "age": age}, comment="|", **how)


def test_columns_are_found_by_name_and_quotes_and_spaces_are_understood(path: Path) -> None:
    text = 'age, city,name\n3,"Lima, Peru", ann\n04,,"bo"\n\n\n'
    read = table(path, text, category(["ann", "bo"]), whole(0, 9))
    assert read.to_dict("list") == {"name": ["ann", "bo"], "age": [3, 4]}
    assert read["age"].dtype == np.int64


def test_without_a_header_columns_go_by_position_and_top_comments_are_skipped(path: Path) -> None:
    text = "|made by hand\nann,3\nbo,4\n"
    assert table(path, text, header=False)["name"].tolist() == ["ann", "bo"]
    with pytest.raises(ValueError, match="row 3, column 'age': '4' is out of range: expected 0 to 3"):
        table(path, text, age=whole(0, 3), header=False)


def test_text_that_looks_like_a_missing_value_is_text(path: Path) -> None:
    read = table(path, "name,age\nNA,1\nN/A,2\nnull,3\n,4\n")
    assert read["name"].tolist() == ["NA", "N/A", "null", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"people\.csv is missing: run the fetch stage"),
        (b"name,age\n\xff\xfe,3\n", "is not comma-separated UTF-8 text"),
        (b'name,age\n"ann,3\n', "is not comma-separated UTF-8 text"),
        (b"", r"people\.csv is empty"),
        (b"\n\n", r"people\.csv is empty"),
        (b"name,age\n", "has a header and no rows"),
        (b"name,years\nann,3\n", r"row 1: columns \['age'\] are missing; the header names \['name', 'years'\]"),
        (b"name,age\nann,3\nbo\n", r"row 3: expected 2 fields \(name to age\), found 1"),
        (b"name,age\nann,3,4\n", r"row 2: expected 2 fields \(name to age\), found 3"),
        (b"name,age\nann,3\n\nbo,4\n", r"row 3: expected 2 fields \(name to age\), found 0"),
        (b"name,age,age\nann,3,3\nbo,4,5\n", "row 3, column 'age': '4' differs from what the second column"),
    ],
)
def test_a_missing_or_malformed_file_is_refused(path: Path, text: bytes | None, message: str) -> None:
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(ValueError, match=message):
        parsed(path, {"name": ANY, "age": ANY})


@pytest.mark.parametrize(
    ("reader", "value", "message"),
    [
        *((whole(0, 120), value, "is not a whole number") for value in ("three", "", "3.5", "inf", "nan")),
        *((whole(0, 120), value, "is out of range: expected 0 to 120") for value in ("-1", "121")),
        *((whole(0, 120, missing=True), value, "is not a whole number") for value in ("three", "nan")),
        *((decimal(-1.0, 9.0), value, "is not a number") for value in ("three", "", "nan", "-inf")),
        (decimal(-1.0, 9.0), "9.01", r"is out of range: expected -1\.0 to 9\.0"),
        (category(("3", "1")), "4", r"is an unknown category: expected one of \['1', '3'\]"),
        (category({"3": "three"}), "three", r"is an unknown category: expected one of \['3'\]"),
        (code("[0-9]", "one digit"), "33", "is no code: expected one digit"),
    ],
)
def test_a_value_that_a_column_cannot_hold_is_refused(path: Path, reader: Reader, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"row 3, column 'age': '{value}' {message}$"):
        table(path, f"name,age\nann,3\nbo,{value}\n", age=reader)


def test_the_first_odd_row_is_named_and_its_like_are_counted(path: Path) -> None:
    with pytest.raises(ValueError, match=r"row 3, column 'name': 'cy' is an .* \['ann', 'bo'\] \(1 more such row\)"):
        table(path, "name,age\nann,1\ncy,2\nbo,3\ndi,4\n", category(["bo", "ann"]))


@pytest.mark.parametrize(
    ("reader", "texts", "values"),
    [
        (whole(-9, 9), ["3", "-04"], [3, -4]),
        (whole(0, 9, missing=True), ["3", "", "4"], [3.0, np.nan, 4.0]),
        (decimal(-1.0, 9.0), ["3", "-0.25"], [3.0, -0.25]),
        (category({"1": "Female", "2": "Male"}), ["2", "1"], ["Male", "Female"]),
        (code("[A-Z]{1,3}", "one to three capitals"), ["AB", "ABC", "A"], ["AB", "ABC", "A"]),
    ],
)
def test_values_have_the_type_of_their_column(path: Path, reader: Reader, texts: list[str], values: list[Any]) -> None:
    read = table(path, "name,age\n" + "".join(f"ann,{text}\n" for text in texts), age=reader)["age"]
    pd.testing.assert_series_equal(read, pd.Series(values, name="age"))


def test_names_of_the_header_may_be_spelled_in_another_way(path: Path) -> None:
    path.write_text("AGE_NOW,name\n3,ann\n")
    read = parsed(path, {"age now": whole(0, 9)}, spelled=lambda name: name.lower().replace("_", " "))
    assert read.to_dict("list") == {"age now": [3]}
