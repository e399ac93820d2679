"""The rule for a number of one run, printed without a spread, and what a shorter run of one map leaves comparable."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pipeline.report.difference import of_one_run, one_more
from scipy.stats import t as student

from pipeline.report.comparison import COLUMNS, check_published, compare
from pipeline.report.comparison_table import printed
from pipeline.report.departures import departures
from pipeline.report.numbers import Estimate
from pipeline.report.settings import Reduction
from pipeline.report.stamp import Stamp

SIZE = "block=hiring; dataset=hiring; method=given; transport=wgan; statistic=size"


def entry(**changes: Any) -> dict[str, Any]:
    """A flipset of 1,215."""
    words = {"artefact": "text", "row": "Hiring", "column": "F+", "value": 1215.0, "kind": "run", "rounding": 0.5}
    words |= {"source": "Section 5.3", "setting": SIZE, "status": "reproduced"}
    return {**dict.fromkeys(COLUMNS), **words, **changes}


def measured(values: list[float], **changes: Any) -> pd.DataFrame:
    """Rows of the flipset's size, one for each trial."""
    place = {"block": "hiring", "dataset": "hiring", "method": "given", "transport": "wgan", "statistic": "size"}
    rows = pd.DataFrame({"repetition": range(len(values)), "value": values})
    return rows.assign(**{**place, "origin": "simulated", **changes})


def line_of(ours: pd.DataFrame, *reductions: Reduction, **changes: Any) -> dict[str, Any]:
    """The single line of a comparison."""
    (line,) = compare(pd.DataFrame([entry(**changes)]), ours, reductions).to_dict("records")
    return line


def test_one_run_by_hand() -> None:
    """Of 1, 2, 3 the mean is 2 and s is 1, so 4 is t = 2 / sqrt(1 + 1/3) away, with two degrees of freedom."""
    ours = Estimate.mean(np.array([1.0, 2.0, 3.0]))
    assert one_more(Estimate(4.0), ours) == pytest.approx(2 * student.sf(2 / math.sqrt(4 / 3), 2))
    assert one_more(Estimate(4.5), ours, rounding=0.5) == one_more(Estimate(4.0), ours)


def test_one_more_draw_is_rejected_at_the_level() -> None:
    """Of five draws of one distribution, the fifth differs from the four others at .05 in one case of twenty."""
    rng = np.random.default_rng(1)
    draws = rng.normal(700, 50, size=(4000, 5))
    rejected = [one_more(Estimate(x[0]), Estimate.mean(x[1:])) < 0.05 for x in draws]
    assert abs(np.mean(rejected) - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 4000)


@settings(deadline=None)
@given(st.floats(-50, 50), st.floats(0.1, 9), st.integers(2, 20), st.floats(0, 2))
def test_the_interval_holds_zero_where_no_difference_is_shown(gap: float, std: float, n: int, rounding: float) -> None:
    theirs, ours = Estimate(gap), Estimate(0.0, std, n)
    p, found = one_more(theirs, ours, rounding), of_one_run(theirs, ours, rounding, 0.95)
    assume(abs(p - 0.05) > 1e-9)
    assert (found.low <= 0 <= found.high) == (p >= 0.05)
    assert found.value == -gap


def test_without_a_spread_only_the_same_number_is_not_different() -> None:
    assert one_more(Estimate(0.0), Estimate(0.0, 0.0, 10)) == 1.0
    assert one_more(Estimate(4.0), Estimate(0.0, 0.0, 10), rounding=0.5) == 0.0
    with pytest.raises(ValueError, match="at least two repetitions, found 1"):
        one_more(Estimate(4.0), Estimate(0.0, math.nan, 1))


def test_verdicts_on_one_run() -> None:
    assert line_of(measured([1180.0, 1230.0, 1260.0]))["verdict"] == "no difference shown"
    assert line_of(measured([900.0, 905.0, 910.0]))["verdict"] == "differs"
    alone = line_of(measured([1215.0]))
    assert (alone["verdict"], alone["why"]) == ("not comparable", "one repetition has no spread")
    assert line_of(measured([1180.0, 1230.0], origin="twin"))["why"] == "made from twin data"


def test_one_run_is_printed_without_a_spread_and_ours_with_one() -> None:
    line = line_of(measured([1180.0, 1230.0, 1260.0]))
    assert (printed(line, "published"), printed(line, "ours")) == ("1,215", "1,223 \u00b1 40 (3)")
    small = line_of(measured([2.01, 2.03]), value=2.1, rounding=0.005)
    assert (printed(small, "published"), printed(small, "ours")) == ("2.10", "2.02 \u00b1 0.01 (2)")


def test_a_number_of_one_run_needs_its_rounding() -> None:
    with pytest.raises(ValueError, match="a run cannot be compared without rounding"):
        check_published(pd.DataFrame([entry(rounding=None)]))


def test_a_shorter_training_of_one_map_leaves_the_others_comparable() -> None:
    shorter = Reduction("hiring", "hiring", "given", "transport.steps", 5000, 20001, "wgan")
    ours = pd.concat([measured([1180.0, 1230.0]), measured([1180.0, 1230.0], transport="exact")])
    line = line_of(ours, shorter)
    assert line["verdict"] == "not comparable"
    assert line["why"] == "not as published: WGAN maps on the hiring data: training steps 5,000 (published: 20,001)"
    assert line_of(ours, shorter, setting=SIZE.replace("wgan", "exact"))["verdict"] == "no difference shown"


def test_fewer_trials_make_their_number_not_comparable_and_no_other() -> None:
    fewer = Reduction("hiring", "hiring", "given", "repetitions", 3, 10, "wgan")
    ours = pd.concat([measured([1180.0, 1230.0]), measured([3.0], statistic="repetitions")])
    assert line_of(ours, fewer)["verdict"] == "no difference shown"
    trials = line_of(ours, fewer, kind="constant", value=10, setting=SIZE.replace("=size", "=repetitions"))
    assert (trials["verdict"], trials["ours"]) == ("not comparable", 3)


def test_a_place_without_a_model_is_left_out_of_the_words() -> None:
    fewer = [Reduction("law", "law", method, "dataset.n", 2, 3) for method in ("none", "logistic")]
    assert departures(fewer) == ["Logistic on the law-school data: n 2 (published: 3)"]
    assert departures(fewer[:1]) == ["n 2 (published: 3)"]


def test_maps_without_a_model_have_trials_that_the_stamp_counts() -> None:
    rows = measured([1.0, 2.0, 3.0], method="none", scale="paper")
    assert Stamp.of(rows, "paper").repetitions == (3,)
    assert Stamp.of(rows.drop(columns="transport"), "paper").repetitions == ()
