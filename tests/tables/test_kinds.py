"""The same table in a frame of any library gives the same counts, rows and errors as in a file."""

from collections.abc import Callable
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fairness_audits as fa
from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.errors import InvalidInput
from fairness_audits.tables import contingency, opened, predictions
from fairness_audits.tables.frame import Table
from tests.errors import invalid

SIZE = 120
ROWS = np.arange(SIZE)
TYPES = {
    **{"y": "boolean", "count": "Int16", "d": "int8", "p": "float64", "share": "float32", "written": "str"},
    **{"band": "category", "place": "str", "day": "datetime64[us]", "gap": "Int64", "hole": "float64", "odd": "str"},
}
TABLE = pd.DataFrame(
    {
        "y": ROWS % 2 == 0,
        "count": ROWS % 12,
        "d": ROWS // 2 % 2,
        "p": ROWS * 7 % SIZE / SIZE,
        "share": ROWS % 10 / 10,
        "written": [f" {number / 4}" for number in ROWS % 8],
        "band": np.array(["low", "high", "None"])[ROWS % 3],
        "place": np.array([" north", "north", "São & Paulo", "01", "1.0"])[ROWS % 5],
        "day": np.array(["2024-01-02", "2023-12-31"], dtype="datetime64[us]")[ROWS // 3 % 2],
        "gap": pd.array([None if row == 7 else row % 3 for row in ROWS], dtype="Int64"),
        "hole": [np.nan if row in (11, 5) else row / 2 for row in ROWS],
        "odd": ["?" if row == 9 else str(row / 2) for row in ROWS],
    }
).astype(TYPES)


def _arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _polars(frame: pd.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(_arrow(frame))


def _spark(frame: pd.DataFrame) -> Any:
    from pyspark.sql import SparkSession

    plain = frame.astype({"band": "str", "written": "str"}).astype(object).where(frame.notna(), None)
    kinds = "y boolean, count smallint, d tinyint, p double, share float, written string, band string, place string"
    plain["day"] = frame["day"].dt.to_pydatetime()
    rows = [tuple(value.item() if hasattr(value, "item") else value for value in row) for row in plain.to_numpy()]
    session = SparkSession.builder.getOrCreate()
    return session.createDataFrame(rows, f"{kinds}, day timestamp, gap bigint, hole double, odd string")


CONNECTION = duckdb.connect()
"""Early versions of DuckDB close a connection that only a relation refers to."""

KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas of Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda frame: frame.astype({"place": object, "written": object, "band": object}),
    "Arrow": _arrow,
    "polars": _polars,
    "lazy polars": lambda frame: _polars(frame).lazy(),
    "DuckDB": lambda frame: CONNECTION.from_arrow(_arrow(frame)),
    "Spark": _spark,
}


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] if name == "Spark" else []) for name in KINDS])
def frame(request: pytest.FixtureRequest) -> Any:
    if request.param == "Spark":
        request.getfixturevalue("spark")
    return KINDS[request.param](TABLE)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    TABLE.to_parquet(path)
    return path


ASKED: dict[str, dict[str, Any]] = {
    "nullable types": {"label": "y", "group": "count", "prediction": "d"},
    "category": {"label": "y", "group": "band", "prediction": "d"},
    "text with spaces": {"label": "d", "group": "place", "score": "p", "threshold": 0.3},
    "single precision": {"label": "d", "group": "share", "prediction": "y"},
    "threshold in single precision": {"label": "d", "group": "band", "score": "share", "threshold": 0.7},
    "dates": {"label": "d", "group": "day", "score": "p"},
    "numbers as text": {"label": "y", "group": "band", "score": "written"},
    "numbers as text in groups": {"label": "y", "group": "written", "prediction": "d"},
    "one against the rest": {"label": "y", "group": "place", "prediction": "d", "against": "north"},
}


def _same(one: Counts, other: Counts) -> None:
    assert one.groups == other.groups
    np.testing.assert_array_equal(one.table, other.table)
    np.testing.assert_array_equal(one.score, other.score)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_every_kind_of_frame_gives_the_counts_and_the_rows_of_the_file(
    asked: dict[str, Any], frame: Any, file: Path
) -> None:
    expected = contingency(file, **asked)
    _same(contingency(frame, **asked), expected)
    with opened(frame, "duckdb") as table:
        rows = predictions(table, **asked)
    assert rows.groups == expected.groups
    assert rows.sizes.tolist() == expected.sizes.tolist()
    if asked["group"] == "place" and "against" not in asked:
        assert expected.groups == ("01", "1", " north", "São & Paulo", "north")


TYPED = {
    "decimal": pa.array([Decimal("1.50"), Decimal("2.00")] * 6, pa.decimal128(10, 2)),
    "long decimal": pa.array([Decimal("1.50"), Decimal("2.00")] * 6, pa.decimal128(30, 2)),
    "moment": pa.array([datetime(2024, 1, 2, 3, 4, 5, 250000), datetime(2024, 1, 2)] * 6, pa.timestamp("us")),
    "moment of a zone": pa.array([datetime(2024, 1, 2, 3, 4, 5), datetime(2024, 1, 2)] * 6, pa.timestamp("us", "UTC")),
    "time": pa.array([time(3, 4, 5), time(0, 0)] * 6, pa.time64("us")),
    "half": pa.array(np.array([0.1, 0.7] * 6, np.float16)),
    "whole": pa.array([2**53, 1] * 6, pa.uint64()),
    "dictionary": pa.array(["b", "a"] * 6).dictionary_encode(),
}


