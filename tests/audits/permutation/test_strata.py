"""Comparisons within strata: closed forms, enumeration, other implementations, level and coverage."""

from functools import reduce
from itertools import product
from math import comb, log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairness_audits as fa
from fairness_audits.audits.permutation import strata as module
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.exact import Rates, exact_p
from fairness_audits.audits.permutation.outcomes import StratifiedCounts
from fairness_audits.audits.permutation.score_tests import score_test
from fairness_audits.audits.permutation.strata import Common, Strata, stratified_p
from fairness_audits.cli.entry import parser, values_of
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array
from tests.audits.permutation.builders import at_most, near
from tests.cli.places import json_of
from tests.errors import invalid

SMALL = Strata(*map(np.array, ([3, 0, 4], [5, 2, 4], [1, 2, 5], [6, 3, 7])))
LARGE = Strata(*map(np.array, ([12, 30, 7], [40, 55, 33], [9, 21, 11], [52, 48, 29])))


def drawn(rng: np.random.Generator, rate_a: Array, rate_b: Array, least: int, most: int) -> Strata:
    m_a, m_b = (rng.integers(least, most, len(rate_a)) for _ in range(2))
    return Strata(rng.binomial(m_a, rate_a), m_a, rng.binomial(m_b, rate_b), m_b)


def counts(strata: Strata) -> StratifiedCounts:
    """Selections of the groups a and b in each stratum."""
    x_a, m_a, x_b, m_b = strata
    selected = np.stack([np.stack([m_a - x_a, x_a], axis=-1), np.stack([m_b - x_b, x_b], axis=-1)], axis=1)
    names = tuple(f"s{number}" for number in range(len(x_a)))
    return StratifiedCounts.of_strata(np.stack([selected, 0 * selected], axis=2), ("a", "b"), names)


def test_p_values_are_those_of_all_tables_with_the_same_margins() -> None:
    chances: dict[int, float] = {}
    for sums in product(*(range(x_a + x_b + 1) for x_a, _, x_b, _ in zip(*SMALL, strict=True))):
        ways = [
            comb(m_a, one) * comb(m_b, x_a + x_b - one) / comb(m_a + m_b, x_a + x_b)
            for one, x_a, m_a, x_b, m_b in zip(sums, *SMALL, strict=True)
        ]
        chances[sum(sums)] = chances.get(sum(sums), 0.0) + float(np.prod(ways))
    observed = int(SMALL.x_a.sum())
    found = stratified_p(SMALL)
    assert found.exact
    assert found.p.greater == pytest.approx(sum(p for total, p in chances.items() if total >= observed))
    assert found.p.less == pytest.approx(sum(p for total, p in chances.items() if total <= observed))
    rare = sum(p for p in chances.values() if p <= chances[observed] * (1 + 1e-7))
    assert found.p.two_sided == pytest.approx(rare)


def test_one_stratum_is_fishers_test() -> None:
    one = Strata(*(values[:1] for values in LARGE))
    assert stratified_p(one).p == pytest.approx(exact_p(Rates(12, 40, 9, 52)))
    assert stratified_p(one).statistic ** 2 == pytest.approx(float(score_statistic_squared(12, 40, 9, 52)))


def score_statistic_squared(x_a: int, m_a: int, x_b: int, m_b: int) -> float:
    n, events = m_a + m_b, x_a + x_b
    variance = events * (n - events) / (n * (n - 1)) * n / (m_a * m_b)
    return (x_a / m_a - x_b / m_b) ** 2 / variance


