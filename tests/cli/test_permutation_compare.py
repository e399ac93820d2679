"""Two versions of a model on the same rows, by command and by call."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, roc_auc_score

import fairness_audits as fa
from fairness_audits.errors import InvalidInput
from tests.cli.places import json_of, run
from tests.errors import invalid

N = 2000


def versions() -> pd.DataFrame:
    """The new version recognises more of women's positives, and the same of men's; races are alike."""
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], N), "race": rng.choice(["a", "b"], N), "y": rng.integers(0, 2, N)}
    )
    old, gained = rng.random(N) < 0.6, rng.random(N) < 0.4
    new = old | (gained & (frame["sex"] == "f") & (frame["y"] == 1))
    scores = rng.random(N)
    return frame.assign(old=old.astype(int), new=new.astype(int), p1=scores, p2=scores + 0.1 * rng.normal(size=N))


ROWS = versions()
DECISIONS = {"first": ROWS["old"], "second": ROWS["new"]}
SCORES = {"first": ROWS["p1"], "second": ROWS["p2"]}


def test_the_command_finds_the_change_and_is_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("rows.csv", index=False)
    asked = "--predictions rows.csv --label y --versions old,new --group sex,race --metric tpr --draws 999"
    made = json_of("compare", *asked.split())
    results = {(one["grouping"], one["what"]): one for one in made["results"]}
    assert {key for key, one in results.items() if one["rejected"]} >= {("sex", "f"), ("sex", "gap f - m")}
    assert results["sex", "m"]["change"] == 0
    assert not results["race", "gap a - b"]["rejected"]
    own = ROWS[(ROWS["sex"] == "f") & (ROWS["y"] == 1)]
    one = results["sex", "f"]
    assert (one["n"], one["first"], one["second"]) == (len(own), own["old"].mean(), own["new"].mean())
    gap = results["sex", "gap f - m"]
    assert gap["change"] == pytest.approx(results["sex", "f"]["change"] - results["sex", "m"]["change"])
    assert gap["change"] == pytest.approx(gap["second"] - gap["first"])
    call: dict[str, Any] = {"group": ROWS[["sex", "race"]], "metric": "tpr", "draws": 999}
    called = fa.compare(ROWS["y"], **DECISIONS, **call)
    assert called.facts["results"] == made["results"]
    assert run("compare", *asked.split(), "--output", "out", "--gate")[0] == 3
    assert "gap f - m" in Path("out/compare.html").read_text()


@pytest.mark.parametrize(
    ("code", "decided"),
    [
        (lambda y: y + 1, lambda d: d + 1),
        (lambda y: y + 1, lambda d: d),
        (lambda y: y.astype(float), lambda d: d.astype(str)),
        (lambda y: y.astype(str), lambda d: d.astype(float)),
    ],
)
def test_numbers_and_texts_of_the_label_are_decisions(code: Any, decided: Any) -> None:
    """With labels 1 and 2, a version that is 1 in all rows holds decisions, because the other one holds 0 and 1."""
    call: dict[str, Any] = {"group": ROWS["sex"], "metric": "tpr", "positive": str(code(ROWS["y"]).max())}
    for old, new in (
        (ROWS["old"], ROWS["new"]),
        (ROWS["old"], ROWS["old"] * 0 + 1),
        (ROWS["old"] * 0 + 1, ROWS["new"]),
    ):
        expected = fa.compare(ROWS["y"], first=old, second=new, group=ROWS["sex"], metric="tpr").facts["results"]
        found = fa.compare(code(ROWS["y"]), first=decided(old), second=decided(new), **call)
        assert found.facts["results"] == expected


def test_a_gap_has_an_interval_if_one_group_does_not_change() -> None:
    """190 of 1,000 men change and no woman, or one: the intervals are nearly the same."""
    group = ["f"] * 1000 + ["m"] * 1000
    first = np.r_[np.ones(70), np.zeros(930), np.ones(250), np.zeros(750)].astype(int)
    second = first.copy()
    second[1060:1250] = 0
    none = fa.compare(first=first, second=second, group=group, metric="selection_rate").to_frame().iloc[0]
    second[0] = 0
    one = fa.compare(first=first, second=second, group=group, metric="selection_rate").to_frame().iloc[0]
    for gap, change in ((none, 0.19), (one, 0.189)):
        assert gap["what"] == "gap f - m"
        assert gap["change"] == pytest.approx(change)
        assert (gap["ci_low"], gap["ci_high"]) == (pytest.approx(0.166, abs=0.002), pytest.approx(0.214, abs=0.002))


def test_scores_are_compared_as_they_are_or_cut() -> None:
    call: dict[str, Any] = {"group": ROWS["sex"], "draws": 199}
    (f, *_) = fa.compare(ROWS["y"], **SCORES, metric="squared_error", **call).facts["results"]
    own = ROWS[ROWS["sex"] == "f"]
    assert f["second"] == pytest.approx(((own["p2"] - own["y"]) ** 2).mean())
    cut = fa.compare(**SCORES, metric="selection_rate", threshold=0.5, **call).facts["results"][0]
    assert cut["first"] == pytest.approx((own["p1"] >= 0.5).mean())


@pytest.mark.parametrize("metric", ["auc", "precision", "npv"])
def test_metrics_that_are_no_means_over_fixed_rows_change_by_group_and_in_the_gap(metric: str) -> None:
    versions = SCORES if metric == "auc" else DECISIONS
    call: dict[str, Any] = {"group": ROWS["sex"], "metric": metric, "draws": 199}
    first, second, gap = fa.compare(ROWS["y"], **versions, **call).facts["results"]
    for one, name in ((first, "f"), (second, "m")):
        own = ROWS[ROWS["sex"] == name]
        for key, version in versions.items():
            assert one[key] == pytest.approx(BY_HAND[metric](own["y"], version[own.index]))
        assert one["interval"][0] <= one["change"] <= one["interval"][1]
    assert gap["change"] == pytest.approx(first["change"] - second["change"])
    if metric != "auc":
        assert [one["rejected"] for one in (first, second, gap)] == [True, False, True]


BY_HAND: dict[str, Any] = {
    "auc": roc_auc_score,
    "precision": precision_score,
    "npv": lambda y, d: precision_score(1 - y, 1 - d),
}


def test_the_same_version_twice_is_inconclusive_and_f1_is_refused() -> None:
    call: dict[str, Any] = {"group": ROWS["sex"], "draws": 199}
    for metric in ("tpr", "precision"):
        same = fa.compare(ROWS["y"], first=ROWS["old"], second=ROWS["old"], metric=metric, **call)
        assert same.outcome == "inconclusive"
    with pytest.raises(InvalidInput):
        fa.compare(ROWS["y"], **DECISIONS, metric="f1", **call)


def test_few_draws_are_refused_or_raised_and_few_rows_decide_nothing() -> None:
    rng = np.random.default_rng(0)
    score = rng.normal(size=300)
    call: dict[str, Any] = {"first": score, "second": score + 0.3, "metric": "mean_score"}
    group = rng.choice(["a", "b"], 300)
    assert fa.compare(**call, group=group).outcome == "rejected"
    with invalid(option="draws"):
        fa.compare(**call, group=group, draws=50)
    few = np.where(np.arange(300) < 10, "few", "many")
    shifted = {**call, "second": np.where(few == "few", score + 0.3, score)}
    assert fa.compare(**shifted, group=few).outcome == "inconclusive"


def better_for_both(n: int = 8000) -> dict[str, Any]:
    """Accuracy rises in both groups, and the gap shrinks from 12 to 5 points."""
    rng = np.random.default_rng(0)
    group, y, u = rng.choice(["f", "m"], n), rng.integers(0, 2, n), rng.random(n)
    right = [(u < np.where(group == "f", *rates)) for rates in ((0.75, 0.87), (0.86, 0.91))]
    versions = {name: np.where(one, y, 1 - y) for name, one in zip(("first", "second"), right, strict=True)}
    return {"y": y, "group": group, "metric": ["accuracy", "fpr"], "draws": 399, **versions}


def test_gaps_come_first() -> None:
    found = fa.compare(**better_for_both())
    assert [what.startswith("gap") for what in found.to_frame()["what"]] == [True, False, False] * 2
    assert "the gap f - m shrinks from -1" in found.verdict.sentence.partition(" for f")[0]
    assert "gap f - m" in found.brief.found.partition(" for f")[0]  # type: ignore[union-attr]


def test_rates_are_quoted_in_percent_and_points_and_means_as_they_are() -> None:
    group, first = ["f"] * 200 + ["m"] * 200, np.r_[np.tile([1, 0, 0, 0], 50), np.tile([1, 1, 0, 0], 50)]
    second = np.r_[np.tile([1, 1, 0, 0], 50), first[200:]]
    call: dict[str, Any] = {"first": first, "second": second, "group": group}
    found = fa.compare(**call, metric="selection_rate")
    for part in (
        "Selection rate by group: the gap f - m shrinks from -25.0 points to 0.0 points, a change of 25.0 points",
        "selection rate by group: from 25.0 % to 50.0 % for f, a change of 25.0 points",
    ):
        assert part in found.verdict.sentence
    assert found.brief is not None
    # The rate of m does not change. Sentences mention shown changes only.
    assert "for m" not in found.verdict.sentence + found.brief.found
    mean = fa.compare(**call, metric="mean_score").verdict.sentence
    assert "from 0.2500 to 0.5000 for f, a change of +0.2500" in mean
    limited = fa.compare(**call, metric="selection_rate", no_worse_than=0.02)
    assert "The margin is 2 points." in limited.verdict.sentence
    assert "the gap f - m is 25.0 points smaller" in limited.verdict.sentence


@pytest.mark.parametrize("metric", ["auc", "precision", "tpr", "mean_score"])
def test_a_gap_to_the_reference_is_the_gap_in_the_rows_of_both_groups(metric: str) -> None:
    rng = np.random.default_rng(4)
    n = 1200
    rows = pd.DataFrame({"town": rng.choice(["x", "y", "z"], n), "y": rng.integers(0, 2, n)})
    kind = (lambda: rng.random(n)) if metric in ("auc", "mean_score") else (lambda: rng.integers(0, 2, n))
    rows = rows.assign(first=kind(), second=kind())

    def gaps(of: pd.DataFrame, **options: Any) -> dict[str, dict[str, Any]]:
        call = {name: of[name] for name in ("first", "second")}
        made = fa.compare(of["y"], **call, group=of["town"], metric=metric, no_worse_than=0.1, **options)
        return {one["what"]: one for one in made.facts["results"] if one["gap"]}

    found = gaps(rows, reference="y", correct="none")
    assert list(found) == ["gap x - y", "gap z - y"]
    drawn = () if metric in ("auc", "precision") else ("interval", "p_value")
    same = {"n", "first", "second", "change", "worse", "interval", "p_value"}.difference(drawn)
    for one in "xz":
        (alone,) = gaps(rows[rows["town"] != "xz".replace(one, "")], reference="y", correct="none").values()
        assert {key: found[f"gap {one} - y"][key] for key in same} == {key: alone[key] for key in same}
    assert list(gaps(rows[rows["town"] != "z"], reference="x")) == ["gap y - x"]
    with invalid(option="reference"):
        gaps(rows, reference="w")


@pytest.mark.parametrize(
    ("exchanged", "rows", "outcome"),
    [(False, 8000, "not rejected"), (True, 8000, "rejected"), (False, 90, "inconclusive"), (False, 30, "inconclusive")],
)
def test_what_is_better_for_both_groups_is_shown_to_be_no_worse(exchanged: bool, rows: int, outcome: str) -> None:
    call = better_for_both(rows)
    if exchanged:
        call["first"], call["second"] = call["second"], call["first"]
    found = fa.compare(**call, no_worse_than=0.02)
    assert found.outcome == outcome
    for one in found.facts["results"]:
        sign = -1 if one["metric"] == "accuracy" else 1
        grown = abs(one["second"]) - abs(one["first"]) if one["gap"] else sign * one["change"]
        assert one["worse"]["by"] == pytest.approx(grown)
        assert one["worse"]["at_least"] <= one["worse"]["by"] <= one["worse"]["at_most"]


def test_the_gate_asks_whether_a_version_is_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = better_for_both()
    pd.DataFrame({name: call[name] for name in ("y", "group", "first", "second")}).to_csv("rows.csv", index=False)
    words = [
        "--predictions",
        "rows.csv",
        "--label",
        "y",
        "--group",
        "group",
        "--metric",
        "accuracy,fpr",
        "--gate",
        "--draws",
        "399",
        "--versions",
    ]
    assert run("compare", *words, "first,second")[0] == 3
    assert run("compare", *words, "first,second", "--no-worse-than", "0.02")[0] == 0
    assert run("compare", *words, "second,first", "--no-worse-than", "0.02")[0] == 3


@pytest.mark.parametrize(
    ("metric", "raised"),
    [("tpr", -1), ("fnr", 1), ("auc", -1), ("precision", -1), ("npv", -1), ("absolute_error", 1), ("log_loss", 1)],
)
def test_the_better_direction_of_each_metric_is_known(metric: str, raised: int) -> None:
    """The second version confuses some rows of both groups: whatever the metric, both groups get worse."""
    rng, y = np.random.default_rng(3), np.tile([0, 1], 2000)
    group, confused = np.repeat(["a", "b"], 2000), np.arange(4000) % 5 < 2
    score = np.clip(0.25 + 0.5 * y + 0.2 * rng.normal(size=4000), 0.01, 0.99)
    worse = np.where(confused, 1 - score, score)
    decided = metric in ("tpr", "fnr", "precision", "npv")
    call: dict[str, Any] = {"threshold": 0.5} if decided else {}
    call |= {"group": group, "metric": metric, "draws": 199, "no_worse_than": 0.1}
    found = fa.compare(y, first=score, second=worse, **call)
    assert found.outcome == "rejected"
    for one in found.facts["results"][:2]:
        assert one["worse"]["by"] == pytest.approx(raised * one["change"])
        assert one["worse"]["outcome"] == "exceeded"
    assert fa.compare(y, first=worse, second=score, **call).outcome == "not rejected"


def test_a_metric_without_a_better_direction_has_gaps_alone_and_a_mean_error_is_best_at_0() -> None:
    rng, n = np.random.default_rng(4), 4000
    y, group = rng.integers(0, 2, n), np.tile(["a", "b"], n // 2)
    all_more: dict[str, Any] = {"first": rng.integers(0, 2, n), "second": np.ones(n, dtype=int)}
    call: dict[str, Any] = {"group": group, "no_worse_than": 0.1, "draws": 199}
    found = fa.compare(y, **all_more, metric="selection_rate", **call)
    assert [one["worse"] is None for one in found.facts["results"]] == [True, True, False]
    assert found.outcome == "not rejected"
    off: dict[str, Any] = {"first": y - 0.3 + 0.1 * rng.normal(size=n), "second": y + 0.2 + 0.1 * rng.normal(size=n)}
    found = fa.compare(y, **off, metric="mean_error", **call)
    assert [one["worse"]["by"] for one in found.facts["results"][:2]] == pytest.approx([-0.1, -0.1], abs=0.01)


@pytest.mark.parametrize("metric", ["accuracy", "precision", "auc", "absolute_error"])
def test_the_same_version_is_no_worse_if_there_are_enough_rows(metric: str) -> None:
    for rows, margin, outcome in ((ROWS, 0.05, "not rejected"), (ROWS[:60], 0.02, "inconclusive")):
        one = rows["p1" if metric in ("auc", "absolute_error") else "old"]
        call: dict[str, Any] = {"group": rows["sex"], "metric": metric, "draws": 199, "no_worse_than": margin}
        assert fa.compare(rows["y"], first=one, second=one, **call).outcome == outcome


def test_a_change_without_a_variance_is_tested_by_its_pairs() -> None:
    """The AUC falls from 1 to 0 in both groups: neither has an estimated variance, and the gap does not change."""
    y, group = np.arange(200) % 2, np.where(np.arange(200) // 2 % 2, "b", "a")
    score = y + np.random.default_rng(0).uniform(0, 0.5, 200)
    found = fa.compare(y, first=score, second=-score, group=group, metric="auc")
    first, _, gap = found.facts["results"]
    assert (first["first"], first["second"], first["change"], first["p_value"]) == (1.0, 0.0, -1.0, 2 * 0.5**50)
    assert found.outcome == "rejected"
    assert (gap["p_value"], gap["interval"][0]) == (1.0, -gap["interval"][1])
    nobody = fa.compare(y, first=(score > 0.6) * 1, second=y * 0, group=group, metric="precision")
    assert nobody.outcome == "inconclusive"


def test_tests_that_draw_nothing_take_any_number_of_draws() -> None:
    assert fa.compare(ROWS["y"], **SCORES, group=ROWS["sex"], metric="auc", draws=10).outcome


def test_a_mean_of_amounts_and_infinite_losses_are_not_those_of_rates() -> None:
    rng, n = np.random.default_rng(0), 300
    y, s, g = rng.integers(0, 2, n), rng.random(n), rng.choice(["a", "b", "c"], n)
    second = np.where(g == "a", s, s + rng.normal(0, 0.1, n))
    small, large = (
        fa.compare(y, first=unit * s, second=unit * second, group=g, metric="mean_score", draws=399).facts["results"]
        for unit in (1.0, 1e5)
    )
    assert small[0]["interval"] == [None, None]
    for one, other in zip(small[1:3], large[1:3], strict=True):
        np.testing.assert_allclose(1e5 * np.array(one["interval"]), other["interval"])
    steps = np.round(s, 1)
    for one in fa.compare(y, first=steps, second=steps[::-1], group=g, metric="log_loss", draws=399).facts["results"]:
        assert one["p_value"] is None
    half = np.full(60, 0.5)
    single = ["a"] * 59 + ["b"]
    changed = np.r_[0.25, half[1:]]
    assert fa.compare(y[:60], first=half, second=changed, group=single, metric="log_loss").facts["results"][2]["n"] == 1
    with invalid(option="score"):
        fa.compare(y[:60], first=half + 1, second=changed, group=single, metric="log_loss")


def test_aucs_without_a_variance_have_the_interval_of_their_pairs() -> None:
    rng = np.random.default_rng(0)
    y, g = rng.integers(0, 2, 400), rng.choice(["a", "b"], 400)
    call: dict[str, Any] = {"group": g, "metric": "auc"}
    turned = fa.compare(y, first=1 - y + rng.random(400) / 2, second=y + rng.random(400) / 2, **call)
    assert turned.outcome == "rejected"
    same = fa.compare(y, first=y + 0.0, second=y + rng.random(400) / 2, **call)
    assert all(low < 0 < high for low, high in (one["interval"] for one in same.facts["results"]))


def test_a_family_of_changes_says_that_each_interval_is_for_its_comparison_alone() -> None:
    group, place = np.repeat(["f", "m"], 100), np.arange(200)
    call: dict[str, Any] = {"first": place % 2, "second": place // 2 % 2, "metric": "selection_rate", "draws": 199}
    together, alone = fa.compare(group=group, **call), fa.compare(**call)
    conditions = [{caveat.condition for caveat in one.caveats} for one in (together, alone)]
    assert [len(together.facts["results"]), len(alone.facts["results"])] == [3, 1]
    assert ["several_tests" in one for one in conditions] == [True, False]


def test_a_margin_in_points_and_scores_of_all_classes_are_told_what_to_pass() -> None:
    call: dict[str, Any] = {"group": ROWS["sex"], "metric": "selection_rate"}
    decided = {"first": ROWS["y"], "second": ROWS["y"]}
    with invalid(option="no_worse_than", remedy="5 points are no_worse_than=0.05"):
        fa.compare(**decided, **call, no_worse_than=5)
    with invalid(option="margin", remedy="5 points are margin=0.05"):
        fa.permutation_test(prediction=ROWS["y"], **call, margin=5)
    with invalid(option="at_least", remedy="80 % is at_least=0.8"):
        fa.permutation_test(prediction=ROWS["y"], **call, ratio=True, at_least=80)
    both = np.column_stack([1 - ROWS["y"], ROWS["y"]]).astype(float)
    with invalid(
        option="score", remedy="If it holds a value for each class, pass that of one class, such as score[:, 1]"
    ):
        fa.permutation_test(ROWS["y"], score=both, group=ROWS["sex"], metric="auc")
    with invalid(option="prediction", column="prediction"):
        fa.permutation_test(prediction=np.where(ROWS["y"] == 1, "good", "bad"), **call)


def test_weights_and_undefined_ratios_are_said_in_words() -> None:
    call: dict[str, Any] = {"group": ROWS["sex"], "metric": "selection_rate"}
    weighted = fa.permutation_test(prediction=ROWS["y"], weight=np.ones(len(ROWS)) * 2, **call, draws=99)
    assert " weighted rows) and " in weighted.verdict.sentence
    nobody = fa.permutation_test(prediction=0 * ROWS["y"], ratio=True, **call).verdict.sentence
    assert ", an undefined ratio: cannot tell." in nobody
