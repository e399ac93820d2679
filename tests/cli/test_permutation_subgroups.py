"""The search for the worst subgroup, by command and by call."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairness_audits as fa
from fairness_audits.audits.permutation.subgroups import binned
from fairness_audits.errors import InvalidInput
from tests.cli.places import json_of, run
from tests.errors import invalid

N = 3000


def people() -> pd.DataFrame:
    """Young women's positives are recognised more rarely than others'."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], N), "race": rng.choice(["a", "b", "c"], N)})
    frame = frame.assign(age=rng.integers(18, 80, N), y=rng.integers(0, 2, N))
    missed = (frame["sex"] == "f") & (frame["age"] < 30)
    return frame.assign(d=((rng.random(N) < np.where(missed, 0.35, 0.75)) & (frame["y"] == 1)).astype(int))


PEOPLE = people()


def test_the_command_finds_the_planted_group_and_is_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv("rows.csv", index=False)
    asked = "--predictions rows.csv --label y --prediction d --columns age,race,sex --metric tpr --draws 199"
    made = json_of("subgroups", *asked.split())
    first = made["results"][0]
    assert set(first["subgroup"]) == {"age", "sex"}
    assert first["subgroup"]["sex"] == "f"
    assert first["rejected"]
    assert first["interval"][1] < 0
    call: dict[str, Any] = {"prediction": PEOPLE["d"], "metric": "tpr", "draws": 199}
    called = fa.worst_subgroups(PEOPLE[["age", "race", "sex"]], PEOPLE["y"], **call)
    assert called.facts["results"] == made["results"]
    assert made["verdict"]["outcome"] == "rejected"
    assert run("subgroups", *asked.split(), "--output", "out", "--gate")[0] == 3
    assert "age 18 to" in Path("out/subgroups.html").read_text()
    own = PEOPLE[(PEOPLE["sex"] == "f") & (PEOPLE["y"] == 1)]
    row = called.to_frame().set_index("subgroup").loc["sex f"]
    assert (row["n"], row["events"]) == (len(own), own["d"].sum())


@pytest.mark.parametrize("metric", ["fnr", "tpr", "selection_rate", "fpr"])
def test_those_worse_than_the_others_come_first_however_strong_the_evidence(metric: Any) -> None:
    """Two groups are worse than all others; the third is better, by the strongest evidence."""
    sex = np.repeat(["f", "m", "x"], [300, 1000, 700])
    positive = np.select([sex == "f", sex == "m"], [0.3, 0.4], 0.9)
    decision = np.random.default_rng(0).random(2000) < (1 - positive if metric == "fpr" else positive)
    y = np.tile([0, 1], 1000)
    made = fa.worst_subgroups(pd.DataFrame({"sex": sex}), y, prediction=decision.astype(int), metric=metric, draws=199)
    *worse, better = made.facts["results"]
    assert better["subgroup"] == {"sex": "x"}
    assert better["rejected"]
    assert {one["difference"] > 0 for one in worse} == {metric in {"fnr", "fpr"}}


@pytest.mark.parametrize("codes", [pd.Categorical, lambda z: pd.Series(z).map("{:02d}".format), lambda z: z])
def test_codes_of_a_category_are_not_cut_like_numbers(codes: Callable[[np.ndarray], Any]) -> None:
    """Nobody with code 7 is selected. Numbers are cut into bins, in which the others hide this."""
    rng = np.random.default_rng(4)
    code = rng.integers(1, 31, 3000)
    decision = (rng.random(3000) < 0.3) & (code != 7)
    column = codes(code)
    found = fa.worst_subgroups(pd.DataFrame({"code": column}), prediction=decision.astype(int), draws=999)
    assert (found.outcome == "rejected") == (column is not code)
    assert (found.facts["results"][0]["n"] == (code == 7).sum()) == (column is not code)


def test_what_a_rate_needs_is_asked_for() -> None:
    for call in ({"metric": "tpr", "prediction": PEOPLE["d"]}, {"metric": "selection_rate"}):
        with pytest.raises(InvalidInput):
            fa.worst_subgroups(PEOPLE[["sex"]], **call)  # type: ignore[arg-type]


def test_decisions_and_a_threshold_are_refused() -> None:
    decided = {"prediction": PEOPLE["d"], "score": PEOPLE["d"], "threshold": 0.5}
    with invalid(option="threshold"):
        fa.worst_subgroups(PEOPLE[["sex"]], metric="selection_rate", **decided)


def test_too_few_draws_are_refused() -> None:
    with invalid(option="draws"):
        fa.worst_subgroups(PEOPLE[["sex"]], prediction=PEOPLE["d"], metric="selection_rate", draws=10)


def test_nothing_is_shown_by_small_subgroups() -> None:
    """44 rows with rates of .50 and .77 show no difference, and no equality either."""
    sex, decision = np.repeat(["f", "m"], 22), np.repeat([1, 0, 1, 0], [11, 11, 17, 5])
    call: dict[str, Any] = {"prediction": decision, "metric": "selection_rate"}
    assert fa.worst_subgroups(pd.DataFrame({"sex": sex}), **call).outcome == "inconclusive"
    assert fa.worst_subgroups(pd.DataFrame({"sex": sex}), **call, width=1.0).outcome == "not rejected"


def test_bins_of_close_numbers_have_names_of_their_own() -> None:
    for values in (1_600_000_000 + 10 * np.arange(600), 1 + 1e-9 * np.arange(600)):
        cut = binned(values.astype(float), 5, 12)
        assert cut is not None
        assert len(set(cut.levels)) == 5


