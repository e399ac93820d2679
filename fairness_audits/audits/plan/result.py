"""Compute a plan and assemble its result."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.planning import MOST_ROWS, Planned, auc_variance, detectable_gap, rows_needed
from fairness_audits.audits.plan.brief import brief
from fairness_audits.audits.plan.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.results.formats import decimal, percent, plain
from fairness_audits.results.result import Column, Facts, Result, Section, Table, Verdict, rows_of, under
from fairness_audits.results.sentences import caveats

CAVEATS = """
one_comparison: The plan is for one comparison of two groups. Several tests need more rows.
expected_rows: The plan assumes that the metric is computed on exactly the share of rows that --of-rows states.
saw_tooth: The power of an exact test rises and falls slightly as rows are added, so plan for a few more rows.
normal: The plan uses the normal approximation, which holds for large groups.
answers_vary: The plan assumes that the model's answers differ between rows that do not count for the metric. The audit
  concludes nothing if all answers are the same.
auc_formula: The variance of the AUC follows Hanley and McNeil (1982).
"""
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


def from_files(settings: Settings) -> Result:
    """Return the plan. No file is read."""
    return planned(settings)


def planned(settings: Settings) -> Result:
    """Compute the missing one of rows, power and gap. Raises InvalidInput if the settings conflict."""
    plan = _plan(settings)
    found = _answers(settings, plan)
    rows, value = found["rows"], settings.value
    units = (None, None) if rows is None else plan.units(rows)
    counts = (None if number is None else f"{number:,}" for number in units)
    sides = (("gap", 1), ("gap_above", 1), ("gap_below", -1))
    gap = next((side * found[name] for name, side in sides if found.get(name) is not None), 0.0)
    exact = rows is not None and plan.is_exact(rows, value + gap, value)
    facts = plain({"metric": settings.metric, "value": value, **found, "units": list(units), "exact": exact})
    of = {
        "one_comparison": True,
        "expected_rows": set(plan.of_rows) != {1.0} and settings.metric != "auc",
        "saw_tooth": exact,
        "normal": not exact,
        "answers_vary": plan.variance is None and value + gap == value and value in (0, 1),
        "auc_formula": settings.metric == "auc",
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
    sentence = _sentence(settings, found)
    headline = "NO SUCH NUMBER OF ROWS" if rows is None else f"{rows:,} ROWS"
    lines = tuple((name, text(facts[key])) for key, (name, text) in LINES.items() if facts.get(key) is not None)
    return Result(
        audit="plan",
        title="Plan of a comparison",
        subject=_title(settings),
        verdict=Verdict("not rejected", headline, sentence, {}),
        brief=brief(settings, sentence, found["power"], _answered(found)),
        caveats=tuple(caveats(CAVEATS, of)),
        sections=(Section("Plan", (Facts(lines),)), Section("Groups", (table,))),
        facts=facts,
        tables={"plan": pd.DataFrame([{k: v for k, v in facts.items() if k != "units"}])},
        settings=settings,
    )


def _plan(settings: Settings) -> Planned:
    """Return the two groups."""
    of = tuple(settings.of_rows) * (2 if len(settings.of_rows) == 1 else 1)
    shares = settings.shares or (0.5, 0.5)
    if len(of) != 2:
        raise InvalidInput(f"--of-rows has {len(of)} shares", option="of_rows", remedy="Pass one or two")
    if sum(shares) > 1 + 1e-9:
        raise InvalidInput(f"--shares sum to {sum(shares):g}", option="shares", remedy="Their sum must be at most 1")
    if (settings.metric == "mean") != (settings.sd is not None):
        raise InvalidInput("--sd and --metric=mean need each other", option="sd", remedy="Pass both or neither")
    if settings.metric != "mean" and not 0 <= settings.value <= 1:
        raise InvalidInput(
            f"--value={settings.value:g} is outside [0, 1]", option="value", remedy="Pass a rate or an AUC"
        )
    if settings.metric != "mean" and settings.margin is not None and settings.margin >= 1:
        problem = f"--margin={settings.margin:g} allows every difference of {settings.metric}"
        raise InvalidInput(problem, option="margin", remedy="Pass a margin below 1")
    variance, rarer = None, 1.0
    if settings.metric == "mean":
        sd = settings.sd or 1.0
        variance = lambda _: sd**2  # noqa: E731
    elif settings.metric == "auc":
        positives = of[0]
        if positives >= 1 or of[0] != of[1]:
            raise InvalidInput(
                "for the AUC, --of-rows is the share of positives", option="of_rows", remedy="Pass one share below 1"
            )
        variance = lambda auc: auc_variance(auc, positives)  # noqa: E731
        of, rarer = (1.0, 1.0), min(positives, 1 - positives)
    return Planned(
        (shares[0], shares[1]),
        (of[0], of[1]),
        settings.alpha,
        variance,
        settings.margin,
        rarer,
        settings.metric == "selection_rate",
    )


def _answers(settings: Settings, plan: Planned) -> dict[str, Any]:
    """Return rows, gap and power, including the missing one."""
    gap = settings.gap if settings.gap is not None or settings.margin is None else 0.0
    first = settings.value + (gap or 0.0)
    if settings.metric != "mean" and not 0 <= first <= 1:
        problem = f"--gap={gap:g} puts the first group's metric outside [0, 1]"
        raise InvalidInput(problem, option="gap", remedy="Pass a smaller gap")
    if settings.margin is not None and gap is not None and abs(gap) >= settings.margin:
        raise InvalidInput(
            "--gap must be smaller than --margin", option="gap", remedy="Pass a smaller gap or a larger margin"
        )
    if plan.answers and gap is not None and first == settings.value and first in (0, 1):
        problem = f"a model that selects {'everybody' if first else 'nobody'} answers alike in all rows"
        remedy = "The audit concludes nothing then. Pass a rate above 0 and below 1"
        raise InvalidInput(problem, option="value", remedy=remedy)
    if settings.margin is None and gap == 0:
        raise InvalidInput("--gap is 0", option="gap", remedy="Pass another gap, or a --margin")
    if settings.rows is None:
        if gap is None:
            raise InvalidInput("The plan needs --gap, --margin or --rows", option="gap", remedy="Pass one of them")
        rows = rows_needed(plan, first, settings.value, settings.wanted_power)
        power = None if rows is None else plan.power(rows, first, settings.value)
        return {"rows": rows, "gap": gap, "power": power, "margin": settings.margin}
    if gap is not None:
        if settings.power is not None:
            known = "--margin" if settings.gap is None else "--gap"
            problem = f"the power follows from --rows and {known}, so --power cannot be set"
            raise InvalidInput(problem, option="power", remedy=f"Drop --power, --rows or {known}")
        power = plan.power(settings.rows, first, settings.value)
        return {"rows": settings.rows, "gap": gap, "power": power, "margin": settings.margin}
    gaps = {}
    for name, side in (("gap_below", -1), ("gap_above", 1)):
        limit = settings.value if side < 0 else 1 - settings.value
        most = 100 * (settings.sd or 1.0) if settings.metric == "mean" else limit
        gaps[name] = detectable_gap(plan, settings.value, settings.rows, settings.wanted_power, side, most)
    return {"rows": settings.rows, **gaps, "power": settings.wanted_power, "margin": None}


def _title(settings: Settings) -> str:
    """Return the metric's name for readers."""
    return METRICS[settings.metric].title if settings.metric in METRICS else settings.metric


