"""The rules by which a published number agrees with ours."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom
from scipy.stats import f as fisher
from scipy.stats import t as student

from fairness_audits.results.estimate import Estimate
from pipeline.report.comparison import COLUMNS, check_published, compare
from pipeline.report.comparison_table import (
    as_table,
    printed,
    read_off,
    results,
    settings,
    tally,
    tally_in_words,
    verdicts,
)
from pipeline.report.inputs import Inputs
from pipeline.report.reduction import Reduction, departures
from pipeline.report.regression_check import OTHER, SAME, regression_check, summary
from pipeline.report.rules import RULES, Outcome, could_differ, means, one_run, predictive, shares, variances
from pipeline.report.stamp import Stamp
from tests.errors import invalid
from tests.report import studies

SENSR = "block=audit; dataset=adult; method=sensr; statistic=T_n; steps=500"


def entry(**changes: Any) -> dict[str, Any]:
    """A published mean of 1.021 with spread .008 over ten repetitions."""
    standard = dict.fromkeys(COLUMNS)
    values = {"artefact": "table_1", "row": "SenSR", "column": "T_n", "value": 1.021, "std": 0.008, "n": 10.0}
    words = {"source": "Table 1", "kind": "mean", "rounding": 0.0005, "setting": SENSR, "status": "reproduced"}
    return {**standard, **values, **words, "by": "table_1", **changes}


def measured(values: list[float], **changes: Any) -> pd.DataFrame:
    """Rows of SenSR's T_n, one for each repetition."""
    place = {"block": "audit", "dataset": "adult", "method": "sensr", "statistic": "T_n", "steps": 500.0}
    rows = pd.DataFrame({"repetition": range(len(values)), "value": values})
    return rows.assign(**{**place, "origin": "official", **changes})


SIZE = "block=hiring; dataset=hiring; method=given; transport=wgan; statistic=size"


def size(**changes: Any) -> dict[str, Any]:
    """A flipset of 1,215, of one map."""
    one = {"artefact": "text", "row": "Hiring", "column": "F+", "value": 1215.0, "kind": "run", "rounding": 0.5}
    return entry(**{**one, "std": None, "n": None, "setting": SIZE, **changes})


def sizes(values: list[float], **changes: Any) -> pd.DataFrame:
    """Rows of the flipset's size, one for each trial."""
    place = {"block": "hiring", "dataset": "hiring", "method": "given", "transport": "wgan", "statistic": "size"}
    return measured(values, **{**place, "origin": "simulated", **changes})


def verdict(published: dict[str, Any], ours: pd.DataFrame, reductions: tuple[Reduction, ...] = ()) -> dict[str, Any]:
    """The single line of a comparison."""
    (line,) = compare(pd.DataFrame([published]), ours, reductions).to_dict("records")
    return line


# Welch's test and one more repetition of ours, with intervals of 95 %.
welch, one_more = (partial(rule, rounding=0.0, level=0.95) for rule in (means, one_run))


def test_welch_by_hand() -> None:
    """t = 1 / sqrt(4/10 + 1/5); the degrees of freedom are (.4 + .2)^2 / (.4^2/9 + .2^2/4)."""
    statistic = 1 / math.sqrt(0.4 + 0.2)
    freedom = 0.6**2 / (0.4**2 / 9 + 0.2**2 / 4)
    found = welch(Estimate(2.0, 2.0, 10), Estimate(3.0, 1.0, 5))
    assert found.p == pytest.approx(2 * student.sf(statistic, freedom))


def test_one_run_by_hand() -> None:
    """Of 1, 2, 3 the mean is 2 and s is 1, so 4 is t = 2 / sqrt(1 + 1/3) away, with two degrees of freedom."""
    ours = Estimate.mean(np.array([1.0, 2.0, 3.0]))
    assert one_more(Estimate(4.0), ours).p == pytest.approx(2 * student.sf(2 / math.sqrt(4 / 3), 2))
    assert one_more(Estimate(4.5), ours, rounding=0.5).p == one_more(Estimate(4.0), ours).p


