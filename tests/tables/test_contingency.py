"""The same counts and rows from every engine and every kind of source, and they are the right ones."""

import gzip
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.audits.robustness_bias.points import partition_of
from fairness_audits.inputs.table import Source
from fairness_audits.tables import Engine, contingency, numbers, opened, predictions, spark_engine
from fairness_audits.tables.groupings import Grouping, Part, grouping
from fairness_audits.tables.rows import grouped
from tests.errors import invalid

SOURCES = ("whole.csv", "whole.parquet", "part-*.csv", "part-*.parquet")
READINGS: tuple[dict[str, Any], ...] = (
    {"prediction": "made"},
    {"score": "p", "threshold": 0.29},
    {"score": "p"},
    {"score": "logit"},
)


def _same(one: Counts, other: Counts) -> bool:
    return one.groups == other.groups and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("table", "score")
    )


def _brute(frame: pd.DataFrame, group: str, cell: np.ndarray, cells: int) -> np.ndarray:
    """The table by one loop over the rows."""
    levels = sorted(frame[group].unique())
    table = np.zeros((len(levels), 2, cells), dtype=int)
    for g, y, k in zip(frame[group], frame["y"], cell, strict=True):
        table[levels.index(g), y, k] += 1
    return table


@pytest.mark.parametrize("asked", READINGS, ids=str)
def test_every_source_gives_the_table_of_a_loop_over_the_rows(
    asked: dict[str, Any], engine: Engine, folder: Path, frame: pd.DataFrame
) -> None:
    sources = [*(folder / name for name in (SOURCES[1:3] if engine == "spark" else SOURCES)), frame]
    found = [contingency(source, label="y", group="age", engine=engine, **asked) for source in sources]
    if "prediction" in asked:
        cell = frame["made"].to_numpy()
    elif "threshold" in asked:
        cell = (frame["p"] >= 0.29).to_numpy(int)
    else:
        cell = np.unique(frame[asked["score"]], return_inverse=True)[1]
    table = _brute(frame, "age", cell, cell.max() + 1)
    decided = "prediction" in asked or "threshold" in asked
    occupied = table if decided else table[..., table.sum(axis=(0, 1)) > 0]
    assert found[0].groups == ("9", "10", "11", "30", "40", "100")  # numbers by their size, even from text
    np.testing.assert_array_equal(found[0].table, occupied)
    assert all(_same(found[0], other) for other in found[1:])


def test_one_group_against_the_rest_is_the_sum_of_the_others(folder: Path, engine: Engine) -> None:
    asked = partial(contingency, folder / "whole.csv", label="y", group="race", prediction="made", engine=engine)
    every, name = asked(), "c \"d' \\e"
    one = asked(against=name)
    assert one.groups == (name, f"not {name}")
    np.testing.assert_array_equal(one.table, np.stack([every.table[2], every.table[0] + every.table[1]]))


@pytest.mark.parametrize(("label", "positive"), [("income", ">50K"), ("truth", None), ("truth", "True"), ("y", "1.0")])
def test_a_label_by_other_names_gives_the_same_counts(
    label: str, positive: str | None, folder: Path, engine: Engine
) -> None:
    plain = contingency(folder / "whole.csv", label="y", group="sex", prediction="made", engine=engine)
    for name in SOURCES[:2]:
        asked: dict[str, Any] = {"label": label, "positive": positive, "group": "sex", "prediction": "made"}
        assert _same(plain, contingency(folder / name, engine=engine, **asked))
    swapped = contingency(folder / name, label="y", positive="0", group="sex", score="p", engine=engine)
    direct = contingency(folder / name, label="y", group="sex", score="p", engine=engine)
    np.testing.assert_array_equal(swapped.table, direct.table[:, ::-1])


