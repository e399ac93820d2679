"""A claim is confirmed by intervals inside its region, refuted by one outside, and undecided in between."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from pipeline.report.claims import CONFIRMED, NOT_CONFIRMED, NOT_TESTABLE, UNDECIDED, check, decide
from pipeline.report.settings import Reduction

FOLDER = Path(__file__).resolve().parents[2] / "data" / "published" / "claims"
RNG = np.random.default_rng(3)
LOW, HIGH = RNG.normal(1.0, 0.1, 10), RNG.normal(2.0, 0.1, 10)


def rows(values: Any, origin: str = "official", **place: Any) -> pd.DataFrame:
    common = {"block": "b", "dataset": "d", "statistic": "s", "origin": origin}
    return pd.DataFrame({**common, "repetition": range(len(values)), "value": values, **place})


MEASURED = pd.concat(
    [
        rows(LOW, method="low"),
        rows(HIGH, method="high"),
        rows(np.zeros(10), method="never"),
        rows([0.051], method="level", simulations=10_000),
        rows([0.30], method="invalid", simulations=10_000),
        rows([1.0], method="single"),
        rows([1.0, 2.0], method="over points", error=[0.5, 0.1]),
        rows([0.5], method="other points", error=[0.4]),
        rows(LOW, "twin", method="twin"),
        rows(np.tile(np.arange(-5.0, 6.0) ** 2, 2), method="grid", theta=np.tile(np.arange(-5.0, 6.0), 2)),
        *[rows(LOW, method="several", sample=sample) for sample in (0, 1)],
    ],
    ignore_index=True,
)


def claim(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = [{"label": "q", **part} for part in parts]
    return {"says": "A finding.", "source": "Section 1", "artefact": "table_1", "parts": named, **more}


def of(method: str) -> dict[str, Any]:
    return {"of": {"method": method}}


CASES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a mean inside": ([{**of("low"), "below": 1.5}], CONFIRMED),
    "a mean outside": ([{**of("high"), "below": 1.5}], NOT_CONFIRMED),
    "a mean at the end of the region": ([{**of("low"), "below": float(LOW.mean())}], UNDECIDED),
    "one repetition has no interval": ([{**of("single"), "below": 5}], UNDECIDED),
    # The mean, 1.5, with the normal interval of the mean error .3; and its difference to .5, whose error is .5.
    "an error over points, inside": ([{**of("over points"), "above": 0.9}], CONFIRMED),
    "an error over points, open": ([{**of("over points"), "above": 0.95}], UNDECIDED),
    "a difference of two over points": (
        [{"of": {"method": "over points"}, "minus": {"method": "other points"}, "within": [0.01, 1.99]}],
        CONFIRMED,
    ),
    "all parts hold": ([{**of("low"), "below": 1.5}, {**of("high"), "above": 1.5}], CONFIRMED),
    "one part is refuted": ([{**of("low"), "below": 1.5}, {**of("high"), "below": 1.5}], NOT_CONFIRMED),
    "one part is open": ([{**of("low"), "below": 1.5}, {**of("single"), "below": 5}], UNDECIDED),
    "less than": ([{**of("low"), "less_than": {"method": "high"}}], CONFIRMED),
    "more than": ([{**of("low"), "more_than": {"method": "high"}}], NOT_CONFIRMED),
    "less than itself": ([{**of("low"), "less_than": {"method": "low"}}], NOT_CONFIRMED),
    "a difference within a margin": ([{**of("low"), "minus": {"method": "high"}, "within": [-2, 0]}], CONFIRMED),
    "nothing is not below nothing": ([{**of("never"), "below": 0}], NOT_CONFIRMED),
    "nothing is at most nothing": ([{**of("never"), "at_most": 0}], CONFIRMED),
    "a counted share": ([{**of("high"), "counted": {"above": 1.5}, "above": 0.5}], CONFIRMED),
    "ten of ten are not all": ([{**of("high"), "counted": {"above": 1.5}, "above": 0.9}], UNDECIDED),
    "a share of simulations": ([{**of("level"), "within": [0.025, 0.075]}], CONFIRMED),
    "another share": ([{**of("invalid"), "within": [0.025, 0.075]}], NOT_CONFIRMED),
    "two shares": ([{**of("invalid"), "more_than": {"method": "level"}}], CONFIRMED),
    "a rank correlation": ([{**of("grid"), "rank_correlation_with": "theta", "above": 0.99}], CONFIRMED),
    "the mean of a repetition's rows": ([{**of("several"), "averaged": True, "below": 1.5}], CONFIRMED),
    "a twin": ([{**of("twin"), "below": 1.5}], NOT_TESTABLE),
    "not in the run": ([{**of("absent"), "below": 1.5}], NOT_TESTABLE),
    "no such column": ([{"of": {"angle": 5}, "below": 1.5}], NOT_TESTABLE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_rule_decides(name: str) -> None:
    parts, outcome = CASES[name]
    (decision,) = decide([claim(*parts)], MEASURED)
    assert decision.outcome == outcome
    assert bool(decision.why) == (outcome == NOT_TESTABLE)


def test_a_part_tells_its_number_and_its_interval() -> None:
    (decision,) = decide([claim({"label": "q of low", **of("low"), "above": 0})], MEASURED)
    (found,) = decision.parts
    half = 2.262157 * LOW.std(ddof=1) / np.sqrt(10)
    assert (found.label, found.n) == ("q of low", 10)
    assert (found.value, found.high - found.low) == pytest.approx((LOW.mean(), 2 * half))


def test_a_claim_means_something_only_where_its_conditions_hold() -> None:
    held, broken = (
        {"label": "share of trials that count", **of("high"), "counted": {"above": least}, "at_least": 0.5}
        for least in (1.5, 2.5)
    )
    shown = claim({**of("low"), "below": 1.5}, provided=[held])
    void = claim({**of("low"), "below": 1.5}, provided=[held, broken])
    first, second = decide([shown, void], MEASURED)
    assert (first.outcome, len(first.parts)) == (CONFIRMED, 1)
    assert (second.outcome, second.why) == (NOT_TESTABLE, "share of trials that count: 0.000")


def test_a_part_is_refuted_at_a_level_adjusted_for_the_parts() -> None:
    one = LOW - LOW.mean() + 2.8 * LOW.std(ddof=1) / np.sqrt(10)
    measured = rows(one, method="barely")
    part = {**of("barely"), "below": 0}
    (alone,) = decide([claim(part)], measured)
    (beside,) = decide([claim(*[part] * 10)], measured)
    assert (alone.outcome, beside.outcome) == (NOT_CONFIRMED, UNDECIDED)


def test_a_level_test_confirms_a_false_part_rarely() -> None:
    draws = np.random.default_rng(0).normal(0.0, 1.0, (200, 10))
    confirmed = [
        decide([claim({**of("null"), "above": 0})], rows(values, method="null"))[0].outcome == CONFIRMED
        for values in draws
    ]
    assert np.mean(confirmed) < 0.06


def test_other_settings_than_published_are_told() -> None:
    reductions = [Reduction("b", "d", "low", "audit.steps", 5, 500)]
    low, high = decide([claim({**of(name), "above": 0}) for name in ("low", "high")], MEASURED, reductions)
    assert (low.reduced, high.reduced) == (True, False)


@pytest.mark.parametrize(
    ("spoilt", "match"),
    [
        (claim({**of("low")}), "give one of less_than"),
        (claim({**of("low"), "above": 1, "below": 2}), "give one of"),
        (claim({**of("low"), "abov": 1}), "unknown abov"),
        (claim({"above": 1}), "lacks of"),
        (claim({**of("low"), "above": 1}, verdict="yes"), "unknown verdict"),
        ({"says": "x", "parts": []}, "lacks artefact, source"),
    ],
)
def test_a_claim_that_cannot_be_read_says_why(spoilt: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        check([spoilt])


def test_several_values_for_a_repetition_are_an_error_that_names_the_column() -> None:
    with pytest.raises(ValueError, match=re.escape("several values for one repetition: give sample too")):
        decide([claim({**of("several"), "below": 1.5})], MEASURED)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_list_of_claims_can_be_read(path: Path) -> None:
    claims = yaml.safe_load(path.read_text(encoding="utf-8"))
    check(claims)
    assert 5 <= len(claims) <= 10
