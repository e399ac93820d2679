"""Comparisons within pairs: McNemar's test, enumerated signs, Student's interval, level, margins, and refusals."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from statsmodels.stats.contingency_tables import mcnemar

import fairness_audits as fa
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.matched import McNemar, Pairs, SignFlips
from fairness_audits.audits.permutation.outcomes import MatchedRows
from fairness_audits.audits.permutation.paired import score_interval
from fairness_audits.values import Array
from tests.audits.permutation.builders import at_most, near
from tests.cli.places import json_of
from tests.errors import invalid

PAIRS = 120
RNG = np.random.default_rng(3)
MERIT = RNG.random(PAIRS)


def rows() -> pd.DataFrame:
    """Two rows of each prompt in random order; the second name costs some points."""
    scores = np.r_[MERIT, np.clip(MERIT - 0.08 * RNG.random(PAIRS), 0, 1)]
    table = pd.DataFrame({"prompt": np.tile([f"p{i}" for i in range(PAIRS)], 2), "score": scores})
    table["name"] = np.repeat(["Emily", "Lakisha"], PAIRS)
    table["template"] = np.tile(np.arange(PAIRS) // 4, 2)
    table["y"], table["d"] = np.tile((MERIT > 0.4).astype(int), 2), (table["score"] > 0.5).astype(int)
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


ROWS = rows()
USUAL: dict[str, Any] = {"data": ROWS, "group": "name", "matched": "prompt", "draws": 999}


def matched(a: Array, b: Array, whole: Array | None = None, decisions: bool = False) -> MatchedRows:
    """Pairs of a value in group a and one in group b, (n,) each; ``whole`` (n,) are clusters."""
    n, both = len(a), np.r_[a, b]
    part = None if whole is None else np.unique(np.r_[2 * whole, 2 * whole + 1], return_inverse=True)[1]
    return MatchedRows(
        label=np.zeros(2 * n, dtype=np.int64),
        score=both.astype(float),
        group=np.repeat([0, 1], n),
        groups=("a", "b"),
        prediction=both if decisions else None,
        cluster=part,
        match=np.tile(np.arange(n), 2),
        names=[str(number) for number in range(n)],
        whole=None if whole is None else np.tile(whole, 2),
    )


def test_rates_have_mcnemars_exact_test_and_tangos_interval() -> None:
    (found,) = fa.permutation_test(prediction="d", metric="selection_rate", **USUAL).facts["results"]
    table = ROWS.pivot_table(index="prompt", columns="name", values="d")
    up, down = ((table["Emily"] > table["Lakisha"]).sum(), (table["Emily"] < table["Lakisha"]).sum())
    assert found["matched"] == {"pairs": PAIRS, "higher": [up, down]}
    assert found["method"] == "mcnemar"
    assert found["p_value"] == pytest.approx(mcnemar([[0, up], [down, 0]], exact=True).pvalue)
    assert found["difference"] == pytest.approx((up - down) / PAIRS)
    low, high = score_interval(int(up), int(down), PAIRS, 0.025)
    assert found["interval"][1] == pytest.approx(high)
    assert found["interval"][0] == pytest.approx(low if found["rejected"] else min(low, 0))


@pytest.mark.parametrize(("up", "down", "n"), [(12, 3, 100), (0, 0, 40), (1, 9, 25)])
@pytest.mark.parametrize("alternative", ["two-sided", "equal-tailed", "greater", "less"])
def test_the_interval_holds_0_exactly_if_equality_is_not_rejected(up: int, down: int, n: int, alternative: str) -> None:
    a, b = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    a[:up], b[up : up + down] = 1, 1
    data = matched(a, b, decisions=True)
    found = permutation_test(data, "selection_rate", rng=np.random.default_rng(0), alternative=alternative)
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert found.rejected == (not found.ci_low <= 0 <= found.ci_high)
    assert found.statistic == pytest.approx((up - down) / np.sqrt(up + down) if up + down else 0.0)


def test_a_true_positive_rate_is_that_of_pairs_of_positives() -> None:
    found = fa.permutation_test("y", prediction="d", metric="tpr", **USUAL).facts["results"][0]
    positives = ROWS[ROWS["y"] == 1]
    assert found["matched"]["pairs"] == len(positives) / 2
    for one in found["groups"]:
        assert one["estimate"] == pytest.approx(positives.loc[positives["name"] == one["name"], "d"].mean())


@pytest.mark.parametrize("whole", [None, np.array([0, 0, 0, 1, 1, 2, 3, 4])])
def test_random_signs_approach_all_signs(whole: Array | None) -> None:
    a, b = np.array([5.0, 3, 8, 6, 2, 7, 9, 4]), np.array([4.0, 1, 8, 3, 4, 2, 5, 3])
    unit = np.arange(8) if whole is None else whole
    each, m = np.bincount(unit, a - b), np.bincount(unit)

    def statistic(total: Array) -> float:
        mean = total.sum() / 8
        return float(mean / np.sqrt(len(m) / (len(m) - 1) * ((total - m * mean) ** 2).sum() / 64))

    every = [statistic(each * signs) for signs in product((1, -1), repeat=len(each))]
    data = matched(a, b, whole)
    found = permutation_test(data, "mean_score", rng=np.random.default_rng(0), alternative="greater", draws=20_000)
    assert found.statistic == pytest.approx(statistic(each))
    if whole is None:
        assert found.statistic == pytest.approx(ttest_rel(a, b).statistic)
    share = np.mean(np.array(every) >= statistic(each) - 1e-9)
    assert found.p_value == pytest.approx(share, abs=4 * np.sqrt(share / 20_000))


def test_the_interval_of_many_pairs_is_students() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.2, 1, (2, 400))
    found = permutation_test(matched(a, b), "mean_score", rng=rng, draws=10_000, alternative="equal-tailed")
    theirs = ttest_rel(a, b).confidence_interval(0.95)
    assert found.ci_low == pytest.approx(theirs.low, abs=0.01)
    assert found.ci_high == pytest.approx(theirs.high, abs=0.01)


@pytest.mark.parametrize("size", [1, 5])
def test_signs_have_their_level_if_only_the_means_are_equal(size: int) -> None:
    rng, trials, p = np.random.default_rng(2), 250, []
    for _ in range(trials):
        effect = np.repeat(rng.exponential(size=60) - 1, size)
        data = matched(effect, rng.normal(0, 0.3, 60 * size), np.arange(60 * size) // size)
        p.append(permutation_test(data, "mean_score", rng=rng, draws=199, alternative="equal-tailed").p_value)
    assert near(float(np.mean(np.array(p, dtype=float) <= 0.05)), 0.05, trials)


def test_a_margin_of_rates_has_its_level_at_the_bound() -> None:
    rng, trials, bounds = np.random.default_rng(4), 2000, Bounds.margin(0.1)
    counts = rng.multinomial(200, [0.15, 0.05, 0.8], trials)
    p = [McNemar(int(up), int(down), 200).equivalence(bounds, 0.05).p_within for up, down, _ in counts]
    assert at_most(np.mean(np.array(p) <= 0.05), 0.05, trials)
    assert np.mean(np.array(p) <= 0.05) > 0.03
    # The p-value is the level at which an end of Tango's interval reaches the bound.
    p_within = McNemar(12, 3, 200).equivalence(bounds, 0.05).p_within
    assert score_interval(12, 3, 200, p_within)[1] == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("changed", [0, 1])
def test_a_margin_is_not_shown_by_few_changes_in_few_clusters(changed: int) -> None:
    a = np.zeros(100, dtype=np.int64)
    a[:changed] = 1
    data = matched(a, np.r_[a[:0], np.zeros(99, dtype=np.int64), 1], np.arange(100) // 2, decisions=True)
    rng = np.random.default_rng(0)
    near_zero, far = (
        permutation_test(data, "selection_rate", rng=rng, bounds=Bounds.margin(margin), draws=999).equivalence
        for margin in (0.02, 0.2)
    )
    assert near_zero is not None
    assert far is not None
    assert near_zero.p_within > 0.05 >= far.p_within


def test_equal_scores_show_a_margin_and_no_difference() -> None:
    score = np.linspace(0, 1, 500)
    found = permutation_test(
        matched(score, score), "mean_score", rng=np.random.default_rng(0), bounds=Bounds.margin(0.02)
    )
    assert (found.p_value, found.difference) == (1.0, 0.0)
    assert found.equivalence is not None
    assert found.equivalence.p_within <= 0.05
    assert found.equivalence.interval[1] == pytest.approx(1 - 0.05 ** (1 / 500), rel=0.25)


def test_variance_ignores_signs() -> None:
    pairs = Pairs(np.array([[1.0, 2.0, 4.0], [0.0, 0.0, 0.0]]), np.arange(3))
    drawn = SignFlips(pairs, 0).permuted(0, 50)
    total = 7 * np.array(3)
    for mean, variance in zip(drawn.value[0], drawn.variance[0], strict=True):
        assert variance == pytest.approx((total - 3 * mean**2) / 2 / 3)


def test_every_two_groups_are_compared_by_the_pairs_that_have_both() -> None:
    third = ROWS[ROWS["name"] == "Emily"].assign(name="Mei", score=lambda table: table["score"] + 0.01).iloc[:50]
    table = pd.concat([ROWS, third])
    found = fa.permutation_test(score="score", metric="mean_score", **{**USUAL, "data": table}).facts["results"]
    pairs = {tuple(group["name"] for group in one["groups"]): one["matched"]["pairs"] for one in found}
    assert pairs == {("Emily", "Lakisha"): PAIRS, ("Emily", "Mei"): 50, ("Lakisha", "Mei"): 50}
    (one,) = [entry for entry in found if entry["groups"][1]["name"] == "Mei" and entry["groups"][0]["name"] == "Emily"]
    assert one["difference"] == pytest.approx(-0.01)


def test_arrays_and_files_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.to_csv("prompts.csv", index=False)
    (one,) = fa.permutation_test(
        score=ROWS["score"],
        group=ROWS["name"],
        matched=ROWS["prompt"],
        cluster=ROWS["template"],
        metric="mean_score",
        draws=999,
    ).facts["results"]
    asked = ("--score", "score", "--group", "name", "--matched", "prompt", "--cluster", "template", "--draws", "999")
    (two,) = json_of("permutation", "--predictions", "prompts.csv", *asked, "--metric", "mean_score")["results"]
    assert one == two
    assert one["groups"][0]["units"] == PAIRS // 4


def changed(**columns: Any) -> pd.DataFrame:
    return ROWS.assign(**columns)


FIRST = ROWS.index == 0
P0 = ROWS["prompt"].iloc[0]


@pytest.mark.parametrize(
    ("table", "option", "names"),
    [
        (ROWS.iloc[1:], "matched", repr(P0)),
        (changed(name=ROWS["name"].where(ROWS["prompt"] != P0, "Emily")), "matched", repr(P0)),
        (changed(prompt=ROWS["prompt"].where(~FIRST)), "matched", "prompt"),
        (changed(template=ROWS["template"].where(~FIRST, 99)), "matched", repr(P0)),
        (changed(y=ROWS["y"].where(~FIRST, 1 - ROWS["y"])), "matched", repr(P0)),
        (changed(template=ROWS["template"].where(~FIRST)), "cluster", "template"),
    ],
)
def test_a_table_without_pairs_is_refused_by_the_pair(table: pd.DataFrame, option: str, names: str) -> None:
    with invalid(option=option) as error:
        fa.permutation_test("y", prediction="d", metric="tpr", cluster="template", **{**USUAL, "data": table})
    assert names in str(error.value)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"metric": "auc"}, "metric"),
        ({"metric": "precision"}, "metric"),
        ({"metric": "f1"}, "metric"),
        ({"metric": lambda y, score, weight: 0.0}, "metric"),
        ({"weight": "y"}, "weight"),
        ({"within": "template"}, "within"),
        ({"ratio": True}, "ratio"),
        ({"correct": "max-t"}, "correct"),
        ({"method": "unstudentized"}, "method"),
        ({"metric": "mean_score", "method": "exact"}, "method"),
        ({"pairs": True}, "pairs"),
        ({"prediction": None, "top": 5}, "top"),
    ],
)
def test_what_pairs_cannot_have_is_refused(options: dict[str, Any], option: str) -> None:
    with invalid(option=option):
        fa.permutation_test("y", **{"score": "score", "prediction": "d", "metric": "tpr", **USUAL, **options})