def test_names_and_values_are_only_ever_names_and_values(tmp_path: Path, engine: Engine) -> None:
    names = ("y'; DROP TABLE x; --", 'g"`\\', "p) OR 1=1")
    values = ["o'clock", 'a"; --', "back\\slash", "{}", "%s", "Ünïcode"]
    frame = pd.DataFrame({names[0]: [0, 1] * 6, names[1]: values * 2, names[2]: np.linspace(0, 1, 12)})
    for source in (tmp_path / "it's.parquet", tmp_path / "it's.csv"):
        frame.to_csv(source, index=False) if source.suffix == ".csv" else frame.to_parquet(source)
        asked: dict[str, Any] = {"label": names[0], "group": names[1], "score": names[2], "engine": engine}
        counts = contingency(source, threshold=0.5, **asked)
        assert counts.groups == tuple(sorted(values))
        assert counts.table.sum() == 12
        assert contingency(source, against="o'clock", **asked).sizes.tolist() == [2, 10]


def test_numbers_are_read_to_the_last_bit(tmp_path: Path, engine: Engine) -> None:
    scores = np.random.default_rng(0).random(200)
    frame = pd.DataFrame({"y": [0, 1] * 100, "g": [0, 0, 1, 1] * 50, "p": scores})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    counts = contingency(tmp_path / "rows.csv", label="y", group="g", score="p", engine=engine)
    np.testing.assert_array_equal(counts.score, np.sort(scores))
    at = contingency(tmp_path / "rows.csv", label="y", group="g", score="p", threshold=float(scores[7]), engine=engine)
    assert at.table[..., 1].sum() == (scores >= scores[7]).sum()


def test_files_of_other_types_are_not_squeezed_into_the_first_ones(tmp_path: Path, engine: Engine) -> None:
    pd.DataFrame({"y": [0, 1], "g": ["a", "b"], "p": [0, 1]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"y": [0, 1], "g": ["a", "b"], "p": [0.25, 0.75]}).to_parquet(tmp_path / "2.parquet")
    if engine == "spark":
        pytest.skip("Spark refuses to merge integers with doubles, with a message of its own")
    counts = contingency(tmp_path, label="y", group="g", score="p", engine=engine)
    np.testing.assert_array_equal(counts.score, [0, 0.25, 0.75, 1])


def test_a_value_of_a_data_frame_is_the_same_in_a_column_of_any_type() -> None:
    frame = pd.DataFrame({"y": [0, 1] * 4, "g": [1, 1, 2, 2] * 2, "p": np.arange(8) / 8})
    asked: dict[str, Any] = {"label": "y", "group": "g", "score": "p"}
    for types in (
        "category",
        object,
        {"y": "boolean", "g": "Int8", "p": "Float32"},
        {"y": bool, "g": str, "p": "half"},
    ):
        assert _same(contingency(frame, **asked), contingency(frame.astype(types), **asked))  # type: ignore[call-overload]
    bands = contingency(frame.assign(g=pd.cut(frame["g"], [0, 1, 2])), **asked)
    assert bands.groups == ("(0, 1]", "(1, 2]")
    with invalid(option="group", column="g", row=2):
        contingency(frame.assign(g=[1, 1, None, 2.0] * 2).astype(object), **asked)
    # Numbers are numbers, in a column of objects as in any other; beside text they may be a mistake.
    with invalid(column="g", row=2):
        contingency(frame.assign(g=[1, 1, "x", 2.0] * 2), **asked)