def test_variances_by_the_f_test() -> None:
    """6 of 11 against 2 of 21 is F = 3 with 10 and 20 degrees of freedom, and 1.5 with a rounding that reaches 4."""
    found = variances(Estimate(2.0, n=21), Estimate(6.0, n=11), 0.0, 0.95)
    assert found.p == pytest.approx(2 * fisher.sf(3, 10, 20))
    assert found.low == pytest.approx(6 / fisher.ppf(0.975, 10, 20) - 2)
    assert found.high == pytest.approx(6 / fisher.ppf(0.025, 10, 20) - 2)
    assert (found.low > 0) == (found.p < 0.05)
    assert variances(Estimate(2.0, n=21), Estimate(6.0, n=11), 2.0, 0.95).p == pytest.approx(2 * fisher.sf(1.5, 10, 20))


def test_newcombes_interval_as_published_and_the_predictive_law_by_hand() -> None:
    """56 of 70 against 48 of 80 (Newcombe 1998, table II, case (a), method 10): .2000 [.0524, .3339]."""
    found = shares(Estimate(48 / 80, n=80), Estimate(56 / 70, n=70), 0.0, 0.95)
    assert (found.difference, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert shares(Estimate(0.0, n=10), Estimate(0.6, n=10), 0.0, 0.95).low > 0, "0 of 10 against 6 of 10"
    # With none of 2 the rate is Beta(1, 3); all of 3 then have the chance B(4, 3) / B(1, 3) = 1 / 20.
    assert shares(Estimate(1.0, n=3), Estimate(0.0, n=2), 0.0, 0.95).p == pytest.approx(2 / 20)
    # With all of 4 it is Beta(5, 1), and all of 10 have the chance B(15, 1) / B(5, 1) = 1 / 3.
    assert shares(Estimate(1.0, n=10), Estimate(1.0, n=4), 0.0, 0.95).p == pytest.approx(2 / 3)


@pytest.mark.parametrize(("ours", "published"), [(10, 10), (20, 10), (100, 10), (10, 100), (75, 151)])
def test_the_predictive_check_keeps_its_level_and_has_the_power_that_it_states(ours: int, published: int) -> None:
    """Every pair of counts, weighted by its chance."""
    p = np.array([predictive(Estimate(j / ours, n=ours), published) for j in range(ours + 1)])
    for rate in (0.01, 0.05, 0.2, 0.5, 0.9):
        mine, theirs = binom.pmf(range(ours + 1), ours, rate), binom.pmf(range(published + 1), published, rate)
        assert mine @ (p <= 0.05) @ theirs <= 0.05
    found = RULES["proportion"].compare(Estimate(1.0, n=published), Estimate(1.0, n=ours), 0.0, 0.95)
    assert found.power == pytest.approx(((p[-1] <= 0.05) * binom.pmf(range(published + 1), published, 0.5)).sum())


def test_equal_means_agree_as_often_as_stated() -> None:
    """Within half a published standard deviation .7 at n = 10 and .8 at n = 100; the power of one pair is near."""
    rng = np.random.default_rng(0)
    for n, stated in ((10, 0.7), (100, 0.8)):
        pairs = [(rng.standard_normal(10), rng.standard_normal(n)) for _ in range(600)]
        found = [RULES["mean"].compare(Estimate.mean(one), Estimate.mean(other), 0.0, 0.95) for one, other in pairs]
        assert np.mean([one.equivalent for one in found]) == pytest.approx(stated, abs=0.04)
        assert np.mean([one.power for one in found]) == pytest.approx(stated, abs=0.05)


def test_a_shift_of_a_run_is_seen_with_the_power_that_is_stated() -> None:
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((500, 10))
    found = [
        RULES["run"].compare(Estimate(4.0 + z), Estimate.mean(one), 0.0, 0.95)
        for one, z in zip(draws, rng.standard_normal(500), strict=True)
    ]
    assert np.mean([one.p <= 0.05 for one in found]) == pytest.approx(found[0].power, abs=0.04)


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_a_detectable_difference_of_a_run_is_in_its_units_and_detected_with_power_four_fifths(n: int) -> None:
    """Two numbers with the same power in standard deviations have different detectable differences."""
    narrow, wide = (
        RULES["run"].compare(Estimate(0.0), Estimate(0.0, std, n), 0.0, 0.95).detectable for std in (1.0, 50.0)
    )
    assert wide == pytest.approx(50 * narrow)
    rng = np.random.default_rng(0)
    draws, further = rng.standard_normal((4000, n)), rng.standard_normal(4000) + narrow
    t = (further - draws.mean(axis=1)) / draws.std(axis=1, ddof=1) / math.sqrt(1 + 1 / n)
    assert np.mean(2 * student.sf(abs(t), n - 1) <= 0.05) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("ours", "published"), [(10, 10), (100, 10), (75, 151)])
