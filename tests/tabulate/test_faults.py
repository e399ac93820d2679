"""What is wrong with a source is said by column, number of rows and first rows, the same with every engine."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.tabulate import Engine, contingency, opened, predictions, spark_engine

ASKED: dict[str, Any] = {"label": "y", "group": "sex", "score": "p", "bins": 10}


def _spoiled(frame: pd.DataFrame, column: str, rows: list[int], values: Any) -> pd.DataFrame:
    changed = frame[["sex", "y", "p"]].copy()
    if changed[column].dtype.kind in "if" and not isinstance(values, str):
        changed[column] = changed[column].astype(float)
    else:
        changed[column] = changed[column].astype(object)
    changed.loc[rows, column] = values
    if isinstance(values, str):
        changed[column] = changed[column].astype(str)
    return changed


FAULTS = {
    "score missing": (
        ("p", [3, 7, 500], np.nan),
        r"column 'p' \(score\) is missing in 3 of 600 rows, counted from 0: 3, 7, 500: fill them in",
    ),
    "label missing": (("y", [0], np.nan), r"column 'y' \(label\) is missing in 1 of 600 rows, counted from 0: 0: fill"),
    "group missing": (
        ("sex", [9, 8], None),
        r"column 'sex' \(group\) is missing in 2 of 600 rows, counted from 0: 8, 9",
    ),
    "score outside": (
        ("p", [1, 2, 3, 4, 5, 6], [1.5, -2, np.inf, 7, 7, 7]),
        r"\(score\) is outside \[0, 1\] in 6 of 600 rows, counted from 0: 1 \(1.5\), 2 \(-2(.0)?\), 3 \(inf\), "
        r"4 \(7(.0)?\), 5 \(7(.0)?\) and 1 more: mend these rows",
    ),
    "score text": (
        ("p", [4, 5], "0,5"),
        r"'p' \(score\) is not a number in 2 of 600 rows, counted from 0: 4 \(0,5\), 5",
    ),
    "label of three": (
        ("y", [11, 12], 2.0),
        r"column 'y' \(label\) must have two classes, 0 and 1, found 3 values, .*'2.0' is in 2 of 600 rows, "
        "counted from 0: 11, 12",
    ),
    "one group": (
        ("sex", list(range(600)), "male"),
        r"column 'sex' \(group\) is 'male' in all 600 rows: there is nothing",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_faulty_rows_are_counted_and_placed(
    fault: str, suffix: str, tmp_path: Path, frame: pd.DataFrame, engine: Engine
) -> None:
    spoiled, message = FAULTS[fault]
    bad = _spoiled(frame, *spoiled)
    path = tmp_path / f"bad.{suffix}"
    bad.to_csv(path, index=False) if suffix == "csv" else bad.to_parquet(path)
    with opened(path, engine) as table:
        with pytest.raises(ValueError, match=message):
            contingency(table, **ASKED)
        rows = {key: value for key, value in ASKED.items() if key != "bins"}
        with pytest.raises(ValueError, match=message):
            predictions(table, **rows, bounds=(0.0, 1.0))


def test_a_faulty_row_is_placed_in_its_file(tmp_path: Path, frame: pd.DataFrame, engine: Engine) -> None:
    for suffix in ("csv", "parquet"):
        for name, part in (("a", frame[:400]), ("b", _spoiled(frame[400:].reset_index(drop=True), "p", [50], 3.0))):
            path, plain = tmp_path / f"{name}.{suffix}", part[["sex", "y", "p"]]
            plain.to_csv(path, index=False) if suffix == "csv" else plain.to_parquet(path)
        with pytest.raises(ValueError, match=rf"in 1 of 600 rows, counted from 0: 50 of b.{suffix} \(3(.0)?\)"):
            contingency(tmp_path / f"*.{suffix}", engine=engine, **ASKED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"score": "pp"},
            r"score names 'pp', but .*whole.csv has no such column \(did you mean 'p'\?\). It has: sex, race",
        ),
        ({"score": "sex"}, "column 'sex' is given as group and as score: it can only be one of them"),
        (
            {"label": "income"},
            r"\(label\) holds <=50K, >50K, not 0 and 1: say which of them counts as 1, with positive",
        ),
        (
            {"label": "income", "positive": "50K"},
            r"positive is '50K', but column 'income' \(label\) of .* holds <=50K, >50K",
        ),
        ({"label": "race"}, r"column 'race' \(label\) must have two classes, 0 and 1, found 3 values"),
        ({"group": "race", "against": "z"}, "the group 'z' is not in column 'race' of .*: it holds a, b, c"),
        ({"group": "logit"}, r"column 'logit' \(group\) has 600 values, .* expected at most 50 groups. Band a number"),
        (
            {"group": "logit", "cells": 500},
            r"more than 500 cells. Distinct values: 'logit' about \d+, 'y' about 2, 'p' about",
        ),
        ({"score": "logit", "bins": None, "cells": 500}, "Count scores in bins, take a threshold, or read the rows"),
        ({"score": None, "bins": None, "prediction": "p"}, r"column 'p' \(prediction\) holds 0.0, .* give a threshold"),
        ({"prediction": "made"}, "expected a score or a prediction column, found both"),
        ({"score": None}, "expected a score or a prediction column, found neither"),
        ({"score": None, "prediction": "made"}, "bins are for scores, but 'made' holds predictions"),
        ({"threshold": 0.5}, "expected a threshold or bins, found both"),
        ({"bins": 1}, "expected at least 2 bins, found 1"),
        ({"bounds": (1.0, 0.0)}, "expected the scores' lower bound below the upper one, found 1 and 0"),
        ({"bounds": (0.0, np.inf)}, "bins need finite bounds, found 0 to inf"),
        ({"bins": None, "threshold": np.nan}, "expected a finite threshold, found nan"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said(change: dict[str, Any], message: str, folder: Path, engine: Engine) -> None:
    with pytest.raises(ValueError, match=message):
        contingency(folder / "whole.csv", engine=engine, **(ASKED | change))


UNREADABLE = {
    "short.csv": (
        "sex,y,p\nm,1,.3\nf,0\n",
        r"short.csv.*(Line: 3|Malformed CSV record: f,0|'p' \(score\) is missing in 1)",
    ),
    "long.csv": ("sex,y,p\nm,1,.3\nf,0,.1,9\n", r"long.csv.*(Line: 3|Malformed CSV record: f,0,.1,9|in line 3, saw 4)"),
    "none.csv": ("", "none.csv is empty: expected a line of column names"),
    "head.csv": ("sex,y,p\n", "head.csv has no rows: an audit needs rows of data"),
    "semi.csv": ("sex;y;p\nm;1;.3\n", "has no such column .are its columns separated by something other than commas"),
    "text.parquet": ("not really", r"text.parquet cannot be read \(.*(Parquet|parquet)"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_file_is_named(name: str, tmp_path: Path, engine: Engine) -> None:
    content, message = UNREADABLE[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        contingency(tmp_path / name, engine=engine, **ASKED)


def test_a_source_that_is_not_there_is_said(tmp_path: Path, engine: Engine) -> None:
    with pytest.raises(
        ValueError, match=r"(there is no file .*absent.parquet|absent.parquet cannot be read .*not exist)"
    ):
        contingency(tmp_path / "absent.parquet", engine=engine, **ASKED)


@pytest.mark.parametrize("engine", ["duckdb", "pandas"])
def test_a_broken_archive_is_not_mistaken_for_wrong_text(tmp_path: Path, engine: Engine) -> None:
    whole = gzip.compress(b"sex,y,p\n" + b"m,1,.3\n" * 100)
    for content, message in (
        (b"sex,y,p\nm,1,.3\n", "cannot be read .BadGzipFile: .*: write the file again"),
        (whole[:12], "cannot be read .EOFError: .*: write the file again"),
        (gzip.compress(b"sex,\xe9,p\nm,1,.3\n"), "is not UTF-8 text .invalid continuation byte.: save it as UTF-8"),
    ):
        (tmp_path / "rows.csv.gz").write_bytes(content)
        with pytest.raises(ValueError, match=f"rows.csv.gz {message}"):
            contingency(tmp_path / "rows.csv.gz", engine=engine, **ASKED)


@pytest.mark.parametrize("engine", ["duckdb", "pandas"])
def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "a.csv").write_text("sex,y,p\nm,1,.3\n")
    (tmp_path / "b.csv").write_text("sex,p,y\nf,.3,0\n")
    with pytest.raises(ValueError, match=r"b.csv has the columns sex, p, y, but .*a.csv has sex, y, p: files that are"):
        contingency(tmp_path, engine=engine, **ASKED)
    (tmp_path / "c.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match="expected files of one kind, found"):
        contingency(tmp_path, engine=engine, **ASKED)
    (tmp_path / "d.txt").write_text("")
    with pytest.raises(ValueError, match=r"expected files ending in .csv, .csv.gz, .parquet, .pq, found .*d.txt"):
        contingency(tmp_path / "d.txt", engine=engine, **ASKED)
    for head, message in (("sex,,p", "column 1 .counted from 0. has no name"), ("sex,p,p", "more than one column")):
        (tmp_path / "e.csv").write_text(f"{head}\nm,1,.3\n")
        with pytest.raises(ValueError, match=message):
            contingency(tmp_path / "e.csv", engine=engine, **ASKED)


def test_limits_that_the_engine_does_not_take_are_said(folder: Path) -> None:
    with pytest.raises(ValueError, match="DuckDB does not take 'lots' as memory_limit: "):
        contingency(folder / "whole.csv", memory="lots", **ASKED)
    with pytest.raises(ValueError, match="expected an engine among duckdb, spark, pandas; found 'abacus'"):
        contingency(folder / "whole.csv", engine="abacus", **ASKED)  # type: ignore[arg-type]


def test_a_missing_spark_is_said_with_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    with pytest.raises(
        ValueError, match=r"pyspark is not installed: pip install --editable '\.\[spark\]' in the project"
    ):
        contingency(folder / "whole.csv", engine="spark", **ASKED)
    monkeypatch.setitem(__import__("sys").modules, "pyspark", np)  # anything that imports
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert spark_engine.unavailable() == (
        "Spark needs Java 17 or newer, and there is none: install a JDK and set JAVA_HOME (or use the engine duckdb)"
    )