@pytest.mark.parametrize("metric", ["tpr", "fnr", "fpr"])
def test_the_worst_leads_the_verdict_the_table_and_the_introduction_before_the_best_and_the_small(metric: Any) -> None:
    """Women with job a are best, by the strongest evidence. Two small jobs are the lowest, but by chance."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"sex": rng.choice(["f", "m"], 1500), "job": rng.choice(["a", "b", "c"], 1500)})
    rows.loc[:49, "job"] = np.repeat(["d", "e"], 25)
    best = (rows["sex"] == "f") & (rows["job"] == "a")
    good = np.where(best, 0.95, np.where(rows["job"] == "c", 0.25, 0.5))
    recognised = rng.random(1500) < good
    recognised[:50] = np.arange(50) % 3 == 0
    decision, y = (~recognised, 0) if metric == "fpr" else (recognised, 1)
    found = fa.worst_subgroups(rows, np.full(1500, y), prediction=decision.astype(int), metric=metric, draws=999)
    table = found.to_frame()
    assert table["subgroup"][0] == "job c"
    assert table["rejected"].is_monotonic_decreasing
    assert re.search("Worst first, [^:]+: job c, ", found.verdict.sentence)
    assert found.brief is not None
    assert re.match("Worst first, [^:]+: job c: ", found.brief.found)
    assert "sex f, job a" not in found.verdict.sentence + found.brief.found
    assert table["rejected"][table["subgroup"] == "sex f, job a"].all()


def test_the_subgroup_shown_to_differ_most_leads_and_the_verdict_says_by_how_much_at_least() -> None:
    """Of 30 care workers 2 are selected, of 400 in offices 100, of the others 7 in 10: the few lead by rate alone."""
    jobs = np.repeat(["care", "office", "law", "trade"], [30, 400, 500, 500])
    decision = np.r_[np.arange(30) < 2, np.arange(400) < 100, np.arange(1000) % 10 < 7].astype(int)
    found = fa.worst_subgroups(pd.DataFrame({"job": jobs}), prediction=decision, draws=999)
    table = found.to_frame().set_index("subgroup")
    worse = table[table["difference"] < 0]
    assert worse.index.tolist() == ["job office", "job care"]
    assert worse["difference"]["job care"] < worse["difference"]["job office"]
    assert worse["at_least"].tolist() == [-worse["ci_high"].iloc[0], -worse["ci_high"].iloc[1]]
    said = f"job office, 25.0 % (100 of 400) against {100 * 702 / 1030:.1f} % for all others, at least "
    assert f"{said}{100 * worse['at_least'].iloc[0]:.1f} points lower" in found.verdict.sentence
    assert found.summary().index("shown to be worse") < found.summary().index("shown to be better")


def test_subgroups_that_show_nothing_follow_by_p_value_and_the_verdict_names_the_smallest() -> None:
    """The better of two jobs is nearer to a finding."""
    jobs = np.repeat(["a", "b", "c", "d"], [100, 100, 100, 700])
    decision = np.r_[np.arange(100) < 60, np.arange(100) < 47, np.arange(100) < 50, np.arange(700) % 2]
    found = fa.worst_subgroups(pd.DataFrame({"job": jobs}), prediction=decision.astype(int), draws=999, width=1)
    assert not found.to_frame()["rejected"].any()
    assert found.to_frame()["subgroup"][0] == "job a"
    assert "The smallest p-values: job a, 60.0 %" in found.verdict.sentence


def test_if_only_better_subgroups_are_significant_they_are_not_called_worst() -> None:
    rng = np.random.default_rng(1)
    jobs = np.repeat(list("abcdefghijkl"), 60)
    decision = (rng.random(720) < np.where(jobs == "a", 0.8, 0.4)).astype(int)
    found = fa.worst_subgroups(pd.DataFrame({"job": jobs}), prediction=decision, draws=999)
    assert found.to_frame()["subgroup"][found.to_frame()["rejected"]].tolist() == ["job a"]
    assert found.verdict.facts["worse"] == 0
    assert found.brief is not None
    assert "Worst" not in found.verdict.sentence + found.brief.found


@pytest.mark.parametrize(("metric", "y", "needed"), [("tpr", 0, "label 1"), ("fpr", 1, "label 0")])
def test_a_rate_without_rows_is_inconclusive_and_says_which_rows_it_lacks(metric: Any, y: int, needed: str) -> None:
    found = fa.worst_subgroups(PEOPLE[["sex"]], np.full(N, y), prediction=PEOPLE["d"], metric=metric)
    assert (found.outcome, found.facts["subgroups"]) == ("inconclusive", 0)
    assert f"No row has {needed}" in str(found.verdict.reason)


def test_too_few_rows_are_inconclusive_and_the_json_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE[:30].to_csv("rows.csv", index=False)
    asked = ["--predictions", "rows.csv", "--prediction", "d", "--columns", "sex,race", "--least", "20"]
    made = json_of("subgroups", *asked)
    assert made["verdict"]["outcome"] == "inconclusive"
    assert made["results"] == []
    assert "20" in made["verdict"]["reason"]
    status, *_ = run("subgroups", *asked, "--output", "out", "--gate")
    assert status == 4
    assert pd.read_csv("out/subgroups.csv").columns[0] == "subgroup"


def test_a_table_without_rows_is_refused() -> None:
    with invalid():
        fa.worst_subgroups(PEOPLE[["sex"]][:0], prediction=PEOPLE["d"][:0])


def test_an_infinite_number_is_refused() -> None:
    rows = pd.DataFrame({"income": np.r_[np.inf, np.arange(299.0)], "sex": np.arange(300) % 2})
    with invalid(option="columns", column="income", row=0):
        fa.worst_subgroups(rows, prediction=np.arange(300) % 2)