def test_a_detectable_difference_of_a_share_is_detected_with_power_four_fifths(ours: int, published: int) -> None:
    found = RULES["proportion"].compare(Estimate(1.0, n=published), Estimate(1.0, n=ours), 0.0, 0.95)
    rejected = predictive(Estimate(1.0, n=ours), published) <= 0.05
    assert (rejected * binom.pmf(range(published + 1), published, 1 - found.detectable)).sum() == pytest.approx(0.8)
    never = RULES["proportion"].compare(Estimate(0.5, n=2), Estimate(0.5, n=2), 0.0, 0.95)
    assert math.isnan(never.detectable)


@pytest.mark.parametrize("rule", [welch, one_more])
@given(st.floats(-3, 3), st.floats(0.01, 5), st.floats(0.01, 5), st.integers(2, 20), st.floats(0, 1))
def test_the_interval_holds_zero_exactly_where_no_difference_is_shown(
    rule: Callable[..., Outcome], gap: float, a: float, b: float, n: int, rounding: float
) -> None:
    found = rule(Estimate(1.0, a, 10), Estimate(1.0 + gap, b, n), rounding=rounding)
    assume(abs(found.p - 0.05) > 1e-9)
    assert (found.low <= 0 <= found.high) == (found.p > 0.05)
    assert found.difference == pytest.approx(gap)


@pytest.mark.parametrize("rule", [welch, one_more])
def test_what_rounds_to_the_published_number_does_not_differ_from_it(rule: Callable[..., Outcome]) -> None:
    theirs = Estimate(0.817, 0.0, 10)
    assert rule(theirs, Estimate(0.8174, 0.0, 10), rounding=0.0005).p == 1.0
    assert rule(theirs, Estimate(0.8176, 0.0, 10), rounding=0.0005).p == 0.0


def lowered(key: str, here: Any, there: Any, method: str = "sensr") -> tuple[Reduction, ...]:
    """A value of the audits of Adult that is not the published one."""
    return (Reduction("audit", "adult", method, key, here, there),)


