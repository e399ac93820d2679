"""Decide by a stated rule over tidy rows whether each claim of a paper holds.

A claim is a sentence with parts. A part consists of a quantity q, estimated over the repetitions, and a region R. The
part holds if q lies in R. Let [l, u] be the 90 % interval of q; its ends are one-sided 95 % bounds. The claim is

* *confirmed* if [l, u] lies in R for every part. Each part is then shown at level .05: a one-sided region by one bound,
  a region with two ends by two one-sided tests (TOST). The conjunction is shown at level .05 too, because an
  intersection-union test needs no adjustment;
* *not confirmed* if q lies outside R for some part at level .05 / parts (Bonferroni). The test uses a one-sided bound
  if R has one end and the two-sided interval if R has two;
* *not testable here* if no part refutes it and some part has no rows in the run, or has rows of a synthetic twin. A
  twin is fitted to published numbers and so is no evidence. The other parts are still printed;
* *undecided* otherwise. The part then says if its 90 % interval lies outside R and only the correction keeps it open.

``about`` names the population that the claim is about (:data:`ABOUT`), because the interval depends on it. Repetitions
are mostly overlapping splits of the same rows. For a claim about a ``method``, the mean over J splits has the corrected
variance of Nadeau and Bengio, (1 / J + test rows / train rows) s^2 (Machine Learning 52, 2003). A share of splits is
always about further splits of the same rows. ``settings`` names the settings that are ours because the paper does not
state them, our copy lacks them, or they are too expensive. The claim is then decided with our settings and says so.
``changed`` says how the rule was changed when its numbers were already known, and what the outcome was before.
``withdrawn`` (true) leaves undecided what holds only by such a rule. ``check`` (true) marks a statement that could
hardly be false: it is decided in the same way and counted apart from the findings.

``where`` (of the claim) and ``of`` (of the part) select rows; a list stands for any of its values. A run without the
blocks of ``where`` takes the block ``otherwise``, if the claim names one, and the claim is then about further splits of
the same rows. ``less_than``, ``more_than`` or ``minus`` is another selection. The quantity is then the difference, and
``less_than`` and ``more_than`` are also regions, below and above 0 (1 if the estimator makes ratios).
``estimator`` (of the claim, or of a part) names how the number and its interval follow from the rows, see
:mod:`pipeline.report.estimators`; ``limits`` and ``trials`` are its options. Before, ``magnitude`` takes absolute
values, ``averaged`` averages the rows of each repetition, and ``counted`` (a region) makes each repetition 1 in the
region and 0 outside; its estimator is the share, unless the part names another one. The combined p-value
of the repetitions has no interval. The part holds if it lies in the region, and is undecided otherwise.

A region is one of ``above`` and ``below`` (open), ``at_least`` and ``at_most`` (closed), or ``within`` (closed on both
sides). An undefined value lies in no region. A mean with an infinite or undefined value has no interval, so its part is
undecided. ``provided`` (parts) states the preconditions of the claim, for example that most maps reach their target. If
the estimate of a precondition is outside its region, the claim is not testable here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import interval, number, parameter
from pipeline.report import labels
from pipeline.report.estimators import ESTIMATORS, estimate
from pipeline.report.facts import DATA
from pipeline.report.selection import select

LEVEL = 0.05
CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_TESTABLE = "confirmed", "not confirmed", "undecided", "not testable here"
OUTCOMES = (CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_TESTABLE)
OF_MANY = "outside the region, but not after correction for the number of parts"
CHANGED = "we changed the rule when we knew the numbers"
WITHDRAWN = "only a rule that was changed when its numbers were known holds"
NO_VALUE = "this run has no value"

REGIONS = ("above", "below", "at_least", "at_most", "within")
COMPARED = {"less_than": "below", "more_than": "above"}
"""Comparisons with another selection, and the side of 0 on which the difference must lie."""
OTHERS = ("minus", *COMPARED)
CLAIM_KEYS = (
    "says", "source", "artefact", "about", "estimator", "settings", "changed", "withdrawn", "check", "where",
    "otherwise", "provided", "parts",
)  # fmt: skip
OPTIONS = ("limits", "trials")
"""Options of estimators."""
PART_KEYS = (
    "label", "of", "magnitude", "averaged", "counted", "estimator", "decimals",
    *OPTIONS, *OTHERS, *REGIONS,
)  # fmt: skip


ABOUT = {
    "method": "the intervals of means are for the method, corrected for overlapping splits; those of shares are for "
    "further splits of the same rows",
    "splits": "the intervals are for further splits of the same rows",
    "new_splits": "the intervals are for further splits of the same rows; these splits were run after the rule was "
    "fixed",
    "new_draws": "the intervals are for further independent samples, which were drawn after the rule was fixed",
    "draws": "the intervals are for further independent samples",
    "trainings": "the intervals are for further networks or training runs on the same images",
    "groups": "the intervals are for further groups of this kind",
    "people": "the intervals are for further people, clustered by person, and for further partitions and random seeds",
    "points": "the intervals are for further test points under these models",
    "models": "the intervals are for these models only, which are not a sample",
}
"""Populations that claims are about."""


@dataclass(frozen=True)
class Region:
    """An interval of the real line, open if ``strict``."""

    low: float = -math.inf
    high: float = math.inf
    strict: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Region:
        """Make a region from, for example, ``{"above": 0.5}``. Raises InvalidInput unless there is exactly one."""
        named = [name for name in REGIONS if name in given]
        if len(named) != 1:
            problem = f"give one of {', '.join(REGIONS)}, found {named or list(given)}"
            raise InvalidInput(problem, option=named[0] if named else None)
        (name,) = named
        if name == "within":
            low, high = map(float, given[name])
            return cls(low, high)
        end = float(given[name])
        return cls(**{"low" if name in ("above", "at_least") else "high": end}, strict=name in ("above", "below"))

    def __str__(self) -> str:
        low, high = parameter(self.low), parameter(self.high)
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{low} to {high}"
        if math.isfinite(self.low):
            return f"{'above' if self.strict else 'at least'} {low}"
        return f"{'below' if self.strict else 'at most'} {high}"

    def holds(self, low: float, high: float) -> bool:
        """Return whether [low, high] lies inside the region."""
        if self.strict:
            return self.low < low and high < self.high
        return self.low <= low and high <= self.high

    def excludes(self, low: float, high: float) -> bool:
        """Return whether [low, high] lies outside the region."""
        if self.strict:
            return high <= self.low or low >= self.high
        return high < self.low or low > self.high


@dataclass(frozen=True)
class Found:
    """A measured part: q with its 90 % interval, and whether the part holds (None: undecided, and perhaps ``why``)."""

    label: str
    value: float
    low: float
    high: float
    n: int
    holds: bool | None
    decimals: int = 3
    why: str = ""
    claimed: str = ""
    """The region that the claim states, in words."""


@dataclass(frozen=True)
class Decision:
    """The outcome of a claim with its numbers. ``why`` says why a part could not be tested."""

    says: str
    source: str
    artefact: str
    outcome: str
    about: str = ""
    settings: str = ""
    changed: str = ""
    check: bool = False
    parts: tuple[Found, ...] = ()
    why: str = ""


def lines(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Return each decision as the page prints it.

    ``numbers`` has a text for each part. ``deciding`` is the text of the first part that prevents confirmation, or of
    the first part if all hold. :func:`beside_reference` fills in ``reference`` and ``standing``.
    """
    told = []
    for decision in decisions:
        # Parts that do not hold come first, then undecided parts.
        first = min(decision.parts, key=lambda part: (False, None, True).index(part.holds), default=None)
        deciding = decision.why if first is None or decision.outcome == NOT_TESTABLE else _claimed(first)
        line = {key: value for key, value in vars(decision).items() if key != "parts"}
        told.append(
            {**line, "numbers": [*map(_claimed, decision.parts)], "deciding": deciding, "reference": "", "standing": ""}
        )
    return told


