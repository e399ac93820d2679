"""Claims: confirmed by intervals inside their regions, refuted by one outside, and undecided in between."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.io import load_claims
from pipeline.report.claims import (
    ABOUT,
    COMPARED,
    NO_VALUE,
    OF_MANY,
    OUTCOMES,
    WITHDRAWN,
    Region,
    check,
    decide,
    estimator_of,
    listed,
)
from tests.errors import invalid

CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_TESTABLE = OUTCOMES
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
        rows([0.1, 0.1, 0.1], method="equal"),
        rows([1.0, -1.0] * 5, method="signs"),
        *[rows([*LOW[:9], np.nan][::sign], method="gaps", sample=sign) for sign in (1, -1)],
        rows([1.0] * 5, method="late", groups=10),
        rows([0.9] * 5, method="early", groups=10),
        rows([1.0], method="single"),
        rows([0.01, 0.02, 0.9], method="small p"),
        rows([*LOW[:9], np.inf], method="infinite"),
        rows([*LOW[:9], np.nan], method="undefined"),
        rows(HIGH[:9], method="nine"),
        rows([1.0, 2.0], method="over points", error=[0.5, 0.1]),
        rows([0.5], method="other points", error=[0.4]),
        rows(LOW, "twin", method="twin"),
        *[rows(LOW, method="several", sample=sample) for sample in (0, 1)],
    ],
    ignore_index=True,
)


def claim(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    named = [{"label": "q", **part} for part in parts]
    words = {"says": "A finding.", "source": "Section 1", "artefact": "table_1", "about": "draws", "estimator": "mean"}
    return {**words, "parts": named, **more}


def of(method: str, estimator: str = "mean") -> dict[str, Any]:
    return {"of": {"method": method}, "estimator": estimator}


OF_GROUPS, WITH_ERROR = "mean of shares", "mean with error"
CASES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nine inside, one infinite": ([{**of("infinite"), "below": 1.5}], UNDECIDED),
    "nine inside, one undefined": ([{**of("undefined"), "below": 1.5}], UNDECIDED),
    "pairs of the nine repetitions that both have": ([{**of("infinite"), "less_than": {"method": "nine"}}], CONFIRMED),
    "three values that are equal but for rounding": ([{**of("equal"), "above": 0}], UNDECIDED),
    "magnitudes, averaged": ([{**of("signs"), "averaged": True, "magnitude": True, "above": 0.5}], CONFIRMED),
    "an undefined value among those averaged": ([{**of("gaps"), "averaged": True, "below": 1.5}], UNDECIDED),
    "shares of groups, late less early": ([{**of("late", OF_GROUPS), "more_than": {"method": "early"}}], CONFIRMED),
    "shares of groups, early less late": ([{**of("early", OF_GROUPS), "less_than": {"method": "late"}}], CONFIRMED),
    "one repetition has no interval": ([{**of("single"), "below": 5}], UNDECIDED),
    # The mean, 1.5, with the normal 90 % interval of the mean error .3; and its difference to .5, whose error is .5.
    "an error over points, inside": ([{**of("over points", WITH_ERROR), "above": 1.0}], CONFIRMED),
    "an error over points, open": ([{**of("over points", WITH_ERROR), "above": 1.01}], UNDECIDED),
    "a difference of two over points": (
        [{**of("over points", WITH_ERROR), "minus": {"method": "other points"}, "within": [0.17, 1.83]}],
        CONFIRMED,
    ),
    "all parts hold": ([{**of("low"), "below": 1.5}, {**of("high"), "above": 1.5}], CONFIRMED),
    "one part is refuted": ([{**of("low"), "below": 1.5}, {**of("high"), "below": 1.5}], NOT_CONFIRMED),
    "one part is open": ([{**of("low"), "below": 1.5}, {**of("single"), "below": 5}], UNDECIDED),
    "less than itself": ([{**of("low"), "less_than": {"method": "low"}}], NOT_CONFIRMED),
    "nothing is not below nothing": ([{**of("never"), "below": 0}], NOT_CONFIRMED),
    "nothing is at most nothing": ([{**of("never"), "at_most": 0}], CONFIRMED),
    "ten of ten are not all": ([{**of("high", "share"), "counted": {"above": 1.5}, "above": 0.9}], UNDECIDED),
    # Ten of ten less ten of ten leave .21 open, by Newcombe's 90 % interval.
    "nothing less nothing": ([{**of("never", "share"), "minus": {"method": "never"}, "within": [-0.21, 0.21]}],
                             UNDECIDED),
    # The same shares in pairs: no pair differs, and Tango's 90 % interval is [-.21, .21] too.
    "nothing less nothing, in pairs": ([{**of("never", "paired share"), "minus": {"method": "never"},
                                         "within": [-0.22, 0.22]}], CONFIRMED),
    "a ratio below one": ([{**of("low", "mean of log"), "less_than": {"method": "high"}}], CONFIRMED),
    "a ratio above one": ([{**of("high", "mean of log"), "less_than": {"method": "low"}}], NOT_CONFIRMED),
    "a number without a logarithm": ([{**of("signs", "mean of log"), "above": 0}], UNDECIDED),
    # p = 2 x .02 by the median; twice .1 leaves the claim open, because a large p-value is no evidence.
    "a small p-value": ([{**of("small p", "median p"), "at_most": 0.05}], CONFIRMED),
    "a large p-value": ([{**of("equal", "median p"), "at_most": 0.05}], UNDECIDED),
    "any of several": ([{**of("low"), "of": {"method": ["low", "none"]}, "below": 1.5}], CONFIRMED),
    "a twin": ([{**of("twin"), "below": 1.5}], NOT_TESTABLE),
    "not in the run": ([{**of("absent"), "below": 1.5}], NOT_TESTABLE),
    "one part holds, one was not run": ([{**of("low"), "below": 1.5}, {**of("absent"), "below": 1.5}], NOT_TESTABLE),
    "one is refuted, one a twin's": ([{**of("high"), "below": 1.5}, {**of("twin"), "below": 1.5}], NOT_CONFIRMED),
    "no such column": ([{"of": {"angle": 5}, "below": 1.5}], NOT_TESTABLE),
}  # fmt: skip


def test_a_run_without_new_repetitions_applies_the_rule_to_its_own() -> None:
    new = rows(HIGH, method="low").assign(block="new")
    stated = claim({**of("low"), "above": 1.5}, where={"block": "new"}, otherwise="b", about="new_splits")
    (decided,), (instead,) = decide([stated], pd.concat([MEASURED, new])), decide([stated], MEASURED)
    assert (decided.outcome, decided.about) == (CONFIRMED, ABOUT["new_splits"])
    assert (instead.outcome, instead.about) == (NOT_CONFIRMED, ABOUT["splits"])


@pytest.mark.parametrize("name", CASES)
def test_the_rule_decides(name: str) -> None:
    parts, outcome = CASES[name]
    (decision,) = decide([claim(*parts)], MEASURED)
    assert decision.outcome == outcome
    assert len(decision.parts) == len(parts) - sum("absent" in str(part) or "twin" in str(part) for part in parts) - (
        name == "no such column"
    )
    assert bool(decision.why) == any(lacking in str(parts) for lacking in ("absent", "twin", "angle"))


def test_a_part_tells_its_number_and_its_interval() -> None:
    (decision,) = decide([claim({"label": "q of low", **of("low"), "above": 0})], MEASURED)
    (found,) = decision.parts
    half = 1.833113 * LOW.std(ddof=1) / np.sqrt(10)
    assert (found.label, found.n) == ("q of low", 10)
    assert (found.value, found.high - found.low) == pytest.approx((LOW.mean(), 2 * half))


def test_what_only_a_changed_rule_shows_is_undecided_and_what_it_refutes_is_refuted() -> None:
    shown, refuted = (claim({**of(name), "below": 1.5}, changed="why", withdrawn=True) for name in ("low", "high"))
    first, second = decide([shown, refuted], MEASURED)
    assert (first.outcome, second.outcome) == (UNDECIDED, NOT_CONFIRMED)
    assert WITHDRAWN in listed([first])["numbers"][0]


def test_parts_without_any_rows_say_so_once() -> None:
    (decision,) = decide([claim(*({**of("absent"), "label": name, "below": 1} for name in "ab"))], MEASURED)
    assert (decision.outcome, decision.why) == (NOT_TESTABLE, f"{NO_VALUE} of any part")


def test_a_claim_means_something_only_where_its_conditions_hold() -> None:
    held, broken = (
        {"label": "share of trials that count", **of("high", "share"), "counted": {"above": least}, "at_least": 0.5}
        for least in (1.5, 2.5)
    )
    shown = claim({**of("low"), "below": 1.5}, provided=[held])
    void = claim({**of("low"), "below": 1.5}, provided=[held, broken])
    first, second = decide([shown, void], MEASURED)
    assert (first.outcome, len(first.parts)) == (CONFIRMED, 1)
    assert second.outcome == NOT_TESTABLE
    assert second.why.endswith("share of trials that count: 0.000")


# Each way to make a number of rows, with rows on which a claim must be confirmed, refuted and left open.
A, B = {"method": "a"}, {"method": "b"}
SHARE, ERROR, SQUARE = ({"of": A, "estimator": name} for name in ("share", WITH_ERROR, "mean square"))
BETWEEN = LOW - LOW.mean()
BITS = [1.0] * 19 + [0.0]
DATA = pd.DataFrame(
    {"block": "data", "dataset": "d", "statistic": ["train_rows", "test_rows"], "value": [80.0, 20.0], "repetition": 0}
)


def pair(one: Any, other: Any, **place: Any) -> pd.DataFrame:
    return pd.concat([rows(one, method="a", **place), rows(other, method="b", **place)])


def single(value: float, **place: Any) -> pd.DataFrame:
    return rows([value], method="a", **place)


KINDS: dict[str, tuple[dict[str, Any], pd.DataFrame, pd.DataFrame, pd.DataFrame]] = {
    "a mean": (
        {"of": A, "above": 0}, rows(LOW, method="a"), rows(-LOW, method="a"), rows(BETWEEN, method="a")),
    "equivalence": (
        {"of": A, "within": [-0.2, 0.2]}, rows(BETWEEN, method="a"),
        rows(LOW, method="a"), rows(5 * BETWEEN, method="a")),
    "a magnitude": (
        {"of": A, "magnitude": True, "at_least": 0.5},
        rows(-LOW, method="a"), rows(BETWEEN, method="a"), rows(LOW - 0.5, method="a")),
    "the mean of a repetition's rows": (
        {"of": A, "averaged": True, "below": 0}, pair(-LOW, -LOW, half=0).replace("b", "a"),
        pair(LOW, LOW).replace("b", "a"), pair(LOW, -LOW[::-1]).replace("b", "a")),
    "a paired difference": (
        {"of": A, "less_than": B}, pair(LOW, HIGH), pair(HIGH, LOW), pair(LOW, LOW[::-1])),
    "a difference within a margin": (
        {"of": A, "minus": B, "within": [-0.2, 0.2]},
        pair(LOW, LOW[::-1]), pair(HIGH, LOW), pair(LOW, 10 * BETWEEN + 1)),
    "a counted share": (
        {"of": A, "counted": {"above": 1.5}, "above": 0.5},
        rows(HIGH, method="a"), rows(LOW, method="a"), rows([*HIGH[:5], *LOW[:5]], method="a")),
    "two counted shares": (
        {**SHARE, "more_than": B}, pair(BITS, np.zeros(20)), pair(np.zeros(20), BITS), pair(BITS, np.ones(20))),
    "a share of simulations": (
        {**SHARE, "within": [0.025, 0.075]},
        single(0.05, simulations=4000), single(0.3, simulations=4000), single(0.075, simulations=4000)),
    "two shares of simulations": (
        {**SHARE, "more_than": B}, pair([0.3], [0.05], simulations=4000), pair([0.05], [0.3], simulations=4000),
        pair([0.05], [0.05], simulations=4000)),
    "shares of few groups": (
        {"of": A, "estimator": "mean of shares", "limits": [0, 1], "above": 0.5},
        rows(np.full(6, 0.9), method="a", groups=10.0), rows(np.full(6, 0.1), method="a", groups=10.0),
        rows(np.full(6, 0.5), method="a", groups=10.0)),
    "a mean square over its expectation": (
        {**SQUARE, "above": 1}, single(4.0, freedom=5), single(0.1, freedom=5), single(1.5, freedom=5)),
    "two shares of simulations within a margin": (
        {**SHARE, "minus": B, "within": [-0.025, 0.025]}, pair([0.05], [0.05], simulations=4000),
        pair([0.3], [0.05], simulations=4000), pair([0.3], [0.275], simulations=4000)),
    "an error over points": (
        {**ERROR, "above": 0}, single(1.0, error=0.1), single(-1.0, error=0.1), single(0.1, error=0.1)),
    "a difference of two over points": (
        {**ERROR, "less_than": B}, pair([1.0], [2.0], error=0.1), pair([2.0], [1.0], error=0.1),
        pair([1.0], [1.1], error=0.1)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_of_every_kind_can_be_confirmed_refuted_and_left_open(kind: str) -> None:
    part, *cases = KINDS[kind]
    outcomes = [decide([claim(part)], measured)[0].outcome for measured in cases]
    assert outcomes == [CONFIRMED, NOT_CONFIRMED, UNDECIDED]


def test_the_level_is_kept_at_the_end_of_a_one_sided_region_and_of_a_margin() -> None:
    rng = np.random.default_rng(0)
    for part in ({"of": A, "above": 0.0}, {"of": A, "within": [-10, 0]}):
        found = [decide([claim(part)], rows(rng.standard_normal(10), method="a"))[0].outcome for _ in range(600)]
        assert np.mean([one == CONFIRMED for one in found]) == pytest.approx(0.05, abs=0.025)


def test_a_claim_about_a_method_covers_its_value_although_splits_overlap() -> None:
    """The mean squared error on test rows of the mean of the train rows, 1 + 1 / 160, from ten splits of 200 rows."""
    rng = np.random.default_rng(0)
    covered = {"method": 0, "splits": 0}
    for _ in range(150):
        y = rng.standard_normal(200)
        splits = [rng.permutation(200) for _ in range(10)]
        values = [np.mean((y[split[160:]] - y[split[:160]].mean()) ** 2) for split in splits]
        measured = pd.concat([rows(values, method="a"), DATA.assign(value=[160.0, 40.0])])
        for about in covered:
            (decision,) = decide([claim({"of": A, "above": 0}, about=about)], measured)
            (part,) = decision.parts
            covered[about] += part.low <= 1 + 1 / 160 <= part.high
    assert covered["method"] / 150 == pytest.approx(0.9, abs=0.06)
    assert covered["splits"] / 150 < 0.75


def test_a_claim_with_our_settings_says_so_and_what_it_is_about() -> None:
    (decision,) = decide([claim({**of("low"), "below": 1.5}, settings="the sizes are lost")], MEASURED)
    assert (decision.settings, decision.about) == ("some settings are ours: the sizes are lost", ABOUT["draws"])
    with invalid(option="about"):
        check([claim({**of("low"), "below": 1.5}, about="weather")])


def test_a_part_is_refuted_at_a_level_adjusted_for_the_parts() -> None:
    one = LOW - LOW.mean() + 2.8 * LOW.std(ddof=1) / np.sqrt(10)
    measured = rows(one, method="barely")
    part = {**of("barely"), "below": 0}
    (alone,) = decide([claim(part)], measured)
    (beside,) = decide([claim(*[part] * 10)], measured)
    assert (alone.outcome, beside.outcome) == (NOT_CONFIRMED, UNDECIDED)


def test_an_undecided_part_says_what_keeps_it_open() -> None:
    """The mean of ten splits, 2 standard errors from 0."""
    ten = (LOW - LOW.mean()) / LOW.std(ddof=1)
    measured = pd.concat([rows(ten[:1] + 0.5, method="one"), rows(ten + 2 / np.sqrt(10), method="barely")])

    def said(part: dict[str, Any], parts: int = 1) -> str:
        (decision,) = decide([claim(*[part] * parts)], measured)
        assert decision.outcome == UNDECIDED
        return str(listed([decision])["numbers"].iloc[0]).split("; ")[0].partition("(")[2].rstrip(")")

    assert said({**of("one"), "above": 0}) == "undecided"
    assert said({**of("barely"), "below": 0}, parts=10) == f"undecided: {OF_MANY}"


@pytest.mark.parametrize(("repetitions", "outcome"), [(4, UNDECIDED), (5, CONFIRMED)])
def test_equal_values_of_few_repetitions_show_nothing(repetitions: int, outcome: str) -> None:
    (decision,) = decide([claim({**of("equal"), "below": 1.5})], rows(np.ones(repetitions), method="equal"))
    assert decision.outcome == outcome


def test_shares_of_few_groups_that_happen_to_be_alike_are_no_surer_than_their_groups() -> None:
    measured = rows(np.array([0.7, 0.75, 0.7]), method="kept")
    part = {**of("kept"), "limits": [0, 1], "below": 0.8}
    (alike,) = decide([claim(part)], measured)
    (few,) = decide([claim({**part, "estimator": "mean of shares"})], measured.assign(groups=10.0))
    assert (alike.outcome, few.outcome) == (CONFIRMED, UNDECIDED)
    half = 2.919986 * np.sqrt(few.parts[0].value * (1 - few.parts[0].value) / 10 / 3)
    assert few.parts[0].low == pytest.approx(few.parts[0].value - half)


@pytest.mark.parametrize(
    ("spoilt", "option"),
    [
        (claim({**of("low")}), None),
        (claim({**of("low"), "above": 0, "below": 1}), "below"),
        (claim({**of("low"), "abov": 1}), "abov"),
        (claim({**of("low", "the mean"), "above": 1}), "estimator"),
        (claim({"of": {}, "above": 1}, estimator=""), "estimator"),
        (claim({**of("low", "share"), "limits": [0, 1], "above": 1}), "limits"),
        ({"says": "q is low", "parts": []}, "source"),
    ],
)
def test_a_claim_that_cannot_be_read_says_why(spoilt: dict[str, Any], option: str | None) -> None:
    with invalid(option=option):
        check([spoilt])


def test_several_values_for_a_repetition_are_an_error_that_names_the_column() -> None:
    with invalid(column="sample"):
        decide([claim({**of("several"), "below": 1.5})], MEASURED)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_list_of_claims_can_be_read(path: Path) -> None:
    claims = load_claims(path)
    check(claims)
    assert len(claims) >= 5


# Every part of every listed claim, on made-up rows on which it must be confirmed, refuted and left open.
BASE, STEP, NOISE = 0.5, 0.02, np.linspace(-1, 1, 100)


def every_part() -> Iterator[Any]:
    """Each part as a claim of its own, without preconditions, and as if no claim were withdrawn."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for entry in load_claims(path):
            for number, part in enumerate(entry["parts"]):
                alone = {key: value for key, value in entry.items() if key not in ("provided", "withdrawn")}
                yield pytest.param({**alone, "parts": [part]}, id=f"{path.stem}: {entry['says'][:60]} {number}")


