"""Groups that are crossed, cut, and compared with a reference; the table of groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

import fairness_audits as fa
from fairness_audits.errors import InvalidInput
from fairness_audits.tables import contingency, opened
from fairness_audits.tables.groupings import Grouping, grouping
from fairness_audits.tables.spark_engine import unavailable
from tests.cli.places import json_of

N = 900


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], N), "race": rng.choice(["a", "b", "c"], N)})
    return frame.assign(age=rng.integers(18, 80, N), y=rng.integers(0, 2, N), d=rng.integers(0, 2, N), p=rng.random(N))


PEOPLE = people()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("rows.csv", index=False)


def results(group: str, *options: str) -> list[dict[str, Any]]:
    asked = ("--predictions", "rows.csv", "--label", "y", "--prediction", "d", "--group", group, "--metric", "tpr")
    found: list[dict[str, Any]] = json_of("permutation", *asked, *options)["results"]
    return found


@pytest.mark.parametrize(
    ("group", "made"),
    [
        ("sex*race", PEOPLE["sex"] + " & " + PEOPLE["race"]),
        ("age>=40", np.where(PEOPLE["age"] >= 40, "age >= 40", "age < 40")),
        ("sex*age>62.5", PEOPLE["sex"] + np.where(PEOPLE["age"] > 62.5, " & age > 62.5", " & age <= 62.5")),
    ],
)
def test_a_made_group_is_the_column_that_one_would_make(group: str, made: pd.Series) -> None:
    PEOPLE.assign(own=made).to_csv("own.csv", index=False)
    theirs = results("own", "--predictions", "own.csv")
    ours = results(group)
    assert [{**one, "grouping": group} for one in theirs] == ours


def test_a_cross_of_the_command_is_that_of_a_call() -> None:
    call: dict[str, Any] = {"prediction": PEOPLE["d"], "metric": "tpr", "cross": True}
    assert fa.permutation_test(PEOPLE["y"], group=PEOPLE[["sex", "race"]], **call).facts["results"] == results(
        "sex*race"
    )


def test_rows_and_counts_of_a_cross_are_the_same_people() -> None:
    counts = fa.permutation_test(
        PEOPLE["y"], prediction=PEOPLE["d"], group=PEOPLE[["sex", "race"]], metric="tpr", cross=True
    )
    rows = fa.permutation_test(
        PEOPLE["y"], score=PEOPLE["p"], group=PEOPLE[["sex", "race"]], metric="auc", cross=True, draws=999
    )
    sizes = [[(g["name"], g["rows"]) for g in one.facts["results"][3]["groups"]] for one in (counts, rows)]
    assert sizes[0] == sizes[1]


def test_a_column_with_a_gap_is_refused_and_named() -> None:
    PEOPLE.assign(age=PEOPLE["age"].where(PEOPLE["age"] > 18, "")).to_csv("gap.csv", index=False)
    with opened("gap.csv", "duckdb") as table:
        table.add(grouping("age>=40", table.columns))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="age>=40"):
            contingency(table, label="y", group="age>=40", prediction="d")


def test_a_text_is_a_column_before_it_is_a_cross() -> None:
    assert grouping("a*b", ["a*b", "a", "b"]) is None
    assert grouping("race=White", ["race"]) is None
    made = grouping("a*b", ["a", "b"])
    assert made is not None
    assert made.columns == ("a", "b")
    with pytest.raises(InvalidInput):
        grouping("age>=old", ["age"])


@pytest.mark.xdist_group("spark")
@pytest.mark.slow
def test_spark_makes_the_same_groups() -> None:
    if reason := unavailable():
        pytest.skip(reason)
    for group in ("sex*race", "age>=40"):
        counts = []
        for engine in ("duckdb", "spark"):
            with opened("rows.csv", engine) as table:  # type: ignore[arg-type]
                made = grouping(group, table.columns)
                assert isinstance(made, Grouping)
                table.add(made)
                counts.append(contingency(table, label="y", group=group, prediction="d"))
        assert counts[0].groups == counts[1].groups
        np.testing.assert_array_equal(counts[0].table, counts[1].table)


def test_a_reference_is_the_second_of_each_comparison() -> None:
    """Men against women: the other side of the same test, and its one-sided p-value."""
    (by_name,) = results("sex", "--alternative", "greater")
    (turned,) = results("sex", "--alternative", "less", "--reference", "f")
    assert [group["name"] for group in turned["groups"]] == ["m", "f"]
    assert turned["difference"] == -by_name["difference"]
    assert turned["p_value"] == pytest.approx(by_name["p_value"], rel=1e-12)
    against_b = results("race", "--reference", "b")
    assert [[g["name"] for g in one["groups"]] for one in against_b] == [["a", "b"], ["c", "b"]]
    for one in against_b:
        assert sum(group["rows"] for group in one["groups"]) < N


def test_with_a_reference_a_ratio_has_one_side() -> None:
    ((bounds,),) = [[one["bounds"] for one in results("sex", "--ratio", "--reference", "m")]]
    assert (bounds["low"], bounds["high"]) == (0.8, None)


@pytest.mark.parametrize("options", [("--reference", "x"), ("--reference", "f,m"), ("--reference", "a", "--ratio")])
def test_a_reference_that_is_no_group_is_refused(options: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        fa.permutation_test(
            PEOPLE["y"], prediction=PEOPLE["d"], group=PEOPLE[["sex"]], metric="tpr", reference=options[1].split(","),
            ratio="--ratio" in options,
        )  # fmt: skip
    assert refused.value.option == "reference"


def test_the_table_of_groups_has_the_worst_first_with_intervals_of_each() -> None:
    call: dict[str, Any] = {"group": PEOPLE["race"], "threshold": 0.5, "draws": 999}
    frame = fa.permutation_test(PEOPLE["y"], PEOPLE["p"], metric=["fpr", "tpr", "auc"], **call).to_frame("groups")
    for metric, own in frame.groupby("metric"):
        assert own["estimate"].is_monotonic_decreasing if metric == "fpr" else own["estimate"].is_monotonic_increasing
        assert ((own["ci_low"] < own["estimate"]) & (own["estimate"] < own["ci_high"])).all()
    rate = frame[frame["metric"] == "fpr"].iloc[0]
    expected = proportion_confint(rate["events"], rate["n"], method="wilson")
    assert (rate["ci_low"], rate["ci_high"]) == pytest.approx(expected, abs=1e-9)
    negatives = PEOPLE[(PEOPLE["race"] == rate["name"]) & (PEOPLE["y"] == 0)]
    assert (rate["n"], rate["estimate"]) == (len(negatives), pytest.approx((negatives["p"] >= 0.5).mean()))


def test_selection_rates_need_no_label_and_base_rates_no_decision() -> None:
    call: dict[str, Any] = {"group": PEOPLE["race"]}
    with_label = fa.permutation_test(PEOPLE["y"], prediction=PEOPLE["d"], metric="selection_rate", **call)
    without = fa.permutation_test(prediction=PEOPLE["d"], metric="selection_rate", **call)
    assert without.facts["results"] == with_label.facts["results"]
    base = fa.permutation_test(PEOPLE["y"], metric="base_rate", **call)
    of_label = fa.permutation_test(prediction=PEOPLE["y"], metric="selection_rate", **call)
    for one, other in zip(base.facts["results"], of_label.facts["results"], strict=True):
        assert [one[key] for key in ("groups", "interval", "p_value")] == [
            other[key] for key in ("groups", "interval", "p_value")
        ]
    assert base.outcome == of_label.outcome
    asked = ("--predictions", "rows.csv", "--group", "race", "--ratio")
    assert json_of("permutation", *asked, "--label", "y", "--metric", "base_rate")["results"][0]["bounds"]
    assert json_of("permutation", *asked, "no--label", "--prediction", "d", "--metric", "selection_rate")["results"][0][
        "bounds"
    ]
    with pytest.raises(InvalidInput):
        fa.permutation_test(prediction=PEOPLE["d"], metric="tpr", **call)
