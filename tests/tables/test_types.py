"""Columns of every type of Parquet and of data frames: they are read as numbers or names, or refused."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairness_audits.inputs.table import Attribute, Source, two_levels
from fairness_audits.tables import Engine, contingency, opened, predictions
from fairness_audits.tables.groupings import Grouping, Part
from tests.cli.places import run
from tests.errors import invalid

N = 24
ROLES = ("group", "label", "prediction", "score", "cluster", "weight")
DAY, LATER = datetime.datetime(2024, 1, 1), datetime.datetime(2024, 7, 1, 10, 30)
NAMED: dict[str, tuple[list[Any], pa.DataType, tuple[str, str]]] = {
    "date": ([DAY.date(), LATER.date()], pa.date32(), ("2024-01-01", "2024-07-01")),
    "midnight": ([DAY, DAY + datetime.timedelta(1)], pa.timestamp("ns"), ("2024-01-01", "2024-01-02")),
    "time stamp": ([DAY, LATER], pa.timestamp("us"), ("2024-01-01", "2024-07-01 10:30:00")),
    "zone": (
        [DAY, LATER],
        pa.timestamp("us", tz="America/New_York"),
        ("2024-01-01 00:00:00+00", "2024-07-01 10:30:00+00"),
    ),
    "time": ([DAY.time(), LATER.time()], pa.time64("us"), ("00:00:00", "10:30:00")),
    "decimal": ([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2), ("1.5", "2")),
    "wide": ([Decimal(10**19 + 1), Decimal(10**19 + 2)], pa.decimal128(30), (str(10**19 + 1), str(10**19 + 2))),
    "wide part": ([Decimal("1.50"), Decimal("2.00")], pa.decimal128(30, 2), ("1.5", "2")),
    "category": (["a", "b"], pa.dictionary(pa.int8(), pa.string()), ("a", "b")),
    "truth": ([False, True], pa.bool_(), ("False", "True")),
    "long": ([2**63, 2**63 + 1], pa.uint64(), (str(2**63), str(2**63 + 1))),
}
"""Two values, their type, and the names of the groups that they are."""
OTHER: dict[str, tuple[list[Any], pa.DataType]] = {
    "struct": ([{"a": 1}, {"a": 2}], pa.struct([("a", pa.int64())])),
    "list": ([[1.0], [2.0]], pa.list_(pa.float64())),
    "texts": ([["a"], ["b"]], pa.list_(pa.string())),
    "map": ([[("k", 1)], [("k", 2)]], pa.map_(pa.string(), pa.int64())),
    "binary": ([b"a", b"\xff"], pa.binary()),
}


def table_of(values: list[Any], kind: pa.DataType) -> pa.Table:
    """Rows with the two values in the column x, and a column for each role."""
    rows = np.arange(N)
    columns = {"label": rows // 2 % 2, "prediction": rows // 3 % 2, "group": rows % 2, "score": rows / N}
    columns |= {"cluster": rows, "weight": np.ones(N)}
    x = pa.array([values[row % 2] for row in rows], pa.string() if pa.types.is_dictionary(kind) else kind)
    return pa.table({**columns, "x": x.cast(kind)})


@pytest.mark.parametrize("name", NAMED)
def test_a_column_of_any_simple_type_names_the_same_groups_everywhere(name: str, tmp_path: Path) -> None:
    values, kind, names = NAMED[name]
    made = table_of(values, kind)
    pq.write_table(made, tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", made.to_pandas(), made.to_pandas(types_mapper=pd.ArrowDtype)):
        found = contingency(source, label="label", group="x", prediction="prediction")
        assert (found.groups, found.sizes.tolist()) == (names, [N // 2, N // 2])
        with opened(source, "duckdb") as table:
            fetched = predictions(table, label="label", group="x", prediction="prediction", weight="weight")
            assert fetched.groups == names
            table.add(Grouping("x*group", (Part("x"), Part("group"))))
            crossed = contingency(table, label="label", group="x*group", prediction="prediction")
        assert crossed.groups == tuple(f"{one}, {group}" for group, one in enumerate(names))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", OTHER)
def test_a_column_of_a_nested_or_binary_type_is_refused(name: str, role: str, tmp_path: Path) -> None:
    made = table_of(*OTHER[name])
    pq.write_table(made, tmp_path / "rows.parquet")
    roles = dict.fromkeys(("label", "group", "cluster", "weight")) | {"score" if role == "score" else "prediction": ""}
    asked: dict[str, Any] = {one: "x" if one == role else one for one in roles}
    for source in (tmp_path / "rows.parquet", made.to_pandas(), made.to_pandas(types_mapper=pd.ArrowDtype)):
        with opened(source, "duckdb") as table, invalid(column="x"):
            predictions(table, **asked)
        if role not in ("cluster", "weight"):
            with invalid(column="x"):
                contingency(
                    source, **{one: column for one, column in asked.items() if one not in ("cluster", "weight")}
                )
    if role == "group":
        with invalid(column="x"):
            two_levels(Source.read(tmp_path / "rows.parquet"), Attribute("x"))


@pytest.mark.parametrize("threshold", [None, 0.5])
@pytest.mark.parametrize("name", ["date", "time stamp", "zone", "time"])
def test_a_date_is_no_score(name: str, threshold: float | None, tmp_path: Path) -> None:
    pq.write_table(table_of(*NAMED[name][:2]), tmp_path / "rows.parquet")
    with invalid(option="score", column="x", row=0):
        contingency(tmp_path / "rows.parquet", label="label", group="group", score="x", threshold=threshold)


def test_the_engines_agree_on_types(tmp_path: Path, engine: Engine) -> None:
    made = table_of([DAY, LATER], pa.timestamp("us")).append_column("other", pa.array([[1]] * N))
    pq.write_table(made, tmp_path / "rows.parquet")
    found = contingency(tmp_path / "rows.parquet", label="label", group="x", prediction="prediction", engine=engine)
    assert found.groups == ("2024-01-01", "2024-07-01 10:30:00")
    with invalid(column="x", row=0):
        contingency(tmp_path / "rows.parquet", label="label", group="group", score="x", threshold=0.5, engine=engine)
    with invalid(column="other"):
        contingency(tmp_path / "rows.parquet", label="label", group="other", prediction="prediction", engine=engine)


def test_a_part_without_a_column_is_named(here: Path) -> None:
    (here / "parts").mkdir()
    made = table_of(["a", "b"], pa.string()).append_column("day", pa.array([DAY.date()] * N))
    pq.write_table(made, here / "parts" / "1.parquet")
    pq.write_table(made.drop_columns(["label", "day"]), here / "parts" / "2.parquet")
    with invalid(source="2.parquet", column="label"):
        contingency(here / "parts", label="label", group="x", prediction="prediction")
    # Columns that an audit does not use may differ.
    with opened(here / "parts", "duckdb") as table, invalid(option="score", column="x", row=0):
        contingency(table, label="prediction", group="group", score="x")
    words = "no--label --predictions parts --label label --prediction prediction --group x --metric accuracy"
    assert run("permutation", *words.split())[0] == 2
