"""Which rows a setting selects, and what a run has reduced."""

import pandas as pd
import pytest

from pipeline.report.settings import Reduction, explain_absence, parse_setting, reductions, select

ROWS = pd.DataFrame({"method": ["a", "a", "b"], "steps": [200.0, 500.0, 500.0], "intercept": ["zero", None, "zero"]})


def test_a_setting_is_read_with_its_types() -> None:
    assert parse_setting("method=a; steps=500") == {"method": "a", "steps": 500.0}


@pytest.mark.parametrize(("text", "message"), [("method", "write key=value"), ("a=1; a=2", "gives 'a' twice")])
def test_a_setting_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_setting(text)


def test_a_setting_selects_the_rows_that_agree_with_all_of_it() -> None:
    assert list(select(ROWS, {"method": "a", "steps": 500.0}).index) == [1]
    assert list(select(ROWS, {"intercept": "zero"}).index) == [0, 2]
    assert select(ROWS, {"steps": 300.0}).empty
    with pytest.raises(ValueError, match="no setting 'stepz'"):
        select(ROWS, {"stepz": 1.0})


def test_absence_is_explained_by_the_first_part_that_leaves_nothing() -> None:
    assert explain_absence(ROWS, {"method": "a", "steps": 1000.0}) == "steps 1,000 (there are 200, 500)"
    assert explain_absence(ROWS, {"method": "c", "steps": 1000.0}) == "method c (there are a, b)"
    assert explain_absence(ROWS, {"method": "a"}) == ""


def test_reductions_are_the_values_that_differ_from_the_published_ones() -> None:
    def point(iterations: int, repetitions: int) -> dict:
        sections = {"dataset": {"name": "adult"}, "method": {"name": "sensr", "iterations": iterations}}
        return {
            "block": "audit",
            **sections,
            "audit": {"name": "loss_ratio", "record": [1, 2]},
            "repetitions": repetitions,
        }

    assert reductions([point(20000, 4)], [point(20000, 10)]) == ()
    (found,) = reductions([point(2000, 10)], [point(20000, 10)])
    assert found == Reduction("audit", "adult", "sensr", "method.iterations", 2000, 20000)
    with pytest.raises(ValueError, match="expected the same points"):
        reductions([], [point(1, 1)])