EQUAL, DIFFERENT, AGREES, NEITHER = "no difference shown", "differs", "agrees", "not comparable"
CONSISTENT = "consistent"
ALONE = entry(kind="proportion", value=1.0, std=None, n=6.0, rounding=None)
CONSTANT = entry(kind="constant", value=1.6449, std=None, n=None, rounding=None, setting="statistic=constant")
READING = {**CONSTANT, "kind": "reading", "rounding": 0.2}
OF_IT = measured([1.645], statistic="constant")
CHANNEL, OF_CHANNEL = "statistic=dataset.mean[0]", measured([1.6449], statistic="dataset.mean[0]")
TWO, REENCODED = measured([1.0, 1.1]), measured([1.02, 1.022, 1.021, 1.02], origin="re-encoded")
IMAGES = measured([1215.0], statistic="images", origin="re-encoded")
OF_IMAGES = pd.concat([IMAGES, IMAGES.assign(block="data")])
MAPS = pd.concat([sizes([1180.0, 1230.0]), sizes([1180.0, 1230.0], transport="exact")])
TRIALS = pd.concat([sizes([1180.0, 1230.0]), sizes([3.0], statistic="repetitions")])
SHORTER = (Reduction("hiring", "hiring", "given", "transport.steps", 5000, 20001, "wgan"),)
FEWER = (Reduction("hiring", "hiring", "given", "repetitions", 3, 10, "wgan"),)
EPOCHS = lowered("method.epochs", 3, 50)
VERDICTS: list[tuple[dict[str, Any], pd.DataFrame, tuple[Reduction, ...], str, str]] = [
    # Equal means show no difference, distant ones differ, and within 1.5 published deviations they agree.
    (entry(), measured([1.0, 1.02, 1.04, 1.024]), (), EQUAL, ""),
    (entry(), measured([1.20, 1.21, 1.22, 1.19]), (), DIFFERENT, ""),
    (entry(), measured([1.02, 1.021, 1.022]), (), AGREES, ""),
    (entry(), measured([1.01, 1.021, 1.032]), (), EQUAL, ""),
    # A difference of more than half a published deviation does not agree, however narrow its interval.
    (entry(std=0.02), measured([1.029, 1.030, 1.031] * 3), (), AGREES, ""),
    (entry(std=0.02), measured([1.032, 1.033, 1.034] * 3), (), EQUAL, ""),
    # One run has no margin, and is consistent with enough of ours.
    (size(), sizes([1180.0, 1230.0, 1260.0, 1200.0, 1190.0, 1240.0]), (), CONSISTENT, ""),
    (size(), sizes([1214.9, 1215.0, 1215.1]), (), EQUAL, ""),
    (size(), sizes([1180.0, 1230.0, 1260.0]), (), EQUAL, ""),
    (size(), sizes([900.0, 905.0, 910.0]), (), DIFFERENT, ""),
    (size(), sizes([1215.0]), (), NEITHER, "a single repetition has no spread"),
    # There is none without the same setting, official data, a spread and a number.
    (entry(), measured([1.0, 1.1], origin="twin"), (), NEITHER, "ours is from twin data"),
    (entry(), measured([1.0, 1.1], steps=200.0), (), NEITHER, "not measured in this run: steps 500 (there are 200)"),
    (entry(), measured([1.0]), (), NEITHER, "a single repetition has no spread"),
    *(
        (entry(kind=kind), measured([math.nan] * 2), (), NEITHER, "ours is not a finite number")
        for kind in ("mean", "proportion", "reading")
    ),
    (entry(), measured([1.02, 1.021, 1.022, math.inf]), (), NEITHER, "1 of 4 repetitions are not finite"),
    # Another setting forbids it where it applies: to that method, that map, and what is computed at a named step.
    (
        entry(), TWO, lowered("method.iterations", 2000, 20000), NEITHER,
        "our settings differ: SenSR on Adult: iterations 2,000 (published: 20,000)",
    ),
    (entry(), TWO, lowered("method.iterations", 2000, 20000, "baseline"), EQUAL, ""),
    (entry(), TWO, lowered("audit.record", (500,), (200, 500)), EQUAL, ""),
    (
        size(), MAPS, SHORTER, NEITHER,
        "our settings differ: WGAN on Hiring: steps 5,000 (published: 20,001)",
    ),
    (size(setting=SIZE.replace("wgan", "exact")), MAPS, SHORTER, EQUAL, ""),
    # Fewer trials make their number not comparable, and no other.
    (size(), TRIALS, FEWER, EQUAL, ""),
    (
        size(kind="constant", value=10, setting=SIZE.replace("=size", "=repetitions")), TRIALS, FEWER, NEITHER,
        "our settings differ: Given on Hiring: repetitions 3 (published: 10)",
    ),
    # What holds across networks is compared whatever ours are set to, of images encoded again, and not of a twin.
    (entry(), REENCODED, EPOCHS, NEITHER, "ours is from re-encoded data"),
    (entry(across="networks"), REENCODED, EPOCHS, AGREES, ""),
    (entry(across="networks"), REENCODED.assign(origin="twin"), (), NEITHER, "ours is from twin data"),
    # Images encoded again are as many as they were.
    (size(kind="constant", setting="block=data; statistic=images"), OF_IMAGES, (), AGREES, ""),
    (entry(setting="block=audit; statistic=images"), OF_IMAGES, (), NEITHER, "ours is from re-encoded data"),
    # A configured list is reduced in each of its numbers.
    ({**CONSTANT, "setting": CHANNEL}, OF_CHANNEL, lowered("dataset.std", (1,), (2,)), AGREES, ""),
    (
        {**CONSTANT, "setting": CHANNEL}, OF_CHANNEL, lowered("dataset.mean", (1,), (2,)), NEITHER,
        "our settings differ: SenSR on Adult: mean 1 (published: 2)",
    ),
    # A share of too few is not compared; ten of ten say more beside a hundred than beside ten.
    (ALONE, measured([0.0]), (), NEITHER, "too few repetitions (6 published, 1 ours) to detect a difference"),
    (ALONE, measured([0.0] * 2), (), DIFFERENT, ""),
    ({**ALONE, "n": 10.0}, measured([1.0] * 10), (), EQUAL, ""),
    ({**ALONE, "n": 10.0}, measured([1.0] * 100), (), CONSISTENT, ""),
    ({**ALONE, "n": 100.0}, measured([1.0] * 100), (), CONSISTENT, ""),
    # A share agrees within a quarter of the share of the rarer outcome, .125 of a half.
    ({**ALONE, "value": 0.5, "n": 1000.0}, measured([1.0, 0.0] * 500), (), AGREES, ""),
    ({**ALONE, "value": 0.5, "n": 1000.0}, measured([1.0, 0.0] * 20), (), CONSISTENT, ""),
    (ALONE, measured([0.0] * 10), (), DIFFERENT, ""),
    # Constants are equal after rounding, and readings near.
    (CONSTANT, OF_IT, (), DIFFERENT, ""),
    ({**CONSTANT, "rounding": 0.0005}, OF_IT, (), AGREES, ""),
    ({**READING, "value": 1.8}, OF_IT, (), AGREES, ""),
    ({**READING, "value": 1.9}, OF_IT, (), DIFFERENT, ""),
]  # fmt: skip