def _answered(found: Mapping[str, Any]) -> bool:
    """Return whether there is such a number of rows, or such a gap."""
    gaps = [found[name] for name in ("gap", "gap_below", "gap_above") if name in found]
    return found["rows"] is not None and any(gap is not None for gap in gaps)


def _sentence(settings: Settings, found: Mapping[str, Any]) -> str:
    """Say the rows, gap and power."""
    aim = f"show a difference of at most {settings.margin:g}" if settings.margin else "reject equality"
    if found["rows"] is None:
        return f"Even {MOST_ROWS:,} rows do not give a power of {percent(settings.wanted_power)} to {aim}."
    rows = f"{found['rows']:,} rows of both groups together"
    if (both := sum(settings.shares or (1.0,))) < 1 - 1e-9:
        rows = f"{found['rows']:,} rows, of which {percent(both)} belong to the two groups"
    if "gap" in found:
        values = (
            f"{decimal(settings.value + found['gap'])} in the first group and {decimal(settings.value)} in the other"
        )
        return f"With {rows}, {_title(settings)} values of {values} give a power of {percent(found['power'])} to {aim}."
    each = [
        f"{decimal(found[name])} {side}"
        for name, side in (("gap_below", "below"), ("gap_above", "above"))
        if found[name] is not None
    ]
    if not each:
        return f"With {rows}, no gap is detected with a power of {percent(settings.wanted_power)}."
    of = f"the {_title(settings)} of the second group, {decimal(settings.value)}"
    return f"{rows} detect a gap of {' or '.join(each)} {of}, with a power of {percent(settings.wanted_power)}."