@pytest.mark.parametrize("column", TYPED.values(), ids=TYPED)
def test_levels_of_any_type_have_the_same_names_in_every_kind_of_frame(column: pa.Array) -> None:
    rows = pa.table({"y": [0, 0, 1, 1] * 3, "g": column, "d": [0, 1, 1] * 4})
    asked: dict[str, Any] = {"label": "y", "group": "g", "prediction": "d"}
    expected = contingency(rows, **asked)
    _same(contingency(pl.DataFrame(rows), **asked), expected)
    if column.type != pa.float16():  # DuckDB has no half precision
        _same(contingency(CONNECTION.from_arrow(rows), **asked), expected)


@pytest.mark.parametrize("column", [[[1], [2]], [b"a", b"b"], [{"a": 1}, {"a": 2}]], ids=str)
def test_nested_and_binary_columns_are_refused_in_every_kind_of_frame(column: list[Any]) -> None:
    rows = pa.table({"y": [0, 0, 1, 1] * 3, "g": column * 6, "d": [0, 1, 1] * 4})
    for source in (rows, pl.DataFrame(rows), CONNECTION.from_arrow(rows), rows.to_pandas()):
        with invalid(column="g"):
            contingency(source, label="y", group="g", prediction="d")


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        ({"group": "gap"}, {"option": "group", "column": "gap", "row": 7}),
        ({"score": "hole"}, {"option": "score", "column": "hole", "row": 5}),
        ({"score": "odd"}, {"option": "score", "column": "odd", "row": 9}),
        ({"score": "p", "bounds": (0.0, 0.5)}, {"option": "score", "column": "p", "row": 9}),
        ({"label": "count"}, {"option": "label", "column": "count", "row": 10}),
        ({"group": "lands"}, {"option": "group", "column": "lands", "row": None}),
    ],
    ids=str,
)
def test_every_kind_of_frame_names_the_same_column_and_row(
    asked: dict[str, Any], fields: dict[str, Any], frame: Any
) -> None:
    if type(frame).__module__.startswith("pyspark"):  # its rows have no order
        fields = {**fields, "row": None}
    with invalid(**fields):
        contingency(frame, **({"label": "y", "group": "band", "score": "p"} | asked))


@pytest.mark.parametrize("kind", ["lazy polars", "DuckDB"])
def test_only_counts_of_a_lazy_frame_are_fetched(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    large = pd.concat([TABLE] * 50, ignore_index=True)
    expected = fa.permutation_test(large["y"], prediction=large["d"], group=large[["band"]], metric=["tpr", "fpr"])
    source, heights, collect = KINDS[kind](large), list[int](), pl.LazyFrame.collect

    def counted(query: pl.LazyFrame, **options: Any) -> pl.DataFrame:
        found = collect(query, **options)
        heights.append(found.height)
        return found

    monkeypatch.setattr(pl.LazyFrame, "collect", counted)
    monkeypatch.setattr(Table, "arrays", None)
    found = fa.permutation_test("y", prediction="d", group="band", metric=["tpr", "fpr"], data=source)
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
    assert max(heights, default=0) <= 12


def test_audits_take_the_names_of_the_columns_of_a_frame(frame: Any) -> None:
    crossed = {"metric": "selection_rate", "cross": True}
    named = fa.permutation_test(prediction="d", group=["band", "y"], data=frame, **crossed)  # type: ignore[arg-type]
    alone = fa.permutation_test(prediction=TABLE["d"], group=TABLE[["band", "y"]], **crossed)  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(named.to_frame(), alone.to_frame())
    for wrong in ({"y": TABLE["y"]}, {"prediction": ["d", "y"]}, {"group": 3}):
        with pytest.raises(InvalidInput) as caught:
            fa.permutation_test(**{"prediction": "d", "group": "band", "metric": "tpr", "data": frame} | wrong)  # type: ignore[arg-type]
        assert caught.value.option == next(iter(wrong))


def test_subgroups_and_comparisons_take_the_names_of_the_columns_of_a_frame() -> None:
    source = KINDS["lazy polars"](TABLE)
    found = fa.worst_subgroups(["band", "place"], prediction="d", data=source, draws=99).to_frame()
    alone = fa.worst_subgroups(TABLE[["band", "place"]], prediction=TABLE["d"], draws=99).to_frame()
    pd.testing.assert_frame_equal(found, alone)
    versions = {"metric": ["tpr"], "draws": 239}
    found = fa.compare("y", first="d", second="y", group="band", data=source, **versions).to_frame()  # type: ignore[arg-type]
    alone = fa.compare(TABLE["y"], first=TABLE["d"], second=TABLE["y"], group=TABLE["band"], **versions).to_frame()  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(found, alone)