@pytest.mark.parametrize(("published", "ours", "reductions", "expected", "why"), VERDICTS)
def test_a_verdict_is_that_of_the_rule_or_says_why_there_is_none(
    published: dict[str, Any], ours: pd.DataFrame, reductions: tuple[Reduction, ...], expected: str, why: str
) -> None:
    line = verdict(published, ours, reductions)
    assert (line["verdict"], line["why"]) == (expected, why)
    assert line["rule"].endswith(", across networks") == ("across" in published)


def test_a_share_could_differ_where_one_of_its_values_would() -> None:
    for k, n, j, m in ((0, 6, 0, 1), (3, 6, 1, 2), (6, 6, 2, 2), (1, 1, 5, 10), (621, 755, 1, 2)):
        by_all = any(shares(Estimate(i / n, n=n), Estimate(j / m, n=m), 0, 0.95).p <= 0.05 for i in range(n + 1))
        assert could_differ(Estimate(k / n, n=n), Estimate(j / m, n=m), 0.95) == by_all


def test_several_tests_of_one_table_are_adjusted_together() -> None:
    """One p-value of about .02 differs alone, and shows nothing among forty others that do not differ."""
    far = entry(value=1.0, std=0.1)
    ours = measured(list(1.1 + 0.1 * np.linspace(-1, 1, 10)))
    assert verdict(far, ours)["verdict"] == "differs"
    near = entry(value=float(ours["value"].mean()), std=0.02)
    compared = compare(pd.DataFrame([far] + [near] * 40), ours, ())
    assert set(compared["verdict"]) == {"no difference shown"}
    assert list(verdicts(compared)["differs_before"]) == ["differs before adjustment"] + [""] * 40
    assert results(compared)["before"] == 1
    elsewhere = compare(pd.DataFrame([far] + [{**near, "artefact": "table_4"}] * 40), ours, ())
    assert elsewhere["verdict"].iloc[0] == "differs"


def test_a_setting_that_leaves_a_choice_is_refused() -> None:
    both = pd.concat([measured([1.0]).assign(metric_split="test"), measured([2.0]).assign(metric_split="train")])
    with invalid(column="metric_split"):
        verdict(entry(), both)


