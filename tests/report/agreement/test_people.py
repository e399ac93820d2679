"""The same people: the figure draws the numbers of the audit, and each claim finds its rows and can fail."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.same_people import Named, facts
from pipeline.io import load_claims
from pipeline.jobs import Run
from pipeline.report import claims
from pipeline.report.agreement import people
from pipeline.report.agreement.people import ACROSS, AUDIT, GIVEN, RAW, Pair
from pipeline.report.inputs import Inputs, NotRun, identified
from pipeline.report.stamp import Picture
from tests.report import studies

BLOCK = "people_confirmation"
CLAIMS = [one for one in load_claims("data/published/claims/agreement.yaml") if one["where"].get("block") == BLOCK]
PEOPLE, PARTITIONS = 20_000, 5
Rows = list[dict[str, object]]


def of_data(dataset: str, shared: float) -> Rows:
    """The numbers of simulated people. An audit tends to name the same people again, and some of another audit's."""
    rng = np.random.default_rng(["adult", "compas"].index(dataset))
    common, noise = rng.normal(size=PEOPLE), 0.3

    def mark(share: float, part: float) -> np.ndarray:
        own = part * common + np.sqrt(1 - part**2) * rng.normal(size=PEOPLE)
        drawn = own + noise * rng.normal(size=(PARTITIONS, PEOPLE))
        return drawn > np.quantile(drawn, 1 - share)

    names = {"fliptest sex": 0.3, "fliptest race": 0.3, "loss_ratio": 0.1, "robustness": 0.1}
    marks = {name: mark(share, shared) for name, share in names.items()}
    fold = np.tile(np.arange(PEOPLE) % 5, (PARTITIONS, 1))
    # On Adult, the score follows the common inclination and explains most of the agreement.
    noisy = common + 0.4 * rng.normal(size=PEOPLE)
    score = np.argsort(np.argsort(noisy)) * 10 // PEOPLE if dataset == "adult" else np.zeros(PEOPLE, int)
    # Errors happen to people whom the loss ratio names, and rarely to others.
    wrong = rng.random((PARTITIONS, PEOPLE)) < np.where(marks["loss_ratio"], 0.5, 0.2)
    marks["error"] = wrong & ~marks["fliptest sex"] & ~marks["fliptest race"] | wrong & marks["loss_ratio"] & (
        shared > 0
    )
    named = Named(marks, fold, np.tile(score, (PARTITIONS, 1)), np.arange(PEOPLE) % 4, np.ones(PEOPLE, bool))
    place = {"study": "agreement", "block": BLOCK, "dataset": dataset, "origin": "official", "method": "baseline"}
    where = {**place, "audit": AUDIT, "scale": "paper"}
    return [
        {**where, "repetition": partition, **columns, **numbers}
        for columns, of_each in facts(named)
        for partition, numbers in enumerate(of_each)
    ]


def inputs_of(shared: float) -> Inputs:
    rows = [row for dataset in ("adult", "compas") for row in of_data(dataset, shared)]
    config = Run("paper", studies=["agreement"], tracker="disabled").artefacts("agreement")
    return Inputs("agreement", "paper", identified(pd.DataFrame(rows)), config)


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return inputs_of(0.6)


def test_the_figure_has_both_odds_ratios_of_a_pair_and_each_audit_with_itself(inputs: Inputs) -> None:
    made = studies.build("figure_people", inputs)
    assert isinstance(made, Picture)
    rows = people.compared(inputs)
    shown = people.pairs(rows)
    assert len(shown) == 10 + 5
    adult = rows[rows["dataset"] == "adult"]
    both = dict(people.odds(adult, Pair("fliptest sex", "loss_ratio")))
    assert [*both] == [RAW, GIVEN]
    own = adult[(adult["measure"] == "fliptest sex") & (adult["other"] == "loss_ratio")]
    raw = own[own["statistic"] == RAW]
    assert both[RAW].value == pytest.approx(np.exp(raw["value"].mean()))
    assert np.log(both[RAW].high / both[RAW].low) == pytest.approx(2 * 1.959964 * raw["error"].iloc[0])
    assert [*dict(people.odds(adult, Pair("loss_ratio", "error")))] == [RAW]
    assert [*dict(people.odds(adult, Pair("error", "error")))] == [ACROSS]
    left, right = made.figure.axes
    assert left.get_yticklabels()[0].get_text() == "FlipTest by gender, FlipTest by race"
    assert (left.get_title(), right.get_title()) == ("Adult", "COMPAS")


def test_each_claim_can_hold_and_fail(inputs: Inputs) -> None:
    """Without a common inclination, the audits name other people, and each still names its own again."""
    outcomes = [one.outcome for one in claims.decide(CLAIMS, inputs.rows)]
    assert outcomes[:5] == ["confirmed"] * 5
    apart = [one.outcome for one in claims.decide(CLAIMS, inputs_of(0.0).rows)]
    assert apart[0] == "not confirmed"
    assert apart[3:5] == ["confirmed", "confirmed"]
    assert "confirmed" not in (apart[1], apart[2])


def test_an_odds_ratio_that_a_partition_lacks_is_not_drawn_and_decides_nothing(inputs: Inputs) -> None:
    rows = inputs.rows
    gone = (rows["statistic"] == RAW) & (rows["other"] == "loss_ratio")
    one = rows.assign(value=rows["value"].mask(gone & (rows["repetition"] == 3)), error=rows["error"].mask(gone))
    assert [*dict(people.odds(one[one["dataset"] == "adult"], Pair("fliptest sex", "loss_ratio")))] == [GIVEN]
    assert claims.decide(CLAIMS[:1], one)[0].outcome == "undecided"


def test_a_run_without_the_audit_says_so(inputs: Inputs) -> None:
    with pytest.raises(NotRun):
        people.compared(replace(inputs, rows=inputs.rows[inputs.rows["audit"] != AUDIT]))