def test_the_asymptotic_test_and_the_ratio_are_those_of_statsmodels(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    each = [np.array([[a, m - a], [b, k - b]]) for a, m, b, k in zip(*LARGE, strict=True)]
    theirs = tables.StratifiedTable(each)
    monkeypatch.setattr(module, "SUMS", 1)
    ours = stratified_p(LARGE)
    assert not ours.exact
    assert ours.p.two_sided == pytest.approx(theirs.test_null_odds(correction=False).pvalue)
    assert Common(LARGE, "ratio").estimate == pytest.approx(theirs.riskratio_pooled)


def test_exact_and_asymptotic_p_values_agree_in_large_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, rates = np.random.default_rng(3), np.linspace(0.2, 0.6, 5)
    large = drawn(rng, rates - 0.02, rates, 4000, 5000)
    exact = stratified_p(large)
    monkeypatch.setattr(module, "SUMS", 1)
    assert exact.exact
    assert stratified_p(large).p.greater == pytest.approx(exact.p.greater, rel=0.02)


def test_standard_errors_are_those_of_sato_and_of_greenland_and_robins() -> None:
    difference, ratio = 0.0, 0.0
    p = q = weight = numerator = right = left = 0.0
    for x, n1, y, n0 in zip(*(one.tolist() for one in LARGE), strict=True):
        n = n1 + n0
        weight += n1 * n0 / n
        difference += (x * n0 - y * n1) / n
        p += (n1**2 * y - n0**2 * x + n1 * n0 * (n0 - n1) / 2) / n**2
        q += (x * (n0 - y) / n + y * (n1 - x) / n) / 2
        numerator += (n1 * n0 * (x + y) - x * y * n) / n**2
        right, left = right + x * n0 / n, left + y * n1 / n
    difference, ratio = difference / weight, right / left
    found, of_ratio = Common(LARGE, "difference"), Common(LARGE, "ratio")
    assert found.estimate == pytest.approx(difference)
    assert found.error == pytest.approx(sqrt((difference * p + q) / weight**2))
    assert of_ratio.estimate == pytest.approx(ratio)
    assert of_ratio.error == pytest.approx(sqrt(numerator / (right * left)))
    low, high = of_ratio.interval(0.05)
    assert log(high) - log(low) == pytest.approx(2 * stats.norm.ppf(0.975) * of_ratio.error)


@pytest.mark.parametrize("strata", [2, 30])
@pytest.mark.parametrize("least", [4, 40])
def test_level_and_coverage_hold_for_few_and_for_many_strata(strata: int, least: int) -> None:
    rng, rates, simulations = np.random.default_rng(5), np.linspace(0.15, 0.5, strata), 100
    rejected, covered, covered_ratio, uneven = [], [], [], []
    for _ in range(simulations):
        rejected.append(stratified_p(drawn(rng, rates, rates, least, 3 * least)).p.two_sided <= 0.05)
        shifted = Common(drawn(rng, rates + 0.1, rates, least, 3 * least), "difference")
        low, high = shifted.interval(0.05)
        covered.append(low <= 0.1 <= high)
        same = shifted.homogeneity()
        uneven.append(same is not None and same.p_value <= 0.05)
        low, high = Common(drawn(rng, 0.7 * rates, rates, least, 3 * least), "ratio").interval(0.05)
        covered_ratio.append(low <= 0.7 <= high)
    assert at_most(np.mean(rejected), 0.05, simulations)
    assert at_most(np.mean(uneven), 0.05, simulations)
    assert at_most(1 - np.mean(covered), 0.05, simulations)
    assert at_most(1 - np.mean(covered_ratio), 0.05, simulations)


def test_homogeneity_is_rejected_at_its_level_and_if_differences_have_opposite_signs() -> None:
    rng, rates, simulations = np.random.default_rng(6), np.full(8, 0.4), 300
    p = [Common(drawn(rng, rates + 0.1, rates, 60, 90), "difference").homogeneity() for _ in range(simulations)]
    assert near(float(np.mean([one is not None and one.p_value <= 0.05 for one in p])), 0.05, simulations)
    opposite = Common(drawn(rng, rates + 0.3 * np.tile([1, -1], 4), rates, 60, 90), "difference").homogeneity()
    assert opposite is not None
    assert opposite.degrees_of_freedom == 7
    assert opposite.p_value < 1e-6


def test_strata_of_the_same_difference_have_no_heterogeneity() -> None:
    same = Strata(*map(np.array, ([5, 9], [10, 10], [2, 6], [10, 10])))
    found = Common(same, "difference").homogeneity()
    assert found is not None
    assert found.statistic == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("comparison", ["difference", "ratio"])
def test_without_variance_the_score_bounds_what_remains_possible(comparison: str) -> None:
    none = Common(Strata(*map(np.array, ([0, 0], [50, 60], [0, 0], [40, 30]))), comparison)  # type: ignore[arg-type]
    low, high = none.interval(0.05)
    if comparison == "ratio":
        assert np.isnan([low, high]).all()
    else:
        assert -0.2 < low < 0 < high < 0.2
    rare = Common(Strata(*map(np.array, ([0, 0], [50, 60], [20, 9], [40, 30]))), comparison)  # type: ignore[arg-type]
    assert rare.test(0.8 if comparison == "ratio" else -0.1).below < 0.001


def test_the_score_of_one_stratum_is_the_score_test() -> None:
    one = Common(Strata(*map(np.array, ([0], [400], [30], [400]))), "ratio")
    assert one.test(0.8) == pytest.approx(score_test(Rates(0, 400, 30, 400), 0.8, "ratio"))


def test_simpsons_paradox_is_seen() -> None:
    """Women are selected as often as men in each occupation, but they are in those that select rarely."""
    paradox = counts(Strata(*map(np.array, ([10, 80], [200, 100], [5, 240], [100, 300]))))
    found = permutation_test(paradox, "selection_rate", rng=np.random.default_rng(1))
    assert found.difference == pytest.approx(0, abs=1e-12)
    assert not found.rejected
    assert found.within is not None
    assert found.within.overall.difference == pytest.approx(90 / 300 - 245 / 400)
    assert found.within.overall.rejected


def test_strata_of_one_group_do_not_contribute() -> None:
    more = Strata(*(np.append(one, add) for one, add in zip(LARGE, (3, 9, 0, 0), strict=True)))
    one, two = (
        permutation_test(counts(each), "selection_rate", rng=np.random.default_rng(1)) for each in (LARGE, more)
    )
    assert (one.p_value, one.difference, one.ci_low, one.units) == (two.p_value, two.difference, two.ci_low, two.units)
    assert two.within is not None
    assert two.within.alone == {"s3": (9, 0)}
    assert list(two.within.strata) == ["s0", "s1", "s2"]


def test_the_interval_holds_0_exactly_if_equality_is_not_rejected() -> None:
    rng, rates = np.random.default_rng(8), np.linspace(0.1, 0.6, 6)
    for alternative in ("two-sided", "equal-tailed", "greater", "less"):
        for _ in range(40):
            data = counts(drawn(rng, rates + 0.12, rates, 5, 30))
            found = permutation_test(data, "selection_rate", rng=rng, alternative=alternative)
            assert found.ci_low is not None
            assert found.ci_high is not None
            assert (found.ci_low <= 0 <= found.ci_high) is not found.rejected


def test_bounds_are_shown_exactly_if_the_interval_is_within_them() -> None:
    rng, rates = np.random.default_rng(9), np.full(4, 0.5)
    for bounds, _ in product((Bounds.margin(0.1), Bounds.at_least(0.8, lowest_first=True)), range(30)):
        data = counts(drawn(rng, rates - 0.02, rates, 60, 300))
        found = permutation_test(data, "selection_rate", rng=rng, bounds=bounds).equivalence
        assert found is not None
        low, high = found.interval
        assert low is not None
        assert high is not None
        assert (bounds.low <= low and high <= bounds.high) == (found.p_within <= 0.05)


ROWS = 2400
PLACE = np.arange(ROWS)
PEOPLE = pd.DataFrame(
    {
        "sex": np.where(PLACE % 24 < 10, "f", "m"),
        "job": np.array(["clerk", "cook", "pilot"])[PLACE // 3 % 3],
        "age": 20 + PLACE * 7 % 50,
        "y": PLACE // 5 % 2,
        "d": (30 + 10 * (PLACE // 3 % 3) + 8 * (PLACE % 24 >= 10) > PLACE * 37 % 101).astype(int),
        "weight": 1.0,
    }
)


def expected(table: pd.DataFrame, strata: list[str]) -> Strata:
    """Count with pandas."""
    each = table.groupby(strata)
    parts = [[(one["d"][one["sex"] == sex].sum(), (one["sex"] == sex).sum()) for _, one in each] for sex in ("f", "m")]
    (x_a, m_a), (x_b, m_b) = (np.array(part).T for part in parts)
    return Strata(x_a, m_a, x_b, m_b)


def test_arrays_and_files_give_the_counts_of_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    strata = expected(PEOPLE, ["job", "y"])
    asked = ("--prediction", "d", "--group", "sex", "--within", "job,y", "--metric", "selection_rate")
    python = fa.permutation_test(
        prediction=PEOPLE["d"], group=PEOPLE["sex"], within=PEOPLE[["job", "y"]], metric="selection_rate"
    )
    (one,) = python.facts["results"]
    (two,) = json_of("permutation", "--predictions", str(tmp_path / "people.csv"), *asked)["results"]
    assert one == {**two, "basis": one["basis"]}
    assert one["p_value"] == pytest.approx(stratified_p(strata).p.two_sided)
    assert one["difference"] == pytest.approx(Common(strata, "difference").estimate)
    assert list(python.to_frame("strata")["stratum"].sort_values())[:2] == ["clerk, 0", "clerk, 1"]


def test_thresholds_cuts_crossings_and_one_group_against_the_rest() -> None:
    found = fa.permutation_test(
        PEOPLE["y"],
        score=PEOPLE["d"] / 2,
        threshold=0.5,
        group=PEOPLE[["sex", "job"]],
        within=(PEOPLE["age"] >= 40).rename("forty"),
        metric=["tpr", "fpr"],
        cross=True,
    )
    frame = found.to_frame()
    assert len(frame) == 12
    assert set(found.to_frame("strata")["stratum"]) == {"True", "False"}
    assert (frame["difference"] - (frame["estimate_a"] - frame["estimate_b"])).abs().max() < 1e-12


def test_the_sentence_quotes_both_differences_and_names_strata() -> None:
    table = pd.concat([PEOPLE, PEOPLE.iloc[:5].assign(sex="f", job="army")])
    found = fa.permutation_test(prediction=table["d"], group=table["sex"], within=table["job"], metric="selection_rate")
    (one,) = found.facts["results"]
    within, (low, high) = one["within"], one["interval"]
    sentence = within["sentence"]
    for number in (-one["difference"], -low, -high, -within["overall"]["difference"]):
        assert f"{100 * number:.1f}" in sentence
    assert sentence.startswith("Within the same job, the selection rate of f is")
    assert sentence in found.verdict.sentence
    assert sentence in str(found.brief)
    assert within["alone"] == ["army"]
    assert "army" in reduce(str.__add__, (caveat.text for caveat in found.caveats))
    assert len(found.facts["strata"]) == 4


def test_p_values_of_strata_are_corrected_over_strata() -> None:
    found = fa.permutation_test(
        prediction=PEOPLE["d"], group=PEOPLE["sex"], within=PEOPLE["job"], metric="selection_rate"
    )
    frame = found.to_frame("strata")
    assert frame["adjusted_p_value"].min() == pytest.approx(3 * frame["p_value"].min())


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"metric": "auc", "score": PEOPLE["d"]}, "metric"),
        ({"weight": PEOPLE["weight"]}, "weight"),
        ({"cluster": PLACE}, "cluster"),
        ({"correct": "max-t"}, "correct"),
        ({"method": "studentized"}, "method"),
        ({"within": PLACE}, "within"),
        ({"within": PEOPLE["job"].where(PLACE != 7)}, "within"),
    ],
)
def test_what_strata_cannot_have_is_refused(options: dict[str, object], option: str) -> None:
    usual = {"prediction": PEOPLE["d"], "group": PEOPLE["sex"], "within": PEOPLE["job"], "metric": "tpr"}
    with pytest.raises(InvalidInput) as error:
        fa.permutation_test(PEOPLE["y"], **{**usual, **options})  # type: ignore[arg-type]
    assert error.value.option == option