def standing(run: str, reference: str) -> str:
    """Compare the outcome of a run with the outcome of the reference."""
    if run == reference:
        return "consistent"
    # A run may decide a claim that is undecided in the reference.
    decided = "contradicts it" if reference in (CONFIRMED, NOT_CONFIRMED) else run
    return {NOT_TESTABLE: "not tested here", UNDECIDED: "too small to tell"}.get(run, decided)


def beside_reference(told: Sequence[Mapping[str, Any]], reference: pd.DataFrame) -> list[dict[str, Any]]:
    """Add the outcome of the ``reference``, and whether the run agrees with it, to claims that the reference has."""
    known = dict(zip(reference["claim"], reference["outcome"], strict=True))
    return [
        {**line, "reference": outcome, "standing": standing(line["outcome"], outcome)}
        if (outcome := known.get(line["says"]))
        else dict(line)
        for line in told
    ]


def listed(decisions: Sequence[Decision]) -> pd.DataFrame:
    """Return the outcomes with their numbers, one row per claim."""
    rows = [
        (
            d.says,
            "check" if d.check else "finding",
            d.outcome,
            d.about,
            d.settings,
            d.changed,
            "; ".join((*map(_text, d.parts), *filter(None, [d.why]))),
        )
        for d in decisions
    ]
    return pd.DataFrame(rows, columns=["claim", "of", "outcome", "about", "settings", "changed", "numbers"])


