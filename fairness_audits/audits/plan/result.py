"""Compute a plan and assemble its result."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.permutation.equivalence import check_margin
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.planning import MOST_ROWS, Planned, auc_variance, detectable_gap, rows_needed
from fairness_audits.errors import InvalidInput
from fairness_audits.results.formats import decimal, percent, plain
from fairness_audits.results.result import Column, Facts, Result, Section, Table, Verdict, rows_of, under

POWER = 0.8
LINES: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "metric": ("metric", str),
    "value": ("value", decimal),
    "rows": ("rows", "{:,}".format),
    "gap": ("gap", decimal),
    "gap_below": ("below", decimal),
    "gap_above": ("above", decimal),
    "power": ("power", percent),
    "margin": ("margin", "{:g}".format),
    "exact": ("power by", lambda exact: "all probable outcomes" if exact else "normal approximation"),
}
"""Name and format of each fact in the text; a fact without a value is not shown."""


def from_files(given: Given) -> Result:
    """Return the plan. No file is read."""
    return planned(given)


def planned(given: Given) -> Result:
    """Compute the missing one of rows, power and gap. Raises InvalidInput if the settings conflict."""
    plan = _plan(given)
    found = _answers(given, plan)
    rows, value = found["rows"], given.value
    units = (None, None) if rows is None else plan.units(rows)
    counts = (None if number is None else f"{number:,}" for number in units)
    sides = (("gap", 1), ("gap_above", 1), ("gap_below", -1))
    gap = next((side * found[name] for name, side in sides if found.get(name) is not None), 0.0)
    exact = rows is not None and plan.is_exact(rows, value + gap, value)
    facts = plain({"metric": given.metric, "value": value, **found, "units": list(units), "exact": exact})
    said = {
        **given.values,
        **{"gap_below": None, "gap_above": None, "has_gap": "gap" in found, "first": value + gap},
        **facts,
        **{"given_rows": given.rows, "given_margin": given.margin, "wanted_power": given.power or POWER},
        **{"title": _title(given.metric), "both": sum(plan.shares), "most_rows": MOST_ROWS},
        "answered": rows is not None and any(found.get(name) is not None for name, _ in sides),
    }
    columns = (
        Column("", cell=under("what")),
        Column("first group", cell=under("first")),
        Column("second group", cell=under("second")),
    )
    shown = [
        {"what": "share of rows", "first": percent(plan.shares[0]), "second": percent(plan.shares[1])},
        {"what": "rows of the metric", **dict(zip(("first", "second"), counts, strict=True))},
    ]
    table = Table(columns, rows_of(columns, shown), file="plan.csv")
    lines = tuple((name, text(facts[key])) for key, (name, text) in LINES.items() if facts.get(key) is not None)
    verdict = Verdict("planned", texts.named("plan", "headline", said), texts.named("plan", "sentence", said))
    return texts.result(
        "plan",
        said,
        verdict,
        given,
        subject=_title(given.metric),
        sections=(Section("Plan", (Facts(lines),)), Section("Groups", (table,))),
        facts=facts,
        tables={"plan": pd.DataFrame([{k: v for k, v in facts.items() if k != "units"}])},
    )


def _plan(given: Given) -> Planned:
    """Return the two groups."""
    of = tuple(given.of_rows) * (2 if len(given.of_rows) == 1 else 1)
    shares = given.shares or (0.5, 0.5)
    if len(of) != 2:
        raise InvalidInput(f"of_rows has {len(of)} shares", option="of_rows", remedy="Pass one or two")
    if sum(shares) > 1 + 1e-9:
        raise InvalidInput(f"shares sum to {sum(shares):g}", option="shares", remedy="Their sum must be at most 1")
    if (given.metric == "mean") != (given.sd is not None):
        raise InvalidInput("sd and metric=mean need each other", option="sd", remedy="Pass both or neither")
    if given.metric != "mean" and not 0 <= given.value <= 1:
        raise InvalidInput(f"value={given.value:g} is outside [0, 1]", option="value", remedy="Pass a rate or an AUC")
    if given.metric != "mean":
        check_margin(given.margin, given.metric)
    variance, rarer = None, 1.0
    if given.metric == "mean":
        sd = given.sd or 1.0
        variance = lambda _: sd**2  # noqa: E731
    elif given.metric == "auc":
        positives = of[0]
        if positives >= 1 or of[0] != of[1]:
            raise InvalidInput(
                "for the AUC, of_rows is the share of positives", option="of_rows", remedy="Pass one share below 1"
            )
        variance = lambda auc: auc_variance(auc, positives)  # noqa: E731
        of, rarer = (1.0, 1.0), min(positives, 1 - positives)
    return Planned(
        (shares[0], shares[1]),
        (of[0], of[1]),
        given.alpha,
        variance,
        given.margin,
        rarer,
        given.metric == "selection_rate",
    )


def _answers(given: Given, plan: Planned) -> dict[str, Any]:
    """Return rows, gap and power, including the missing one."""
    wanted = given.power or POWER
    gap = given.gap if given.gap is not None or given.margin is None else 0.0
    first = given.value + (gap or 0.0)
    if given.metric != "mean" and not 0 <= first <= 1:
        problem = f"gap={gap:g} puts the first group's metric outside [0, 1]"
        raise InvalidInput(problem, option="gap", remedy="Pass a smaller gap")
    if given.margin is not None and gap is not None and abs(gap) >= given.margin:
        raise InvalidInput(
            "gap must be smaller than margin", option="gap", remedy="Pass a smaller gap or a larger margin"
        )
    if plan.answers and gap is not None and first == given.value and first in (0, 1):
        problem = f"a model that selects {'everybody' if first else 'nobody'} answers alike in all rows"
        remedy = "The audit concludes nothing then. Pass a rate above 0 and below 1"
        raise InvalidInput(problem, option="value", remedy=remedy)
    if given.margin is None and gap == 0:
        raise InvalidInput("gap is 0", option="gap", remedy="Pass another gap, or a margin")
    if given.rows is None:
        if gap is None:
            raise InvalidInput("The plan needs gap, margin or rows", option="gap", remedy="Pass one of them")
        rows = rows_needed(plan, first, given.value, wanted)
        power = None if rows is None else plan.power(rows, first, given.value)
        return {"rows": rows, "gap": gap, "power": power, "margin": given.margin}
    if gap is not None:
        if given.power is not None:
            known = "margin" if given.gap is None else "gap"
            problem = f"the power follows from rows and {known}, so power cannot be set"
            raise InvalidInput(problem, option="power", remedy=f"Drop power, rows or {known}")
        power = plan.power(given.rows, first, given.value)
        return {"rows": given.rows, "gap": gap, "power": power, "margin": given.margin}
    gaps = {}
    for name, side in (("gap_below", -1), ("gap_above", 1)):
        limit = given.value if side < 0 else 1 - given.value
        most = 100 * (given.sd or 1.0) if given.metric == "mean" else limit
        gaps[name] = detectable_gap(plan, given.value, given.rows, wanted, side, most)
    return {"rows": given.rows, **gaps, "power": wanted, "margin": None}


def _title(metric: str) -> str:
    """Return the metric's name for readers."""
    return METRICS[metric].title if metric in METRICS else metric