def test_a_figure_says_what_can_be_read_off_the_published_one() -> None:
    read = entry(artefact="figure_1", kind="reading", value=1.0, std=None, n=None, rounding=0.1)
    listed = [read, entry(artefact="figure_1", kind="constant", rounding=None), entry()]
    found = compare(pd.DataFrame(listed), measured([1.05]), ())
    assert read_off(found, "figure_1") == ("Values read off the published figure: SenSR, T_n: 1 (ours: 1.05, agrees).",)
    assert read_off(found, "figure_2") == ()


LIKELIER = entry(likely=SENSR.replace("500", "200"))
AFTER_200 = measured([1.02, 1.021, 1.022], steps=200.0)


def test_a_likelier_setting_gets_a_line_of_its_own_and_is_not_counted() -> None:
    compared = compare(pd.DataFrame([LIKELIER]), pd.concat([measured([1.04, 1.05, 1.06]), AFTER_200]), ())
    assert list(compared["reading"]) == ["stated setting", "likely setting"]
    assert list(compared["verdict"]) == ["differs", "agrees"]
    assert results(compared)["numbers"] == 1
    likely = as_table(compared, Stamp("paper", ("official",))).rows[1]
    assert likely.cells[2] == "T_n, likely setting"
    assert "Setting: block audit, dataset adult, method sensr, T_n, steps 200." in likely.cells


def test_a_setting_that_the_paper_does_not_state_has_no_verdict_but_the_likelier_one_has() -> None:
    published = pd.DataFrame([{**LIKELIER, "unstated": "the number of steps"}])
    ours = pd.concat([measured([1.04, 1.05, 1.06]), AFTER_200])
    assumed, likely = compare(published, ours, ()).to_dict("records")
    assert (assumed["reading"], assumed["verdict"]) == ("assumed setting", "not comparable")
    assert assumed["why"] == "the paper does not state the number of steps"
    assert math.isnan(assumed["p"])
    assert (likely["reading"], likely["verdict"]) == ("likely setting", "agrees")


def test_a_number_that_fits_but_was_made_otherwise_points_to_the_likelier_line() -> None:
    compared = compare(pd.DataFrame([LIKELIER]), pd.concat([measured([1.02, 1.03, 1.01]), AFTER_200]), ())
    table = as_table(compared, Stamp("paper", ("official",)))
    assert (
        table.cell("notes", "Table 1", "SenSR", "T_n")
        == "The next line has a setting that more likely produced the published number."
    )
    assert results(compared)["likelier"] == 1


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"std": None}, "std"),
        ({"n": None}, "n"),
        ({"n": 1}, "n"),
        ({"kind": "proportion", "n": None}, "n"),
        ({"kind": "run", "rounding": None}, "rounding"),
        ({"kind": "guess"}, "kind"),
        ({"status": "done"}, "status"),
    ],
)
def test_a_number_without_what_its_test_needs_or_of_unknown_words_is_refused(change: dict, column: str) -> None:
    """Without them Welch's p-value is NaN and a share's is 1: neither may read as a verdict."""
    with invalid(column=column, row=0):
        check_published(pd.DataFrame([entry(**change)]))
    check_published(pd.DataFrame([entry(std=None, n=None, value=None, status="published value missing")]))
    with invalid(column="note"):
        compare(pd.DataFrame([entry()]).drop(columns="note"), measured([1.0]), ())


def test_a_number_that_is_printed_twice_is_counted_once_by_its_gravest_verdict() -> None:
    """The same value and setting in two tables, adjusted with other numbers there; a third number apart."""
    far = entry(value=1.0, std=0.1)
    ours = measured(list(1.1 + 0.1 * np.linspace(-1, 1, 10)))
    near = entry(value=float(ours["value"].mean()), std=0.02)
    again = {**far, "artefact": "text", "setting": "; ".join(reversed(SENSR.split("; ")))}
    compared = compare(pd.DataFrame([far] + [near] * 40 + [again]), ours, ())
    assert [compared["verdict"].iloc[0], compared["verdict"].iloc[-1]] == ["no difference shown", "differs"]
    counted = tally(compared)
    assert (counted["lines"], counted["numbers"]) == (42, 2)
    assert (counted["verdicts"]["differs"], counted["verdicts"]["no difference shown"]) == (1, 1)
    assert tally_in_words(counted) == "2 numbers in 42 places. 2 compared: 1 shows no difference, 1 differs"