def _claimed(part: Found) -> str:
    """Return the number of a part, and the region that the claim states."""
    return f"{_text(part)}; claimed: {part.claimed}" if part.claimed else _text(part)


def _text(part: Found) -> str:
    undecided = f" (undecided{f': {part.why}' if part.why else ''})"
    held = {True: "", False: " (contradicted)", None: undecided}[part.holds]
    text = f"{part.label}: {number(part.value, part.decimals)}"
    if part.low < part.high and math.isfinite(part.high - part.low):
        text += f" {interval(Estimate(part.value, low=part.low, high=part.high), part.decimals)}"
    return f"{text}, n = {number(part.n, 0)}{held}"


def check(claims: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidInput if a claim or part has an unknown or missing key, or a part has not exactly one region."""
    for place, claim in enumerate(claims, start=1):
        _check_keys(claim, CLAIM_KEYS, ("says", "source", "artefact", "about", "parts"), f"claim {place}")
        if claim["about"] not in ABOUT:
            problem = f"claim {place}: about {claim['about']!r} is not one of {', '.join(ABOUT)}"
            raise InvalidInput(problem, option="about")
        for part in (*claim.get("provided", ()), *claim["parts"]):
            where = f"claim {place}, part {part.get('label')!r}"
            _check_keys(part, PART_KEYS, ("label", "of"), where)
            regions = [name for name in (*REGIONS, *COMPARED) if name in part]
            if len(regions) != 1:
                problem = f"{where}: give one of {', '.join((*COMPARED, *REGIONS))}, found {regions}"
                raise InvalidInput(problem, option=regions[-1] if regions else None)
            name = estimator_of(part, claim)
            if name not in ESTIMATORS:
                known = "; ".join(f"{each} ({one.target})" for each, one in ESTIMATORS.items())
                problem = f"{where}: estimator {name!r} is not one of {known}"
                raise InvalidInput(problem, option="estimator")
            if unknown := [key for key in OPTIONS if key in part and key not in ESTIMATORS[name].options]:
                problem = f"{where}: the estimator {name!r} has no {unknown[0]}"
                raise InvalidInput(problem, option=unknown[0])


def estimator_of(part: Mapping[str, Any], claim: Mapping[str, Any]) -> str:
    """Return the name of the estimator of a part; empty if neither the part nor its claim names one."""
    return str(part.get("estimator", "share" if "counted" in part else claim.get("estimator", "")))


def _check_keys(given: Mapping[str, Any], known: Sequence[str], needed: Sequence[str], where: str) -> None:
    check_keys(given, known, where)
    if missing := [key for key in needed if key not in given]:
        raise InvalidInput(f"{where} lacks {', '.join(missing)}", option=missing[0])


def decide(claims: Sequence[Mapping[str, Any]], measured: pd.DataFrame) -> list[Decision]:
    """Decide every claim from ``measured``, the rows of the audits and the study's derived rows."""
    check(claims)
    return [_decision(claim, measured) for claim in claims]


def _decision(claim: Mapping[str, Any], measured: pd.DataFrame) -> Decision:
    if "otherwise" in claim and _chosen(measured, {"block": claim["where"]["block"]}).empty:
        claim = {**claim, "about": "splits", "where": {**claim["where"], "block": claim["otherwise"]}}
    decision = Decision(
        claim["says"],
        claim["source"],
        claim["artefact"],
        NOT_TESTABLE,
        about=ABOUT[claim["about"]],
        settings=f"some settings are ours: {claim['settings']}" if "settings" in claim else "",
        changed=f"{CHANGED}: {claim['changed']}" if "changed" in claim else "",
        check=bool(claim.get("check", False)),
    )
    conditions, parts = (
        [_Quantity.of(part, claim, measured) for part in claim.get(name, ())] for name in ("provided", "parts")
    )
    for quantity in conditions:
        if why := quantity.lacks():
            return replace(decision, why=why)
        here = quantity.estimate(1 - 2 * LEVEL)
        if not quantity.region.holds(here.value, here.value):
            why = f"the precondition does not hold, {quantity.part['label']}: {number(here.value, quantity.decimals)}"
            return replace(decision, why=why)
    found, refuted, lacking = [], False, []
    for quantity in parts:
        if why := quantity.lacks():
            lacking.append(why)
            continue
        here = quantity.estimate(1 - 2 * LEVEL)
        holds = quantity.holds(len(parts))
        refuted = refuted or holds is False
        why = ""
        if holds and claim.get("withdrawn"):
            holds, why = None, WITHDRAWN
        elif holds is None and quantity.region.excludes(here.low, here.high):
            why = OF_MANY
        numbers = (here.value, here.low, here.high, here.n)
        found.append(Found(quantity.part["label"], *numbers, holds, quantity.decimals, why, str(quantity.region)))
    if refuted or not lacking:
        outcome = NOT_CONFIRMED if refuted else CONFIRMED if all(part.holds for part in found) else UNDECIDED
    else:
        outcome = NOT_TESTABLE
    if not found and all(why.endswith(NO_VALUE) for why in lacking):
        lacking = [f"{NO_VALUE} of any part"]
    return replace(decision, outcome=outcome, parts=tuple(found), why="; ".join(dict.fromkeys(lacking)))


@dataclass(frozen=True)
class _Quantity:
    """The quantity of a part: the rows of one or two selections, and the estimator that makes a number of them."""

    part: Mapping[str, Any]
    rows: list[pd.DataFrame]
    estimator: str
    overlap: float = 0.0
    """Test rows divided by train rows of the splits, if the part is about a method."""

    @classmethod
    def of(cls, part: Mapping[str, Any], claim: Mapping[str, Any], measured: pd.DataFrame) -> _Quantity:
        """Select the part's rows: one frame per selection, empty if its rows were not measured."""
        selections = [part["of"], *(part[name] for name in OTHERS if name in part)]
        rows = [_chosen(measured, {**claim.get("where", {}), **selection}) for selection in selections]
        estimator, overlap = estimator_of(part, claim), 0.0
        # A share is about further splits of the same rows.
        if claim["about"] == "method" and "overlap" in ESTIMATORS[estimator].options:
            overlap = max((_overlap(one, measured) for one in rows if len(one)), default=0.0)
        return cls(part, rows, estimator, overlap)

    def lacks(self) -> str:
        """Return why these rows are no evidence, or an empty text if they are."""
        if any(rows.empty for rows in self.rows):
            return f"{self.part['label']}: {NO_VALUE}"
        twins = {name for rows in self.rows for name in rows.loc[rows["origin"] == "twin", "dataset"].unique()}
        if not twins:
            return ""
        return f"a synthetic twin replaces the data of {labels.datasets_named(sorted(twins))}"

    @property
    def region(self) -> Region:
        """Return the region in which q must lie."""
        compared = next((region for name, region in COMPARED.items() if name in self.part), None)
        return Region.of({compared: ESTIMATORS[self.estimator].equal} if compared else self.part)

    @property
    def decimals(self) -> int:
        """Return the number of decimals of q."""
        return int(self.part.get("decimals", 3))

    def holds(self, parts: int) -> bool | None:
        """Return whether q lies in the region, as one of the ``parts`` of a claim; None if that is undecided."""
        region = self.region
        here = self.estimate(1 - 2 * LEVEL)
        if ESTIMATORS[self.estimator].decisive:
            return True if region.holds(here.value, here.value) else None
        if region.holds(here.low, here.high):
            return True
        one_sided = math.isfinite(region.low) != math.isfinite(region.high)
        strictly = self.estimate(1 - (2 if one_sided else 1) * LEVEL / parts)
        return False if region.excludes(strictly.low, strictly.high) else None

    def estimate(self, level: float) -> Estimate:
        """Estimate q with its interval at ``level``."""
        options = {key: self.part[key] for key in OPTIONS if key in self.part}
        if "overlap" in ESTIMATORS[self.estimator].options:
            options["overlap"] = self.overlap
        try:
            return estimate(self.estimator, *self.sides, level=level, **options)
        except InvalidInput as error:
            raise InvalidInput.within(f"part {self.part['label']!r}", error) from error

    @cached_property
    def sides(self) -> list[pd.DataFrame]:
        """Return the rows as the part counts them."""
        return [self._as_counted(rows) for rows in self.rows]

    def _as_counted(self, rows: pd.DataFrame) -> pd.DataFrame:
        if self.part.get("magnitude"):
            rows = rows.assign(value=rows["value"].abs())
        if self.part.get("averaged"):
            # The mean of the others says nothing about an undefined value.
            averages = rows.groupby("repetition")["value"].agg(lambda values: values.mean(skipna=False))
            rows = averages.reset_index()
        if "counted" in self.part:
            region = Region.of(self.part["counted"])
            inside = [float(region.holds(value, value)) for value in rows["value"]]
            rows = rows.drop(columns="simulations", errors="ignore").assign(value=inside)
        return rows


def _overlap(rows: pd.DataFrame, measured: pd.DataFrame) -> float:
    """Return the number of test rows divided by the number of train rows of the data set."""
    (dataset,) = rows["dataset"].unique()
    place = {"block": DATA, "dataset": dataset}
    test, train = (
        float(_chosen(measured, {**place, "statistic": name})["value"].iloc[0]) for name in ("test_rows", "train_rows")
    )
    return test / train


def _chosen(rows: pd.DataFrame, setting: Mapping[str, Any]) -> pd.DataFrame:
    """Select the rows with this ``setting``; none if a column is missing.

    Blocks of new splits count their repetitions from 0. Here, each split has its own number.
    """
    found = select(rows, setting) if set(setting) <= set(rows.columns) else rows.iloc[:0]
    if "first_repetition" not in found:
        return found
    return found.assign(repetition=found["repetition"] + found["first_repetition"].fillna(0).astype(int))
