"""Whatever is odd about a raw file is an error that names file, row and column; nothing is read around it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.datasets import raw_table


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "people.csv"


def table(path: Path, text: str, header: bool = True) -> raw_table.RawTable:
    path.write_text(text, encoding="utf-8")
    return raw_table.read(path, ("name", "age"), header=header, comment="|")


def test_columns_are_found_by_name_and_quotes_and_spaces_are_understood(path: Path) -> None:
    read = table(path, 'age, city,name\n3,"Lima, Peru", ann\n04,,"bo"\n\n\n')
    assert read.category("name", ["ann", "bo"]).tolist() == ["ann", "bo"]
    ages = read.integer("age", 0, 9)
    assert ages.tolist() == [3, 4]
    assert ages.dtype == np.int64


def test_without_a_header_columns_go_by_position_and_top_comments_are_skipped(path: Path) -> None:
    read = table(path, "|made by hand\nann,3\nbo,4\n", header=False)
    assert read.texts["name"].tolist() == ["ann", "bo"]
    assert read.lines.tolist() == [2, 3]


def test_text_that_looks_like_a_missing_value_is_text(path: Path) -> None:
    read = table(path, "name,age\nNA,1\nN/A,2\nnull,3\n,4\n")
    assert read.texts["name"].tolist() == ["NA", "N/A", "null", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"people\.csv is empty"),
        ("\n\n", r"people\.csv is empty"),
        ("name,age\n", "has a header and no rows"),
        ("name,years\nann,3\n", r"row 1: columns \['age'\] are missing; the header names \['name', 'years'\]"),
        ("name,age\nann,3\nbo\n", r"row 3: expected 2 fields \(name to age\), found 1"),
        ("name,age\nann,3,4\n", r"row 2: expected 2 fields \(name to age\), found 3"),
        ("name,age\nann,3\n\nbo,4\n", r"row 3: expected 2 fields \(name to age\), found 0"),
        ("name,age,age\nann,3,3\nbo,4,5\n", "row 3, column 'age': '4' differs from what the second column"),
        ('name,age\n"ann,3\n', "is not comma-separated UTF-8 text"),
    ],
)
def test_a_malformed_file_is_refused(path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table(path, text)


def test_a_missing_and_an_undecodable_file_are_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=r"people\.csv is missing: run the fetch stage"):
        raw_table.read(path, ("name",), header=True)
    path.write_bytes(b"name,age\n\xff\xfe,3\n")
    with pytest.raises(ValueError, match="is not comma-separated UTF-8 text"):
        raw_table.read(path, ("name",), header=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("three", "row 3, column 'age': 'three' is not a whole number"),
        ("", "row 3, column 'age': '' is not a whole number"),
        ("3.5", "row 3, column 'age': '3.5' is not a whole number"),
        ("inf", "row 3, column 'age': 'inf' is not a whole number"),
        ("nan", "row 3, column 'age': 'nan' is not a whole number"),
        ("-1", "row 3, column 'age': '-1' is out of range: expected 0 to 120"),
        ("121", "row 3, column 'age': '121' is out of range: expected 0 to 120"),
    ],
)
def test_what_is_no_number_or_out_of_range_is_refused(path: Path, value: str, message: str) -> None:
    read = table(path, f"name,age\nann,3\nbo,{value}\n")
    with pytest.raises(ValueError, match=message):
        read.integer("age", 0, 120)


def test_an_unknown_category_is_refused_and_its_like_are_counted(path: Path) -> None:
    read = table(path, "name,age\nann,1\ncy,2\nbo,3\ndi,4\n")
    message = r"row 3, column 'name': 'cy' is an unknown category: expected one of \['ann', 'bo'\] \(1 more such row\)"
    with pytest.raises(ValueError, match=message):
        read.category("name", ["bo", "ann"])


def test_a_selection_of_rows_keeps_their_line_numbers(path: Path) -> None:
    read = table(path, "name,age\nann,1\nbo,\ncy,x\n")
    with pytest.raises(ValueError, match="row 4, column 'age': 'x'"):
        read.rows(read.texts["age"] != "").integer("age", 0, 9)


def test_names_of_the_header_may_be_spelled_in_another_way(path: Path) -> None:
    path.write_text("AGE_NOW,name\n3,ann\n")
    read = raw_table.read(path, ("age now",), header=True, spelled=lambda name: name.lower().replace("_", " "))
    assert list(read.texts) == ["age now"]
    assert read.integer("age now", 0, 9).tolist() == [3]


def test_decimals_are_numbers_within_their_limits(path: Path) -> None:
    read = table(path, "name,age\nann,3\nbo,-0.25\n")
    ages = read.decimal("age", -1.0, 9.0)
    assert ages.tolist() == [3.0, -0.25]
    assert ages.dtype == np.float64


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("3,5", "row 2: expected 2 fields"),
        ("three", "row 2, column 'age': 'three' is not a number"),
        ("", "row 2, column 'age': '' is not a number"),
        ("nan", "row 2, column 'age': 'nan' is not a number"),
        ("-inf", "row 2, column 'age': '-inf' is not a number"),
        ("9.01", r"row 2, column 'age': '9\.01' is out of range: expected -1\.0 to 9\.0"),
    ],
)
def test_what_is_no_decimal_or_beyond_its_limits_is_refused(path: Path, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table(path, f"name,age\nann,{value}\n").decimal("age", -1.0, 9.0)


def test_a_code_matches_its_pattern_as_a_whole(path: Path) -> None:
    read = table(path, "name,age\nAB,1\nABC,2\nA,3\n")
    assert read.code("name", "[A-Z]{1,3}", "one to three capitals").tolist() == ["AB", "ABC", "A"]
    with pytest.raises(ValueError, match=r"row 3, column 'name': 'ABC' is no code: expected two capitals \(1 more"):
        read.code("name", "[A-Z]{2}", "two capitals")