def targets(region: Region) -> tuple[float, float, float]:
    """A value inside, one outside, and a finite end of the region."""
    if np.isfinite([region.low, region.high]).all():
        return (region.low + region.high) / 2, region.low - STEP, region.low
    return (region.low + STEP, region.low - STEP, region.low) if np.isfinite(region.low) else (
        region.high - STEP, region.high + STEP, region.high)  # fmt: skip


def made_up(part: dict[str, Any], where: dict[str, Any], values: Any, base: Any = BASE) -> pd.DataFrame:
    """Rows of the part with these values and little error. Of a comparison the other side has the value ``base``."""
    sides = {"of": values} | {name: base + np.zeros(len(values)) for name in ("minus", *COMPARED) if name in part}
    columns = {"groups": 1e6, "error": np.std(values) / 10, "freedom": 10_000, "simulations": 10_000, "draws": 10_000}
    named = {"block": "b", "dataset": "d", "statistic": "s", **where}
    if not isinstance(named["block"], str):
        named["block"] = named["block"][0]
    found = [
        pd.DataFrame(
            {**named, **part[name], "origin": "official", "repetition": range(len(values)), "value": value, **columns}
        )
        for name, value in sides.items()
    ]
    data = [DATA.assign(dataset=name) for name in pd.concat(found)["dataset"].unique()]
    return pd.concat([*found, *(one.assign(origin="official") for one in data)], ignore_index=True)


