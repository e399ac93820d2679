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
* *undecided* otherwise. The part then says if its 90 % interval lies outside R and only the correction keeps it open,
  or if no number of further splits with the same mean and standard deviation could decide it.

``about`` names the population that the claim is about (:data:`ABOUT`), because the interval depends on it. Repetitions
are mostly overlapping splits of the same rows. For a claim about a ``method``, the mean over J splits has the corrected
variance of Nadeau and Bengio, (1 / J + test rows / train rows) s^2 (Machine Learning 52, 2003). A share of splits is
always about further splits of the same rows. ``settings`` names the settings that are ours because the paper does not
state them, our copy lacks them, or they are too expensive. The claim is then decided with our settings and says so.
``changed`` says how the rule was changed when its numbers were already known, and what the outcome was before.
``check`` (true) marks a statement that could hardly be false: it is decided in the same way and counted apart from the
findings.

``where`` (of the claim) and ``of`` (of the part) select rows. The quantity of the part is

* the mean over repetitions, with Student's interval. ``magnitude`` takes absolute values; ``averaged`` first averages
  the rows of each repetition; ``limits`` clips the interval to the range of possible means;
* with ``less_than``, ``more_than`` or ``minus`` (another selection), the mean of the paired differences, because
  repetitions share splits. ``less_than`` and ``more_than`` are also regions, below and above 0. For values of 0 or 1
  the interval is Newcombe's for two shares, which ignores the pairing. Otherwise, if all values are equal, the interval
  is that value from ``ENOUGH`` repetitions on, and the real line for fewer;
* with ``counted`` (a region), the share of repetitions in the region, with Wilson's interval;
* for a row with ``simulations``, or with the column named by ``share_of``, a share of that many, with Wilson's
  interval. Two such shares are compared by Newcombe's interval;
* for rows with ``groups``, each a share of that many groups of one network, the mean with Student's interval. The
  standard deviation is at least that of chance;
* for rows with an ``error``, a standard error over points that the repetitions share, the mean with the normal interval
  of the mean error. It holds under any dependence of the repetitions;
