"""The same counts and rows from every engine and every kind of source, and they are the right ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.permutation.outcomes import Counts
from pipeline.audits.permutation.run import permutation_test
from pipeline.tabulate import Engine, contingency, numbers, opened, predictions

SOURCES = ("whole.csv", "whole.parquet", "part-*.csv", "part-*.parquet")
READINGS: tuple[dict[str, Any], ...] = (
    {"prediction": "made"},
    {"score": "p", "threshold": 0.29},
    {"score": "p"},
    {"score": "p", "bins": 100},
    {"score": "logit", "bins": 30, "bounds": (-6.0, 6.0)},
)


def _same(one: Counts, other: Counts) -> bool:
    return one.groups == other.groups and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("table", "lower", "upper")
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
    elif "bins" in asked:
        low, high = asked.get("bounds", (0.0, 1.0))
        edges = low + np.arange(asked["bins"] + 1) * (high - low) / asked["bins"]
        cell = np.minimum(np.searchsorted(edges, frame[asked["score"]], side="right") - 1, asked["bins"] - 1)
    else:
        cell = np.searchsorted(np.unique(frame["p"]), frame["p"])
    table = _brute(frame, "age", cell, cell.max() + 1)
    decided = "prediction" in asked or "threshold" in asked
    occupied = table if decided else table[..., table.sum(axis=(0, 1)) > 0]
    assert found[0].groups == ("9", "10", "11", "30", "40", "100")  # numbers by their size, even from text
    np.testing.assert_array_equal(found[0].table, occupied)
    assert all(_same(found[0], other) for other in found[1:])


@pytest.mark.parametrize("bins", [7, 10, 49, 100])
def test_a_score_at_an_edge_is_in_the_bin_that_begins_there(bins: int, engine: Engine) -> None:
    edges = np.arange(bins + 1) / bins
    below = np.nextafter(edges[1:], -1)
    scores = np.concatenate([edges, below])
    frame = pd.DataFrame({"p": scores, "y": 1, "g": np.arange(len(scores)) % 2})
    counts = contingency(frame, label="y", group="g", score="p", bins=bins, engine=engine)
    np.testing.assert_array_equal(counts.lower, edges[:-1])
    np.testing.assert_array_equal(counts.upper, edges[1:])
    # Its own edge and the largest number below the next; the last bin has the upper bound too.
    np.testing.assert_array_equal(counts.table[:, 1].sum(axis=0), [2] * (bins - 1) + [3])


def test_bins_cut_at_an_edge_are_a_threshold(folder: Path, engine: Engine) -> None:
    source = folder / "whole.parquet"
    binned = contingency(source, label="y", group="sex", score="p", bins=20, engine=engine)
    for threshold in (0.05, 0.15, 0.35, 0.6, 0.95):
        cut = contingency(source, label="y", group="sex", score="p", threshold=threshold, engine=engine)
        assert _same(binned.at(threshold), cut)


def test_one_group_against_the_rest_is_the_sum_of_the_others(folder: Path, engine: Engine) -> None:
    every = contingency(folder / "whole.csv", label="y", group="race", prediction="made", engine=engine)
    one = contingency(
        folder / "whole.csv", label="y", group="race", prediction="made", against="c \"d' \\e", engine=engine
    )
    assert one.groups == ("c \"d' \\e", "not c \"d' \\e")
    np.testing.assert_array_equal(one.table, np.stack([every.table[2], every.table[0] + every.table[1]]))


@pytest.mark.parametrize(("label", "positive"), [("income", ">50K"), ("truth", None), ("truth", "True"), ("y", "1.0")])
def test_a_label_by_other_names_gives_the_same_counts(
    label: str, positive: str | None, folder: Path, engine: Engine
) -> None:
    plain = contingency(folder / "whole.csv", label="y", group="sex", prediction="made", engine=engine)
    for name in SOURCES[:2]:
        other = contingency(
            folder / name, label=label, positive=positive, group="sex", prediction="made", engine=engine
        )
        assert _same(plain, other)
    swapped = contingency(folder / name, label="y", positive="0", group="sex", score="p", bins=2, engine=engine)
    direct = contingency(folder / name, label="y", group="sex", score="p", bins=2, engine=engine)
    np.testing.assert_array_equal(swapped.table, direct.table[:, ::-1])


def test_names_and_values_are_only_ever_names_and_values(tmp_path: Path, engine: Engine) -> None:
    names = ("y'; DROP TABLE x; --", 'g"`\\', "p) OR 1=1")
    values = ["o'clock", 'a"; --', "back\\slash", "{}", "%s", "Ünïcode"]
    frame = pd.DataFrame({names[0]: [0, 1] * 6, names[1]: values * 2, names[2]: np.linspace(0, 1, 12)})
    for source in (tmp_path / "it's.parquet", tmp_path / "it's.csv"):
        frame.to_csv(source, index=False) if source.suffix == ".csv" else frame.to_parquet(source)
        counts = contingency(source, label=names[0], group=names[1], score=names[2], threshold=0.5, engine=engine)
        assert counts.groups == tuple(sorted(values))
        assert counts.table.sum() == 12
        one = contingency(
            source, label=names[0], group=names[1], score=names[2], bins=3, against="o'clock", engine=engine
        )
        assert one.sizes.tolist() == [2, 10]


def test_numbers_are_read_to_the_last_bit(tmp_path: Path, engine: Engine) -> None:
    scores = np.random.default_rng(0).random(200)
    frame = pd.DataFrame({"y": [0, 1] * 100, "g": [0, 0, 1, 1] * 50, "p": scores})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    counts = contingency(tmp_path / "rows.csv", label="y", group="g", score="p", engine=engine)
    np.testing.assert_array_equal(counts.lower, np.sort(scores))
    at = contingency(tmp_path / "rows.csv", label="y", group="g", score="p", threshold=float(scores[7]), engine=engine)
    assert at.table[..., 1].sum() == (scores >= scores[7]).sum()


def test_files_of_other_types_are_not_squeezed_into_the_first_ones(tmp_path: Path, engine: Engine) -> None:
    pd.DataFrame({"y": [0, 1], "g": ["a", "b"], "p": [0, 1]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"y": [0, 1], "g": ["a", "b"], "p": [0.25, 0.75]}).to_parquet(tmp_path / "2.parquet")
    if engine == "spark":
        pytest.skip("Spark refuses to merge integers with doubles, with a message of its own")
    counts = contingency(tmp_path, label="y", group="g", score="p", engine=engine)
    np.testing.assert_array_equal(counts.lower, [0, 0.25, 0.75, 1])


def test_a_little_memory_is_enough_for_many_groups_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"y": rng.integers(0, 2, 300_000), "g": rng.integers(0, 3, 300_000), "p": rng.random(300_000)})
    frame.to_parquet(tmp_path / "rows.parquet")
    small = contingency(tmp_path / "rows.parquet", label="y", group="g", score="p", bins=1000, memory="60MB", threads=1)
    assert _same(small, contingency(frame, label="y", group="g", score="p", bins=1000, engine="pandas"))


@pytest.mark.parametrize("metric", ["auc", "tpr"])
def test_the_same_seed_gives_the_same_p_value_with_every_engine(
    metric: str, engine: Engine, folder: Path, frame: pd.DataFrame
) -> None:
    asked: dict[str, Any] = {"threshold": 0.5} if metric == "tpr" else {"bins": 50}
    found = []
    for name, source in (("duckdb", folder / "part-*.parquet"), (engine, folder / "whole.csv"), (engine, frame)):
        counts = contingency(source, label="y", group="sex", score="p", engine=name, **asked)  # type: ignore[arg-type]
        test = permutation_test(counts, metric, rng=np.random.default_rng(5), method="studentized", draws=300)
        found.append((test.p_value, test.statistic, test.ci_low, test.ci_high))
    assert found[0] == found[1] == found[2]


def test_counts_are_those_of_the_fetched_rows(folder: Path, engine: Engine) -> None:
    with opened(folder / "part-*.csv", engine) as table:
        fetched = predictions(table, label="y", group="race", score="p", threshold=0.5)
        counts = contingency(table, label="y", group="race", score="p", threshold=0.5)
    assert _same(fetched.counted(), counts)


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
    frame = pd.DataFrame(
        {"y": [0, 1, 0, 1], "g": ["a", "b", "a", "b"], "p": 0.5, "who": ["x", "z", "x", "y"], "w": [1, 2, 3, 0.5]}
    )
    with opened(frame, engine) as table:
        found = predictions(table, label="y", group="g", score="p", cluster="who", weight="w")
    assert found.cluster is not None
    assert found.cluster[0] == found.cluster[2]
    assert len(set(found.cluster.tolist())) == 3
    np.testing.assert_array_equal(found.weight, frame["w"])
    torn = r"1 values of column 'who' \(cluster\) have rows in more than one group of 'g'"
    with opened(frame.assign(who="x"), engine) as table, pytest.raises(ValueError, match=torn):
        predictions(table, label="y", group="g", score="p", cluster="who")


def test_a_label_of_any_number_stays_what_it_is(frame: pd.DataFrame, engine: Engine) -> None:
    with opened(frame, engine) as table:
        found = predictions(table, label="logit", group="sex", score="p", real_label=True)
    np.testing.assert_array_equal(found.label, frame["logit"])


def test_columns_come_as_numbers(folder: Path, frame: pd.DataFrame, engine: Engine) -> None:
    for source in ("whole.parquet", "whole.csv"):
        with opened(folder / source, engine) as table:
            found = numbers(table, ["age", "income"], label="income", positive=">50K")
        assert found["age"].dtype == np.float64
        np.testing.assert_array_equal(found["age"], frame["age"])
        np.testing.assert_array_equal(found["income"], frame["y"])
    message = r"column 'race' \(numbers\) is not a number in 600 of 600 rows"
    with opened(folder / "whole.csv", engine) as table, pytest.raises(ValueError, match=message):
        numbers(table, ["race"])


def test_too_many_rows_are_not_fetched(folder: Path, engine: Engine) -> None:
    with opened(folder / "whole.csv", engine) as table:
        assert len(numbers(table, ["y", "p"], values=1200)["p"]) == 600
        with pytest.raises(ValueError, match=r"600 rows of 2 columns are 1,200 values, more than the 1,199 that may"):
            numbers(table, ["y", "p"], values=1199)
        with pytest.raises(ValueError, match=r"column 2 names 'pp', but .* \(did you mean 'p'\?\)"):
            numbers(table, ["y", "pp"])


def test_predictions_are_read_as_the_labels_own_values(engine: Engine) -> None:
    frame = pd.DataFrame({"y": ["no", "yes", "yes", "no"], "d": ["no", "no", "yes", "no"], "g": ["a", "a", "b", "b"]})
    counts = contingency(frame, label="y", positive="yes", group="g", prediction="d", engine=engine)
    np.testing.assert_array_equal(counts.table, [[[1, 0], [1, 0]], [[1, 0], [0, 1]]])


def test_single_precision_scores_are_compared_as_the_doubles_that_they_are(engine: Engine) -> None:
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "g": [0, 0, 1, 1], "p": np.array([0.1, 0.3, 0.7, 0.9], np.float32)})
    # 0.3 as float32 is 0.300000012, 0.7 is 0.699999988.
    counts = contingency(frame, label="y", group="g", score="p", threshold=0.7, engine=engine)
    np.testing.assert_array_equal(counts.table, [[[1, 0], [1, 0]], [[1, 0], [0, 1]]])


def test_zero_has_no_sign(engine: Engine) -> None:
    frame = pd.DataFrame({"y": [0, 1, 0, 1], "g": [0, 0, 1, 1], "p": [0.0, -0.0, 1.0, 0.0]})
    counts = contingency(frame, label="y", group="g", score="p", engine=engine)
    np.testing.assert_array_equal(counts.table, [[[1, 0], [1, 0]], [[0, 1], [1, 0]]])