def test_names_may_differ_in_case_alone(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0, 1] * 2, "p": [0.1, 0.9] * 2, "sex": [*"aabb"], "Sex": [*"qqqr"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for name in ("one", "two"):
        frame.to_parquet(tmp_path / f"{name}.parquet")
        frame = frame[["y", "p", "Sex", "sex"]]
    for source in (frame, tmp_path / "rows.csv", tmp_path / "one.parquet"):
        asked = partial(contingency, source, label="y", score="p")
        assert [asked(group=group).sizes.tolist() for group in ("sex", "Sex")] == [[2, 2], [3, 1]]
        with opened(source, "duckdb") as table:
            assert table.arrays(["Sex", "sex"])["Sex"].tolist() == [*"qqqr"]
    # DuckDB would take the one file's sex for the other's Sex.
    with invalid(column="sex"):
        contingency(str(tmp_path / "*.parquet"), label="y", group="sex", score="p")


def test_a_whole_number_is_one_group_in_all_files_and_a_code_is_another(tmp_path: Path, engine: Engine) -> None:
    for name, one in (("1.csv", "1"), ("2.csv", "1.0")):
        (tmp_path / name).write_text(f"y,d,g\n0,0,{one}\n1,1,{one}\n1,1,01\n")
    asked = partial(contingency, tmp_path / "*.csv", label="y", group="g", prediction="d", engine=engine)
    assert (asked().groups, asked().sizes.tolist()) == (("01", "1"), [2, 4])
    assert [asked(against=level).sizes.tolist() for level in ("1", "1.0", "01")] == [[4, 2], [4, 2], [2, 4]]
    with invalid(column="g"):
        asked(against="001")


def test_true_and_false_are_one_group_each_however_they_are_written(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "1.csv").write_text("y,d,g,h\nTRUE,0,true,a\ntrue,1,TRUE,b\nfalse,1,False,a\nFalse,0,false,a\n")
    with opened(tmp_path / "1.csv", engine) as table:
        table.add(Grouping("g*h", (Part("g"), Part("h"))))
        for positive in (None, "true"):
            found = contingency(table, label="y", group="g", prediction="d", positive=positive)
            assert found.groups == ("False", "True")
            assert found.table.sum(axis=2).tolist() == [[2, 0], [0, 2]]
        crossed = contingency(table, label="y", group="g*h", prediction="d")
    assert crossed.groups == ("False, a", "True, a", "True, b")


def test_a_little_memory_is_enough_for_many_groups_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"y": rng.integers(0, 2, 300_000), "g": rng.integers(0, 3, 300_000), "p": rng.random(300_000)})
    frame.to_parquet(tmp_path / "rows.parquet")
    small = contingency(tmp_path / "rows.parquet", label="y", group="g", score="p", memory="60MB", threads=1)
    assert _same(small, contingency(frame, label="y", group="g", score="p"))


@pytest.mark.parametrize("metric", ["auc", "tpr"])
def test_the_same_seed_gives_the_same_p_value_with_every_engine(
    metric: str, engine: Engine, folder: Path, frame: pd.DataFrame
) -> None:
    asked: dict[str, Any] = {"threshold": 0.5} if metric == "tpr" else {}
    found = []
    for name, source in (("duckdb", folder / "part-*.parquet"), (engine, folder / "whole.csv"), (engine, frame)):
        counts = contingency(source, label="y", group="sex", score="p", engine=name, **asked)  # type: ignore[arg-type]
        test = permutation_test(counts, metric, rng=np.random.default_rng(5), method="studentized", draws=300)
        found.append((test.p_value, test.statistic, test.ci_low, test.ci_high))
    assert found[0] == found[1] == found[2]


# Rows come in their order, coded like the counts, and never more of them than asked for.


@pytest.mark.parametrize("source", ["whole.csv", "whole.parquet", "part-*.csv", "part-*.parquet"])
def test_rows_come_in_the_order_of_the_files(source: str, folder: Path, frame: pd.DataFrame, engine: Engine) -> None:
    with opened(folder / source, engine) as table:
        found = predictions(table, label="income", positive=">50K", group="sex", score="p", prediction="made")
    np.testing.assert_array_equal(found.label, frame["y"])
    np.testing.assert_array_equal(found.score, frame["p"])
    np.testing.assert_array_equal(np.array(found.groups)[found.group], frame["sex"])
    np.testing.assert_array_equal(found.prediction, frame["made"])


def test_a_prediction_stands_for_a_score_that_is_not_there(frame: pd.DataFrame, engine: Engine) -> None:
    with opened(frame, engine) as table:
        found = predictions(table, label="y", group="sex", prediction="made")
    np.testing.assert_array_equal(found.score, frame["made"])


def test_clusters_are_codes_of_their_values(engine: Engine) -> None:
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "g": ["a", "b", "a", "b"], "p": 0.5, "who": ["x", "z", "x", "y"]})
    with opened(frame, engine) as table:
        found = predictions(table, label="y", group="g", score="p", cluster="who")
    assert found.cluster is not None
    assert found.cluster[0] == found.cluster[2]
    assert len(set(found.cluster.tolist())) == 3
    with opened(frame.assign(who="x"), engine) as table, invalid(option="cluster", column="who"):
        predictions(table, label="y", group="g", score="p", cluster="who")