* for rows with ``freedom``, each a mean square over its expectation (Cochran's Q over its degrees of freedom), the
  pooled ratio with the interval from the chi-squared distribution.

A region is one of ``above`` and ``below`` (open), ``at_least`` and ``at_most`` (closed), or ``within`` (closed on both
sides). An undefined value lies in no region. A mean with an infinite or undefined value has no interval, so its part is
undecided. ``provided`` (parts) states the preconditions of the claim, for example that most maps reach their target. If
the estimate of a precondition is outside its region, the claim is not testable here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import interval, number
from pipeline.report import labels
from pipeline.report.facts import DATA
from pipeline.report.rules import shares, with_wilson
from pipeline.report.selection import by_repetition, select

LEVEL = 0.05
CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_TESTABLE = "confirmed", "not confirmed", "undecided", "not testable here"
OUTCOMES = (CONFIRMED, NOT_CONFIRMED, UNDECIDED, NOT_TESTABLE)
OF_MANY = "outside the region, but not after correction for the number of parts"
FURTHER_SPLITS = "further splits could not decide it"
CHANGED = "we changed the rule when we knew the numbers"
EQUAL = 1e-12
"""Rounding error of equal values, relative to the largest."""
ENOUGH = 5
"""Fewer equal values show nothing: if half of all values differ, four are equal with probability .5 ** 4 > .05."""

REGIONS = ("above", "below", "at_least", "at_most", "within")
COMPARED = {"less_than": "below", "more_than": "above"}
"""Comparisons with another selection, and the side of 0 on which the difference must lie."""
OTHERS = ("minus", *COMPARED)
CLAIM_KEYS = ("says", "source", "artefact", "about", "settings", "changed", "check", "where", "provided", "parts")
PART_KEYS = (
    "label", "of", "magnitude", "averaged", "counted", "share_of", "limits", "decimals",
    *OTHERS, *REGIONS,
)  # fmt: skip


ABOUT = {
    "method": "the intervals of means are for the method, corrected for overlapping splits; those of shares are for "
    "further splits of the same rows",
    "splits": "the intervals are for further splits of the same rows",
    "draws": "the intervals are for further independent samples",
    "trainings": "the intervals are for further networks or training runs on the same images",
    "groups": "the intervals are for further groups of this kind",
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
        deciding = decision.why if first is None or decision.outcome == NOT_TESTABLE else _text(first)
        line = {key: value for key, value in vars(decision).items() if key != "parts"}
        told.append(
            {**line, "numbers": [*map(_text, decision.parts)], "deciding": deciding, "reference": "", "standing": ""}
        )
    return told


def standing(run: str, reference: str) -> str:
    """Compare the outcome of a run with the outcome of the reference."""
    if run == reference:
        return "consistent"
    # A run may decide a claim that is undecided in the reference.
    decided = "contradicts it" if reference in (CONFIRMED, NOT_CONFIRMED) else f"{run} in this run"
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


def _check_keys(given: Mapping[str, Any], known: Sequence[str], needed: Sequence[str], where: str) -> None:
    check_keys(given, known, where)
    if missing := [key for key in needed if key not in given]:
        raise InvalidInput(f"{where} lacks {', '.join(missing)}", option=missing[0])


def decide(claims: Sequence[Mapping[str, Any]], measured: pd.DataFrame) -> list[Decision]:
    """Decide every claim from ``measured``, the rows of the audits and the study's derived rows."""
    check(claims)
    return [_decision(claim, measured) for claim in claims]


def _decision(claim: Mapping[str, Any], measured: pd.DataFrame) -> Decision:
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
    where = claim.get("where", {})
    of_method = claim["about"] == "method"
    conditions, parts = (
        [_Quantity.of(part, where, measured, of_method) for part in claim.get(name, ())]
        for name in ("provided", "parts")
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
        if holds is None and quantity.region.excludes(here.low, here.high):
            why = OF_MANY
        elif holds is None and math.isfinite(here.high - here.low):
            why = FURTHER_SPLITS * (quantity.overlap > 0 and quantity.holds(len(parts), forever=True) is None)
        numbers = (here.value, here.low, here.high, here.n)
        found.append(Found(quantity.part["label"], *numbers, holds, quantity.decimals, why))
    if refuted or not lacking:
        outcome = NOT_CONFIRMED if refuted else CONFIRMED if all(part.holds for part in found) else UNDECIDED
    else:
        outcome = NOT_TESTABLE
    return replace(decision, outcome=outcome, parts=tuple(found), why="; ".join(dict.fromkeys(lacking)))


@dataclass(frozen=True)
class _Quantity:
    """The quantity of a part: the rows of one or two selections, and the rule that makes a number of them."""

    part: Mapping[str, Any]
    rows: list[pd.DataFrame]
    overlap: float = 0.0
    """Test rows divided by train rows of the splits, for the correction of Nadeau and Bengio."""

    @classmethod
    def of(
        cls, part: Mapping[str, Any], where: Mapping[str, Any], measured: pd.DataFrame, of_method: bool
    ) -> _Quantity:
        """Select the part's rows: one frame per selection, empty if its rows were not measured."""
        selections = [part["of"], *(part[name] for name in OTHERS if name in part)]
        rows = [_chosen(measured, {**where, **selection}) for selection in selections]
        overlap = max((_overlap(one, measured) for one in rows if len(one)), default=0.0) if of_method else 0.0
        return cls(part, rows, overlap)

    def lacks(self) -> str:
        """Return why these rows are no evidence, or an empty text if they are."""
        if any(rows.empty for rows in self.rows):
            return f"{self.part['label']}: this run has no value"
        twins = {name for rows in self.rows for name in rows.loc[rows["origin"] == "twin", "dataset"].unique()}
        if not twins:
            return ""
        return f"a synthetic twin replaces the data of {labels.datasets_named(sorted(twins))}"

    @property
    def region(self) -> Region:
        """Return the region in which q must lie."""
        compared = next((region for name, region in COMPARED.items() if name in self.part), None)
        return Region.of({compared: 0.0} if compared else self.part)

    @property
    def decimals(self) -> int:
        """Return the number of decimals of q."""
        return int(self.part.get("decimals", 3))

    def holds(self, parts: int, forever: bool = False) -> bool | None:
        """Return whether q lies in the region, as one of the ``parts`` of a claim; None if that is undecided."""
        region = self.region
        here = self.estimate(1 - 2 * LEVEL, forever)
        if region.holds(here.low, here.high):
            return True
        one_sided = math.isfinite(region.low) != math.isfinite(region.high)
        strictly = self.estimate(1 - (2 if one_sided else 1) * LEVEL / parts, forever)
        return False if region.excludes(strictly.low, strictly.high) else None

    def estimate(self, level: float, forever: bool = False) -> Estimate:
        """Estimate q with its interval at ``level``. With too few repetitions the interval is the real line.

        ``forever``: the interval of a corrected mean if any number of further splits had the same mean and standard
        deviation.
        """
        sides = [_values(rows, self.part) for rows in self.rows]
        if "freedom" in self.rows[0] and self.rows[0]["freedom"].notna().all():
            return _mean_square(sides[0], self.rows[0]["freedom"], level)
        of_many = [_share(rows, self.part.get("share_of", "simulations")) for rows in self.rows]
        if all(of_many):
            one, *others = (share for share in of_many if share)
            return _less(one, others[0], level) if others else with_wilson(one, level)
        errors = [rows["error"] for rows in self.rows if "error" in rows and rows["error"].notna().all()]
        if len(errors) == len(self.rows):
            value = sides[0].mean() - (sides[1].mean() if len(sides) > 1 else 0.0)
            half = float(norm.ppf((1 + level) / 2)) * math.hypot(*(error.mean() for error in errors))
            # A single row has the number of draws behind its error as n.
            n = int(self.rows[0]["draws"].sum()) if "draws" in self.rows[0] else 0
            return Estimate(value, n=n or len(sides[0]), low=value - half, high=value + half)
        if "counted" in self.part:
            region = Region.of(self.part["counted"])
            inside = np.array([float(region.holds(value, value)) for value in sides[0]])
            return with_wilson(Estimate.share(inside), level)
        if len(sides) == 2 and all(side.isin([0.0, 1.0]).all() for side in sides):
            one, other = (Estimate.share(side.to_numpy(float)) for side in sides)
            return _less(one, other, level)
        values = sides[0]
        if len(sides) == 2:
            one, other = sides[0].align(sides[1], join="inner")
            values = one - other
        limits = tuple(map(float, self.part.get("limits", (-math.inf, math.inf))))
        found = Estimate.mean(values.to_numpy(float))
        if found.n < len(values):
            # The mean of the others says nothing about a value that is infinite or undefined.
            return replace(found, low=-math.inf, high=math.inf)
        by_chance = math.hypot(*map(_by_chance, self.rows))
        deviation = max(found.std, by_chance)
        if forever and self.overlap and math.isfinite(deviation):
            half = float(norm.ppf((1 + level) / 2)) * deviation * math.sqrt(self.overlap)
            return replace(found, low=max(found.value - half, limits[0]), high=min(found.value + half, limits[1]))
        spread = deviation * math.sqrt(1 + found.n * self.overlap)
        found = replace(found, std=spread).with_t_interval(level, *limits)
        told = found.n > 1 and (
            found.n >= ENOUGH or by_chance > 0 or np.ptp(values) > EQUAL * max(1.0, np.abs(values).max())
        )
        return found if told else Estimate(found.value, n=found.n, low=-math.inf, high=math.inf)


def _less(one: Estimate, other: Estimate, level: float) -> Estimate:
    gap = shares(other, one, 0.0, level)
    return Estimate(gap.difference, n=one.n, low=gap.low, high=gap.high)


def _values(rows: pd.DataFrame, part: Mapping[str, Any]) -> pd.Series:
    """Return one value per repetition."""
    if part.get("magnitude"):
        rows = rows.assign(value=rows["value"].abs())
    if part.get("averaged"):
        # The mean of the others says nothing about an undefined value.
        return rows.groupby("repetition")["value"].agg(lambda values: values.mean(skipna=False))
    return by_repetition(rows, f"part {part['label']!r}: ").astype(float)


def _share(rows: pd.DataFrame, column: str) -> Estimate | None:
    """Return the share of simulations if there is a single row; ``column`` has their number."""
    if len(rows) != 1 or column not in rows or rows[column].isna().any():
        return None
    return Estimate(float(rows["value"].iloc[0]), n=int(rows[column].iloc[0]))


def _overlap(rows: pd.DataFrame, measured: pd.DataFrame) -> float:
    """Return the number of test rows divided by the number of train rows of the data set."""
    (dataset,) = rows["dataset"].unique()
    place = {"block": DATA, "dataset": dataset}
    test, train = (
        float(_chosen(measured, {**place, "statistic": name})["value"].iloc[0]) for name in ("test_rows", "train_rows")
    )
    return test / train


def _by_chance(rows: pd.DataFrame) -> float:
    """Return the standard deviation of shares of ``groups`` with one common probability; 0 for other rows."""
    if "groups" not in rows or rows["groups"].isna().any():
        return 0.0
    chance = float(np.average(rows["value"], weights=rows["groups"]))
    return math.sqrt(chance * (1 - chance) * float((1 / rows["groups"]).mean()))


def _mean_square(values: pd.Series, freedom: pd.Series, level: float) -> Estimate:
    """Pool the mean squares, with the interval of their expectation."""
    total = float(freedom.sum())
    square = float((values.to_numpy() * freedom.to_numpy()).sum())
    low, high = (square / float(chi2.ppf((1 + sign * level) / 2, total)) for sign in (1, -1))
    return Estimate(square / total, n=len(values), low=low, high=high)


def _chosen(rows: pd.DataFrame, setting: Mapping[str, Any]) -> pd.DataFrame:
    """Select the rows with this ``setting``; none if a column is missing."""
    return select(rows, setting) if set(setting) <= set(rows.columns) else rows.iloc[:0]