def cases(part: dict[str, Any], name: str) -> tuple[list[Any], Any]:
    """Return values that confirm, refute and do not decide the part, and values of the other side of a comparison."""
    compared = next((side for other, side in COMPARED.items() if other in part), None)
    inside, outside, end = targets(Region.of({compared: 0.0} if compared else part))
    if name == "paired share":
        return [np.r_[np.ones(ones), np.zeros(100 - ones)] for ones in (0, 50, round(100 * abs(end)))], 0.0
    if name == "spread of log":
        drawn = np.random.default_rng(5).permutation(NOISE)
        return [np.exp(end * drawn * factor) for factor in (2.0, 0.5, 1.0)], np.exp(NOISE)
    if "counted" in part:
        within, beyond, _ = targets(Region.of(part["counted"]))
        counts = (0, 100, round(100 * end)) if inside < end else (100, 0, round(100 * end))
        return [np.r_[np.full(count, within), np.full(100 - count, beyond)] for count in counts], BASE
    base = BASE * (compared is not None or "minus" in part)
    small, large = (0.0 if inside == end else 1e-3), STEP / 2
    return [base + inside + small * NOISE, base + outside + small * NOISE, base + end + large * NOISE], BASE


@pytest.mark.parametrize("entry", [*every_part()])
def test_every_part_of_every_claim_can_be_confirmed_refuted_and_left_open(entry: dict[str, Any]) -> None:
    (part,) = entry["parts"]
    name = estimator_of(part, entry)
    if name == "median p":
        outcomes = [decide([entry], made_up(part, entry["where"], np.full(10, p)))[0].outcome for p in (0.025, 0.026)]
        assert outcomes == [CONFIRMED, UNDECIDED]
        return
    every, base = cases(part, name)
    outcomes = [decide([entry], made_up(part, entry.get("where", {}), values, base))[0].outcome for values in every]
    assert outcomes == [CONFIRMED, NOT_CONFIRMED, UNDECIDED]
