"""A data file is read to the last bit or refused with its name, the place and a remedy."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.cli.table import read_table, sha256


def test_csv_and_parquet_hold_the_same_numbers_to_the_last_bit(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.arange(-100, 100).repeat(10)
    table = pd.DataFrame({"x": numbers, "name": ["a", "é"] * 1000, "flag": [True, False] * 1000})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    table.to_parquet(tmp_path / "t.parquet")
    reference = read_table(tmp_path / "t.parquet")
    assert reference["x"].to_numpy().tobytes() == numbers.tobytes()
    for name in ("t.csv", "t.csv.gz", "bom.csv"):
        pd.testing.assert_frame_equal(read_table(tmp_path / name), reference, check_exact=True)


def test_the_index_of_a_parquet_file_is_no_row_number(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1, 2]}, index=[7, 9]).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").index.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xlsx", b"x", r"expected a file ending in \.csv, .* found .*t\.xlsx"),
        ("t.csv", b"", r"t\.csv is empty: expected a line of column names"),
        ("t.csv", b"a,b\n", r"t\.csv has no rows"),
        ("t.csv", b",a\n0,1\n", r"column 0 \(counted from 0\) has no name\..*index=False"),
        ("t.csv", b"a,b,a\n1,2,3\n", r"more than one column is called a"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", r"not a well-formed CSV file \(Expected 2 fields in line 3, saw 3\)"),
        ("t.csv", b"a,b\n1,\xe9\n", r"t\.csv is not UTF-8 text"),
        ("t.csv.gz", b"a,b\n1,2\n", r"t\.csv\.gz cannot be read \(BadGzipFile: .*write the file again"),
        ("t.parquet", b"a,b\n1,2\n", r"t\.parquet cannot be read \(ArrowInvalid: .*write the file again"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no file .*absent\.csv"):
        read_table(tmp_path / "absent.csv")


def test_checksum_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert sha256(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()