def test_columns_come_as_numbers_and_a_saved_index_is_one(
    folder: Path, frame: pd.DataFrame, engine: Engine, tmp_path: Path
) -> None:
    frame.set_index(["age", "y"]).to_parquet(tmp_path / "index.parquet")
    for source in (folder / "whole.parquet", folder / "whole.csv", tmp_path / "index.parquet"):
        with opened(source, engine) as table:
            found = numbers(table, ["age", "y"])
        assert found["age"].dtype == np.float64
        np.testing.assert_array_equal(found["age"], frame["age"])
        np.testing.assert_array_equal(found["y"], frame["y"])
    with opened(folder / "whole.csv", engine) as table, invalid(column="race", row=0):
        numbers(table, ["race"])


def test_too_many_rows_are_not_fetched(folder: Path, engine: Engine) -> None:
    with opened(folder / "whole.csv", engine) as table:
        assert len(numbers(table, ["y", "p"], values=1200)["p"]) == 600
        with invalid(source="whole.csv"):
            numbers(table, ["y", "p"], values=1199)
        with invalid(column="pp"):
            numbers(table, ["y", "pp"])


def test_predictions_are_read_as_the_labels_own_values(engine: Engine) -> None:
    frame = pd.DataFrame({"y": ["no", "yes", "yes", "no"], "d": ["no", "no", "yes", "no"], "g": ["a", "a", "b", "b"]})
    counts = contingency(frame, label="y", positive="yes", group="g", prediction="d", engine=engine)
    np.testing.assert_array_equal(counts.table, [[[1, 0], [1, 0]], [[1, 0], [0, 1]]])


def test_single_precision_scores_are_compared_in_single_precision_and_zero_has_no_sign(engine: Engine) -> None:
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "g": [0, 0, 1, 1], "p": np.array([0.1, 0.3, 0.7, 0.9], np.float32)})
    # 0.3 as float32 is 0.300000012, 0.7 is 0.699999988, and the threshold is that number too.
    for threshold in (0.7, 0.3, 0.1, 0.9):
        counts = contingency(frame, label="y", group="g", score="p", threshold=threshold, engine=engine)
        np.testing.assert_array_equal(counts.table[..., 1].sum(), (frame["p"] >= threshold).sum())
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "g": [0, 0, 1, 1], "p": [0.0, -0.0, 1.0, 0.0]})
    counts = contingency(frame, label="y", group="g", score="p", engine=engine)
    np.testing.assert_array_equal(counts.table, [[[1, 0], [1, 0]], [[0, 1], [1, 0]]])


TENTHS = np.tile(np.arange(1, 10) / 10, 8)


def shares(kind: Any) -> pd.DataFrame:
    share = np.random.default_rng(4).choice(np.arange(1, 10) / 10, 900)
    d = (share > 0.5).astype(int)
    return pd.DataFrame({"share": share, "y": d, "d": d}).astype({"share": kind})


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_cut_is_in_the_precision_of_the_column_and_levels_are_named_as_written(
    tmp_path: Path, engine: Engine, kind: Any
) -> None:
    frame, expected = shares(kind), shares(np.float64)["share"]
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in (tmp_path / "rows.parquet", tmp_path / "rows.csv", frame):
        with opened(source, engine) as table:
            made = grouping("share>=0.7", table.columns)
            crossed = grouping("share*d", table.columns)
            assert made
            assert crossed
            table.add(made)
            table.add(crossed)
            cut = contingency(table, label="y", group="share >= 0.7", prediction="d")
            assert dict(zip(cut.groups, cut.sizes.tolist(), strict=True)) == {
                "share < 0.7": (expected < 0.7).sum(),
                "share >= 0.7": (expected >= 0.7).sum(),
            }
            levels = contingency(table, label="y", group="share", prediction="d")
            assert levels.groups == tuple(f"0.{tenth}" for tenth in range(1, 10))
            named = contingency(table, label="y", group="share", prediction="d", against="0.7")
            assert named.sizes[0] == (expected == 0.7).sum()
            rows = predictions(table, label="y", group="share", prediction="d", against="0.7")
            assert (rows.groups, rows.sizes[0]) == (named.groups, named.sizes[0])
            assert "0.7, 1" in contingency(table, label="y", group="share*d", prediction="d").groups