def test_settings_and_results_are_counted_apart() -> None:
    ours = pd.concat([measured([1.02, 1.021, 1.022]), OF_IT])
    compared = compare(pd.DataFrame([entry(), {**CONSTANT, "rounding": 0.0005}]), ours, ())
    assert [counted(compared)["numbers"] for counted in (results, settings)] == [1, 1]
    assert list(verdicts(compared)["of"]) == ["result", "setting"]


def test_what_was_not_run_or_is_lost_says_so() -> None:
    published = pd.DataFrame(
        [entry(status="not run: costs a year"), entry(status="published value missing", value=None)]
    )
    compared = compare(published, measured([1.0]), ())
    assert list(compared["verdict"]) == ["not run", "published value missing"]
    table = as_table(compared, Stamp("paper", ("official",)))
    assert table.cell("notes", "Table 1", "SenSR", "T_n") == "Costs a year."


def test_a_number_that_cannot_be_compared_shows_ours_and_its_reason() -> None:
    """A mean whose spread is unknown, and a definition without a number of ours."""
    unknown = entry(std=None, status="not compared: without its spread")
    defined = entry(row="Network", setting=None, status="not compared: part of the definition")
    compared = compare(pd.DataFrame([unknown, defined]), measured([1.0, 1.2]), ())
    assert list(compared["verdict"]) == ["not comparable"] * 2
    assert list(compared["why"]) == ["without its spread", "part of the definition"]
    assert compared["ours"].tolist() == pytest.approx([1.1, math.nan], nan_ok=True)
    assert compared[["p", "p_holm"]].isna().all(axis=None)


def test_a_consistent_number_shows_the_difference_that_would_have_been_detected() -> None:
    published = pd.DataFrame([size(value=1000.0), size(value=1300.0, row="far")])
    compared = compare(published, sizes([980.0 + 4 * k for k in range(11)]), ())
    assert list(compared["verdict"]) == ["consistent", "differs"]
    table = as_table(compared, Stamp("paper", ("official",)))
    cells = [table.cell("detectable", "Text", row, "F+") for row in ("Hiring", "far")]
    assert [getattr(cell, "text", None) for cell in cells] == [f"\u00b1{compared['detectable'][0]:.0f}", ""]


def test_a_mean_has_the_decimals_of_the_published_one_and_one_run_no_spread() -> None:
    line = verdict(entry(), measured([1.0123, 1.0323]))
    assert printed(line, "published") == "1.021 \u00b1 0.008 (10)"
    assert printed(line, "ours") == "1.022 \u00b1 0.014 (2)"
    share = verdict(entry(kind="proportion", value=0.9, std=None), measured([1.0, 1.0, 0.0, 1.0]))
    assert (printed(share, "published"), printed(share, "ours")) == ("9 of 10", "3 of 4")
    line = verdict(size(), sizes([1180.0, 1230.0, 1260.0]))
    assert (printed(line, "published"), printed(line, "ours")) == ("1,215", "1,223 \u00b1 40 (3)")
    small = verdict(size(value=2.1, rounding=0.005), sizes([2.01, 2.03]))
    assert (printed(small, "published"), printed(small, "ours")) == ("2.10", "2.02 \u00b1 0.01 (2)")


def test_a_place_without_a_model_is_left_out_of_the_words() -> None:
    fewer = [Reduction("law", "law", method, "dataset.n", 2, 3) for method in ("none", "logistic")]
    assert departures(fewer) == ["Logistic on Law school: n 2 (published: 3)"]
    assert departures(fewer[:1]) == ["n 2 (published: 3)"]


# A run held against the reference: equal numbers are equal, and other means are tested.


