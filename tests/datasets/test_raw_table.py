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