@pytest.mark.parametrize("kind", ["half", "single", "Float32", "float32[pyarrow]", "halffloat[pyarrow]"])
def test_levels_of_short_numbers_in_a_frame_are_named_as_written(kind: Any) -> None:
    frame = shares(np.float64)
    short = frame["share"].astype(np.float16 if kind.startswith("half") else np.float32).astype(kind)
    with opened(frame.assign(share=short), "duckdb") as table:
        found = contingency(table, label="y", group="share", prediction="d")
        rows = predictions(table, label="y", group="share", prediction="d")
    assert found.groups == rows.groups == tuple(f"0.{tenth}" for tenth in range(1, 10))
    values = Source("rows", frame.assign(share=short))
    assert grouped(values, "share", values.table["share"], None)[1] == found.groups
    assert partition_of(values.table["share"]).levels == found.groups


def test_a_wrong_value_of_a_short_column_is_found_in_its_row(tmp_path: Path, engine: Engine) -> None:
    share = np.array([0.7, 0.1, 0.3, 0.7], np.float32)
    pd.DataFrame({"share": share, "g": list("abab"), "d": [0, 1, 0, 1]}).to_parquet(tmp_path / "rows.parquet")
    with invalid(column="share", row=1):
        contingency(tmp_path / "rows.parquet", label="d", group="g", prediction="share", engine=engine)


