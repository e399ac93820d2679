"""The command that plans a comparison."""

from pathlib import Path
from typing import Any

import pytest

import fairness_audits as fa
from fairness_audits.results.result import Facts
from tests.cli.places import json_of, run
from tests.errors import invalid


def test_the_command_is_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = "--metric tpr --value 0.75 --gap=-0.1 --shares 0.3,0.7 --of-rows 0.2"
    made = json_of("plan", *asked.split())
    called = fa.plan(metric="tpr", value=0.75, gap=-0.1, shares=(0.3, 0.7), of_rows=[0.2]).facts
    assert {name: made[name] for name in called} == called
    assert made["exact"]
    assert run("plan", *asked.split(), "--output", "out")[0] == 0
    assert "of both groups together" in Path("out/plan.html").read_text()
    # A plan tests nothing.
    assert made["verdict"]["outcome"] == "planned"
    assert run("plan", *asked.split(), "--gate")[0] == 2


def test_rows_and_gap_give_the_power_which_cannot_be_set_too() -> None:
    asked: dict[str, Any] = {"metric": "tpr", "value": 0.75, "gap": -0.05, "rows": 20000}
    found = fa.plan(**asked)
    assert found.facts["power"] > 0.999
    assert found.brief is not None
    assert "100.0 %" in found.brief.sure
    with invalid(option="power"):
        fa.plan(**asked, power=0.9)


def test_the_facts_are_printed_in_the_formats_of_the_sentence() -> None:
    found = fa.plan(metric="tpr", value=0.75, gap=-0.05, shares=(0.3, 0.7), of_rows=0.2)
    (facts,) = found.sections[0].parts
    assert facts == Facts(
        (
            ("metric", "tpr"),
            ("value", "0.7500"),
            ("rows", "15,042"),
            ("gap", "-0.0500"),
            ("power", "80.0 %"),
            ("power by", "all probable outcomes"),
        )
    )


def test_rows_of_other_groups_are_counted_apart() -> None:
    whole = fa.plan(metric="tpr", value=0.75, gap=0.1, shares=(1 / 3, 2 / 3))
    some = fa.plan(metric="tpr", value=0.75, gap=0.1, shares=(0.3, 0.6))
    assert "rows of both groups together" in whole.verdict.sentence
    assert "(90.0 % of them in the two groups)" in some.verdict.sentence
    assert some.facts["rows"] == pytest.approx(whole.facts["rows"] / 0.9, rel=0.02)


@pytest.mark.parametrize("value", [0, 1])
def test_a_model_that_always_answers_alike_is_not_planned(value: float) -> None:
    """The audit of its selection rate is inconclusive, whatever the number of rows."""
    audit = fa.permutation_test(
        prediction=[int(value)] * 400, group=["a", "b"] * 200, metric="selection_rate", margin=0.1
    )
    assert audit.outcome == "inconclusive"
    for rows in (None, 400):
        with invalid(option="value"):
            fa.plan(metric="selection_rate", value=value, margin=0.1, rows=rows)
    planned = fa.plan(metric="fpr", value=value, margin=0.1)
    assert [one.condition for one in planned.caveats if one.condition == "answers_vary"]


def test_the_power_leaves_out_answers_that_happen_to_be_alike() -> None:
    """With 60 rows and a rate of 2 %, the audit of no selected row at all concludes nothing."""
    power = fa.plan(metric="selection_rate", value=0.02, margin=0.2, rows=60).facts["power"]
    assert power <= 1 - 0.98**60 + 1e-9
    assert power == pytest.approx(fa.plan(metric="tpr", value=0.02, margin=0.2, rows=60).facts["power"] - 0.98**60)