def test_a_run_is_equal_to_itself_and_fewer_repetitions_are_its_first(inputs: Inputs) -> None:
    lines = regression_check(inputs, inputs)
    assert set(lines["settings"]) == {SAME}
    assert (lines["equal"] == lines["numbers"]).all()
    assert lines["numbers"].sum() == inputs.rows["value"].notna().sum()
    (text,) = summary(lines)
    assert text == f"Same settings: {lines['numbers'].sum():,} of {lines['numbers'].sum():,} numbers are equal."
    fewer = replace(inputs, rows=inputs.rows[inputs.rows["repetition"] < 2])
    lines = regression_check(fewer, inputs)
    assert set(lines["settings"]) == {SAME}
    assert lines["equal"].sum() == len(fewer.rows[fewer.rows["value"].notna()])


def test_a_run_of_other_data_sets_than_the_reference_has_nothing_to_compare(inputs: Inputs) -> None:
    one, other = (
        replace(inputs, rows=inputs.rows[studies.chosen(inputs, dataset=name)]) for name in ("adult", "compas")
    )
    assert regression_check(one, other).empty
    assert set(regression_check(one, inputs)["dataset"]) == {"adult"}


def test_a_number_that_moved_is_counted_and_its_mean_is_tested(inputs: Inputs) -> None:
    rows = inputs.rows.reset_index(drop=True).copy()
    chosen = (rows["block"] == "audit") & (rows["statistic"] == "T_n") & (rows["method"] == "baseline")
    rows.loc[chosen, "value"] += 1e-12
    assert (regression_check(replace(inputs, rows=rows), inputs).eval("equal == numbers")).all()
    rows.loc[chosen, "value"] += 1e6
    lines = regression_check(replace(inputs, rows=rows), inputs)
    moved = lines[(lines["block"] == "audit") & (lines["method"] == "baseline")]
    assert (lines["numbers"] - lines["equal"]).sum() == chosen.sum()
    assert (moved["tested"] > 0).all()
    assert (moved["differ"] == moved["tested"]).all()
    (text,) = summary(lines)
    assert f"; {moved['differ'].sum()} of {moved['tested'].sum()} means over repetitions differ." in text


def test_unequal_numbers_are_compared_over_the_repetitions_that_both_have(inputs: Inputs) -> None:
    """The mean of the first repetitions differs from that of all: by chance of the splits, not by rounding."""
    every = inputs.rows.reset_index(drop=True).copy()
    chosen = (every["block"] == "audit") & (every["statistic"] == "T_n") & (every["method"] == "baseline")
    early = every["repetition"] < 2
    every.loc[chosen, "value"] = 1000.0 * ~early[chosen] + every.loc[chosen, "repetition"]
    more = [every, *(every[chosen & ~early].assign(repetition=n) for n in range(100, 140))]
    reference = replace(inputs, rows=pd.concat(more, ignore_index=True))
    fewer = every[early].assign(value=every["value"].where(~chosen, every["value"] + 1e-6))
    lines = regression_check(replace(inputs, rows=fewer), reference)
    moved = lines[(lines["block"] == "audit") & (lines["method"] == "baseline")]
    assert (moved["tested"] > 0).all()
    assert (moved["differ"] == 0).all()


def test_other_settings_and_other_data_are_not_expected_to_be_equal(inputs: Inputs) -> None:
    lines = regression_check(studies.configured(inputs, "audit", "alpha", 0.2, block="audit"), inputs)
    other = lines[lines["settings"] == OTHER]
    assert set(other["block"]) == {"audit"}
    assert (other["numbers"] == 0).all()
    assert (other["differ"] == 0).all()
    assert summary(lines)[1].startswith("Other settings, where differences are expected")
    rows = inputs.rows.assign(
        origin=inputs.rows["origin"].astype(object).mask(inputs.rows["dataset"] == "compas", "twin")
    )
    lines = regression_check(replace(inputs, rows=rows), inputs)
    assert set(lines.loc[lines["dataset"] == "compas", "settings"]) == {OTHER}
    assert set(lines.loc[lines["dataset"] != "compas", "settings"]) == {SAME}
    assert np.isnan(lines.loc[lines["dataset"] == "compas", "largest"]).all()