def test_an_unknown_column_of_strata_is_named(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    asked = ["permutation", "--predictions", str(tmp_path / "people.csv"), "--prediction", "d", "--group", "sex"]
    arguments = parser().parse_args([*asked, "--within", "jobs", "--metric", "selection_rate"])
    with invalid(option="within", column="jobs"):
        arguments.command.run(values_of(arguments))


def test_strata_that_cancel_leave_the_question_open() -> None:
    """Group a is hired less often in one job and more often in the other: the average hides both."""
    counted = [("x", "a", 90), ("x", "b", 180), ("y", "a", 180), ("y", "b", 90)]
    rows = pd.concat(
        [pd.DataFrame({"job": job, "sex": sex, "hired": [1] * k + [0] * (300 - k)}) for job, sex, k in counted]
    )
    found = fa.permutation_test(prediction="hired", group="sex", within="job", metric="selection_rate", data=rows)
    (one,) = found.facts["results"]
    assert one["difference"] == pytest.approx(0, abs=1e-9)
    assert len(one["within"]["different"]) == 2
    assert found.outcome == "inconclusive"
    equal = rows.assign(hired=[1, 0] * (len(rows) // 2))
    same = fa.permutation_test(prediction="hired", group="sex", within="job", metric="selection_rate", data=equal)
    assert same.outcome == "not rejected"
