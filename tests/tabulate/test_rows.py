"""Rows come in their order, coded like the counts, and never more of them than asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.tabulate import Engine, numbers, opened, predictions


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