TYPES: tuple[Any, ...] = ("half", "single", "double", "Float32", "float32[pyarrow]", "halffloat[pyarrow]", object)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_threshold_is_of_the_columns_own_precision(kind: Any, engine: Engine, tmp_path: Path) -> None:
    """A tenth reaches the threshold that is written like it, whatever the precision and wherever the numbers stand."""
    frame = pd.DataFrame({"y": np.arange(72) % 2, "g": np.arange(72) // 2 % 2, "p": pd.Series(TENTHS).astype(kind)})
    sources: list[Any] = [frame] if engine == "duckdb" or kind in ("half", "single", "double") else []
    if engine == "duckdb" or kind in ("single", "double"):  # Spark reads no Parquet of half precision
        frame.to_parquet(tmp_path / "rows.parquet")
        sources.append(tmp_path / "rows.parquet")
    frame.assign(p=TENTHS).to_csv(tmp_path / "rows.csv", index=False)
    for source in (*sources, tmp_path / "rows.csv"):
        with opened(source, engine) as table:
            for place in range(1, 10):
                asked: dict[str, Any] = {"label": "y", "group": "g", "score": "p", "threshold": place / 10}
                counts, rows = contingency(table, **asked), predictions(table, **asked)
                expected = 8 * (10 - place)
                assert rows.prediction is not None
                assert (counts.table[..., 1].sum(), rows.prediction.sum()) == (expected, expected)
                assert (rows.score >= place / 10).sum() == expected


@pytest.mark.parametrize("values", [[300, 620, 621, 850] * 3, [1, 7, 7, 10] * 3], ids=str)
def test_whole_and_decimal_numbers_are_compared_with_any_threshold(
    values: list[int], engine: Engine, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"y": [0, 1, 1, 0] * 3, "g": [0, 0, 1] * 4, "p": values})
    money = frame.assign(p=[Decimal(value) / 10 for value in values])
    for known, name, scale in ((frame, "whole", 1), (money, "decimal", 10)):
        known.to_parquet(tmp_path / f"{name}.parquet")
        for threshold in (values[1] - 0.5, values[1], values[1] + 0.25):
            cut, source = threshold / scale, tmp_path / f"{name}.parquet"
            counts = contingency(source, label="y", group="g", score="p", threshold=cut, engine=engine)
            assert counts.table[..., 1].sum() == (frame["p"] >= threshold).sum()


def test_whole_numbers_that_doubles_confuse_are_refused(tmp_path: Path, engine: Engine) -> None:
    frame = pd.DataFrame({"y": [0, 1] * 4, "g": [0, 0, 1, 1] * 2, "p": 2**53 + np.arange(-8, 0)})
    frame.to_parquet(tmp_path / "last.parquet")
    (frame.assign(p=frame["p"] + 1)).to_parquet(tmp_path / "beyond.parquet")
    asked: dict[str, Any] = {"label": "y", "group": "g", "score": "p"}
    assert len(contingency(tmp_path / "last.parquet", engine=engine, **asked).score) == 8
    with opened(tmp_path / "beyond.parquet", engine) as table:
        for read in (contingency, predictions):
            with invalid(option="score", column="p", row=7):
                read(table, **asked)  # type: ignore[operator]


# What is wrong with a source is said by column, number of rows and first rows, the same with every engine.


ASKED: dict[str, Any] = {"label": "y", "group": "sex", "score": "p", "bounds": (0.0, 1.0)}


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


# Column, rows and values that are wrong; what the error names.
FAULTS: dict[str, tuple[tuple[str, list[int], Any], dict[str, Any]]] = {
    "score missing": (("p", [3, 7, 500], np.nan), {"option": "score", "row": 3}),
    "label missing": (("y", [0], np.nan), {"option": "label", "row": 0}),
    "group missing": (("sex", [9, 8], None), {"option": "group", "row": 8}),
    "score outside": (("p", [1, 2, 3, 4, 5, 6], [1.5, -2, np.inf, 7, 7, 7]), {"option": "score", "row": 1}),
    "score text": (("p", [4, 5], "0,5"), {"option": "score", "row": 4}),
    "label of three": (("y", [11, 12], 2.0), {"option": "label", "row": 11}),
    "one group": (("sex", list(range(600)), "male"), {"option": "group", "row": None}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_faulty_rows_are_counted_and_placed(
    fault: str, suffix: str, tmp_path: Path, frame: pd.DataFrame, engine: Engine
) -> None:
    spoiled, fields = FAULTS[fault]
    bad = _spoiled(frame, *spoiled)
    path = tmp_path / f"bad.{suffix}"
    bad.to_csv(path, index=False) if suffix == "csv" else bad.to_parquet(path)
    with opened(path, engine) as table:
        with invalid(column=spoiled[0], **fields):
            contingency(table, **ASKED)
        with invalid(column=spoiled[0], **fields):
            predictions(table, **ASKED)


def test_a_faulty_row_is_placed_in_its_file(tmp_path: Path, frame: pd.DataFrame, engine: Engine) -> None:
    for suffix in ("csv", "parquet"):
        for name, part in (("a", frame[:400]), ("b", _spoiled(frame[400:].reset_index(drop=True), "p", [50], 3.0))):
            path, plain = tmp_path / f"{name}.{suffix}", part[["sex", "y", "p"]]
            plain.to_csv(path, index=False) if suffix == "csv" else plain.to_parquet(path)
        with invalid(option="score", column="p", row=50):
            contingency(tmp_path / f"*.{suffix}", engine=engine, **ASKED)


def test_a_missing_part_of_a_crossed_or_cut_group_is_placed_in_its_file(tmp_path: Path, frame: pd.DataFrame) -> None:
    spoiled = frame.assign(logit=frame["logit"].astype(np.float32).where(frame.index != 450))
    for name, part in (("a", spoiled[:400]), ("b", spoiled[400:])):
        part.to_parquet(tmp_path / f"{name}.parquet", index=False)
    with opened(tmp_path, "duckdb") as table:
        for name in ("sex*logit", "logit >= 0", "sex*logit >= 0"):
            made = grouping(name, table.columns)
            assert made
            table.add(made)
            for read in (contingency, predictions):
                with invalid(option="group", column=name, row=50):
                    read(table, label="y", group=name, prediction="made")  # type: ignore[operator]
        with invalid(option="group", column="logit >= 0"):
            contingency(table, label="logit >= 0", group="sex", prediction="made")


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"score": "pp"}, {"option": "score", "column": "pp"}),
        ({"score": "sex"}, {"option": "score", "column": "sex"}),
        ({"label": "income"}, {"option": "positive", "column": "income"}),
        ({"label": "income", "positive": "50K"}, {"option": "positive", "column": "income"}),
        ({"label": "race"}, {"option": "label", "column": "race", "row": 0}),
        ({"group": "race", "against": "z"}, {"option": "group", "column": "race"}),
        ({"group": "logit"}, {"option": "group", "column": "logit"}),
        ({"group": "logit", "cells": 500}, {"source": "whole.csv"}),
        ({"score": "logit", "bounds": None, "cells": 500}, {"source": "whole.csv"}),
        ({"score": None, "prediction": "p"}, {"option": "prediction", "column": "p", "row": 586}),
        ({"prediction": "made"}, {"option": "score"}),
        ({"score": None}, {"option": "score"}),
        ({"score": None, "prediction": "made", "threshold": 0.5}, {"option": "threshold"}),
        ({"bounds": (1.0, 0.0)}, {"option": "bounds"}),
        ({"threshold": np.nan}, {"option": "threshold"}),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(
    change: dict[str, Any], fields: dict[str, Any], folder: Path, engine: Engine
) -> None:
    with invalid(**fields):
        contingency(folder / "whole.csv", engine=engine, **(ASKED | change))


UNREADABLE = {
    "short.csv": "sex,y,p\nm,1,.3\nf,0\n",
    "long.csv": "sex,y,p\nm,1,.3\nf,0,.1,9\n",
    "none.csv": "",
    "head.csv": "sex,y,p\n",
    "colon.csv": "sex:y:p\nm:1:.3\n",
    "text.parquet": "not really",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_file_is_named(name: str, tmp_path: Path, engine: Engine) -> None:
    (tmp_path / name).write_text(UNREADABLE[name])
    with invalid(source=name):
        contingency(tmp_path / name, engine=engine, **ASKED)


def test_a_source_that_is_not_there_is_said(tmp_path: Path, engine: Engine) -> None:
    with invalid(source="absent.parquet"):
        contingency(tmp_path / "absent.parquet", engine=engine, **ASKED)


def test_a_broken_archive_is_not_mistaken_for_wrong_text(tmp_path: Path) -> None:
    whole = gzip.compress(b"sex,y,p\n" + b"m,1,.3\n" * 100)
    wrong = (b"sex,y,p\nm,1,.3\n", whole[:12], gzip.compress(b"sex,\xe9,p\nm,1,.3\n"))
    for content, remedy in zip(wrong, ("Save the file again", "Save the file again", "Save it as UTF-8"), strict=True):
        (tmp_path / "rows.csv.gz").write_bytes(content)
        with invalid(source="rows.csv.gz", remedy=remedy):
            contingency(tmp_path / "rows.csv.gz", **ASKED)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sex,y,p\nm,1,.3\n")
    (tmp_path / "b.csv").write_text("sex,p,y\nf,.3,0\n")
    with invalid(source="b.csv"):
        contingency(tmp_path, **ASKED)
    (tmp_path / "c.parquet").write_bytes(b"")
    with invalid(source=tmp_path.name):
        contingency(tmp_path, **ASKED)
    (tmp_path / "d.txt").write_text("")
    with invalid(source="d.txt"):
        contingency(tmp_path / "d.txt", **ASKED)
    (tmp_path / "e.csv").write_text("sex,,p\nm,1,.3\n")
    with invalid(source="e.csv", column="1"):
        contingency(tmp_path / "e.csv", **ASKED)


def test_limits_that_the_engine_does_not_take_are_said(folder: Path) -> None:
    with invalid(option="memory"):
        contingency(folder / "whole.csv", memory="lots", **ASKED)
    with invalid(option="engine"):
        contingency(folder / "whole.csv", engine="abacus", **ASKED)  # type: ignore[arg-type]


def test_a_missing_spark_is_said_with_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    with invalid(option="engine"):
        contingency(folder / "whole.csv", engine="spark", **ASKED)
    monkeypatch.setitem(__import__("sys").modules, "pyspark", np)  # anything that imports
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert spark_engine.unavailable() == (
        "Spark needs Java 17 or newer, and there is none: install a JDK and set JAVA_HOME (or use the engine duckdb)"
    )
