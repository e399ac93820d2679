"""Each published number beside ours, with both spreads and a verdict by a stated rule.

The rules, by the kind of number:

* ``mean`` over repetitions: Welch's test of equal means from (mean, standard deviation, n) of both sides, two-sided. A
  printed number stands for every number that rounds to it, so the difference is taken to the nearest of them.
* ``run``, a number of one repetition, printed without a spread: whether it could be one more repetition of ours, by
  Student's test of one draw against a normal sample, two-sided.
* ``proportion`` of repetitions or simulations: Fisher's exact test on the two counts, two-sided.
* ``constant`` (a row count, a hyperparameter): equal after rounding as printed.
* ``reading`` off a figure: within the stated reading error.

p-values are adjusted by Holm's method within each published table or figure; ``differs`` means an adjusted p-value
below ``LEVEL``. A test that does not reject has not shown that both are equal: it reads ``no difference shown``, and
the interval of the difference (:mod:`pipeline.report.difference`) says how large a difference it leaves open.
``agrees`` is for constants that are equal and readings within their error.

A verdict is given for matching settings and official data; fewer repetitions are allowed: they only widen the test.
What the paper does not state cannot be matched: such a number is shown with the setting that was assumed, without a
verdict. Everything else is ``not comparable`` too, and the row says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact, ttest_ind_from_stats

from pipeline.report.departures import departures
from pipeline.report.difference import UNKNOWN, Difference, of_means, of_one_run, of_shares, one_more
from pipeline.report.numbers import Estimate
from pipeline.report.settings import Reduction, by_statistic, explain_absence, parse_setting, select

LEVEL = 0.05
COMPARABLE_ORIGINS = {"official", "bundled", "simulated", "configuration"}
VERDICTS = ("agrees", "no difference shown", "differs", "not comparable", "not run", "published value lost")
KINDS = ("mean", "run", "proportion", "constant", "reading")
COLUMNS = (
    "artefact", "row", "column", "value", "std", "n", "source",
    "kind", "rounding", "setting", "likely", "status", "by", "note",
)  # fmt: skip
UNSTATED = "unstated"
"""The column, which a list may lack, that names what of a setting the paper does not state."""
AS_STATED, AS_ASSUMED, AS_LIKELY = "as stated", "as assumed", "as likely made"
"""Readings of a published number: the setting is the paper's, ours for want of one, or the likelier one."""

# Settings that decide which steps are written down, not what is computed at a step that is named.
BOOKKEEPING = ("audit.record", "audit.steps")

# Fewer independent simulations or repetitions widen a test and leave each as published.
LIKE_REPETITIONS = ("audit.simulations", "repetitions")

NEEDED = {
    "mean": ("value", "std", "n", "rounding"),
    "run": ("value", "rounding"),
    "proportion": ("value", "n"),
    "constant": ("value",),
    "reading": ("value", "rounding"),
}
"""Which columns the comparison of a number of each kind reads."""

WORDS = {
    "mean": "Welch's test",
    "run": "one more repetition",
    "proportion": "Fisher's exact test",
    "constant": "equality",
    "reading": "reading error",
}


@dataclass(frozen=True)
class Test:
    """The outcome of one comparison before adjustment: a p-value, or (for constants and readings) equality."""

    p: float = math.nan
    equal: bool | None = None
    obstacle: str = ""
    difference: Difference = UNKNOWN


def welch(published: Estimate, ours: Estimate, rounding: float = 0.0) -> float:
    """Two-sided p-value of Welch's t test, t = d / sqrt(s1^2 / n1 + s2^2 / n2), Welch-Satterthwaite degrees of freedom.

    d is the difference of the means shrunk towards zero by ``rounding``, half the last printed digit. Without any
    spread on both sides p is 1 for d = 0 and 0 otherwise. Raises ValueError for fewer than two repetitions on a side.
    """
    if published.n < 2 or ours.n < 2:
        raise ValueError(f"Welch's test needs two repetitions on each side, found {published.n} and {ours.n}")
    gap = max(abs(ours.value - published.value) - rounding, 0.0)
    if published.std == 0 and ours.std == 0:
        return 1.0 if gap == 0 else 0.0
    result = ttest_ind_from_stats(gap, published.std, published.n, 0.0, ours.std, ours.n, equal_var=False)
    return float(result.pvalue)


def fisher(published: Estimate, ours: Estimate) -> float:
    """Two-sided p-value of Fisher's exact test that both proportions are equal, from k of n on each side."""
    table = [[round(e.value * e.n), e.n - round(e.value * e.n)] for e in (published, ours)]
    return float(fisher_exact(table).pvalue)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's adjusted p-values: the i-th smallest of m becomes max over j <= i of (m - j + 1) p_(j), at most 1.

    NaN stays NaN and does not count.
    """
    p = np.asarray(p_values, float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return adjusted


def compare(published: pd.DataFrame, measured: pd.DataFrame, reductions: Sequence[Reduction]) -> pd.DataFrame:
    """One line for each published number as stated, and one more where another setting, also run, likely made it.

    ``measured`` holds tidy rows: the audits' and what the study derives from them. Columns of the result: those of
    ``published``, ``reading`` (``as stated``, ``as assumed`` where the paper does not state the setting, or
    ``as likely made``), ``likelier`` (whether the last follows), ``ours``, ``our_std``, ``our_n``, ``difference``
    (ours less published) with ``difference_low`` and ``difference_high``, ``p``, ``p_holm``, ``rule``, ``verdict``,
    ``why``. Raises ValueError for a list with missing columns, missing numbers or unknown words.
    """
    check_published(published)
    if UNSTATED not in published:
        published = published.assign(**{UNSTATED: None})
    numbers = ("value", "std", "n", "rounding")
    published = published.assign(**{name: pd.to_numeric(published[name]) for name in numbers})
    lines: list[dict[str, Any]] = []
    parts = by_statistic(measured)
    for entry in published.to_dict("records"):
        reading = AS_ASSUMED if isinstance(entry[UNSTATED], str) else AS_STATED
        lines.append(_line(entry, entry["setting"], reading, measured, parts, reductions))
        if isinstance(entry["likely"], str):
            likely = _line(entry, entry["likely"], AS_LIKELY, measured, parts, reductions)
            # Where that setting was not run there is nothing to add to the line above.
            if math.isfinite(likely["ours"]):
                lines[-1]["likelier"] = True
                lines.append(likely)
    compared = pd.DataFrame(lines)
    compared["p_holm"] = np.nan
    for _, group in compared.groupby(["artefact", "reading"], sort=False):
        compared.loc[group.index, "p_holm"] = holm(group["p"].to_numpy(float))
    compared["verdict"] = [_verdict(line) for line in compared.to_dict("records")]
    return compared.drop(columns=["equal"])


def check_published(published: pd.DataFrame) -> None:
    """Raise ValueError where a list of published numbers lacks a column, has an unknown kind or status, or a number
    without what its test needs: spread and count of a mean, rounding of a reading, count of a proportion.
    """
    absent = [column for column in COLUMNS if column not in published]
    if absent:
        raise ValueError(f"the list of published numbers lacks the columns {absent}: it needs {list(COLUMNS)}")
    for line, entry in enumerate(published.to_dict("records"), start=2):
        if entry["kind"] not in KINDS:
            raise ValueError(f"published numbers, line {line}: kind {entry['kind']!r} is not one of {list(KINDS)}")
        status = str(entry["status"])
        if status not in ("reproduced", "published value lost") and not status.startswith("not run: "):
            raise ValueError(
                f"published numbers, line {line}: status {status!r}: write 'reproduced', 'not run: <reason>' or "
                "'published value lost'"
            )
        absent = [name for name in NEEDED[entry["kind"]] if pd.isna(entry[name])]
        if status == "reproduced" and absent:
            raise ValueError(
                f"published numbers, line {line}: a {entry['kind']} cannot be compared without {' and '.join(absent)}: "
                "fill them in, or say why it is not run in the column status"
            )


def estimate(rows: pd.DataFrame, kind: str) -> Estimate:
    """Our number from the rows of a setting: one row for each repetition, or one value in all.

    A proportion that comes as one value with a column ``simulations`` is the share of so many.
    Raises ValueError where the setting leaves several values for a repetition.
    """
    if rows["repetition"].duplicated().any():
        varying = [c for c in rows.columns if c not in ("value", "repetition") and rows[c].nunique(dropna=False) > 1]
        raise ValueError(f"several values for one repetition: the setting must also give {', '.join(varying)}")
    values = rows.sort_values("repetition")["value"].to_numpy(float)
    if kind == "proportion" and "simulations" in rows and rows["simulations"].notna().all():
        return Estimate(float(values[0]), n=int(rows["simulations"].iloc[0]))
    if kind in ("mean", "run"):
        return Estimate.mean(values)
    return Estimate.share(values) if kind == "proportion" else Estimate(float(values[0]))


def _line(
    entry: Mapping[str, Any],
    setting: Any,
    reading: str,
    measured: pd.DataFrame,
    parts: Mapping[str, pd.DataFrame],
    reductions: Sequence[Reduction],
) -> dict[str, Any]:
    ours, test = Estimate(math.nan), Test()
    if entry["status"] == "reproduced":
        ours, test = _test(entry, str(setting), measured, parts, reductions)
    elif entry["status"] == "published value lost" and isinstance(setting, str):
        # There is nothing to compare with; ours still stands where the lost number stood.
        ours, _ = _test(entry, setting, measured, parts, reductions)
    why = test.obstacle
    if reading == AS_ASSUMED and entry["status"] == "reproduced":
        why = "; ".join(filter(None, (f"the paper does not state {entry[UNSTATED]}", why)))
    return {
        **entry,
        "reading": reading,
        "likelier": False,
        "used_setting": setting,
        "ours": ours.value,
        "our_std": ours.std,
        "our_n": ours.n,
        "difference": test.difference.value,
        "difference_low": test.difference.low,
        "difference_high": test.difference.high,
        "p": math.nan if reading == AS_ASSUMED else test.p,
        "equal": test.equal,
        "rule": WORDS[entry["kind"]],
        "why": why,
    }


def _test(
    entry: Mapping[str, Any],
    text: str,
    measured: pd.DataFrame,
    parts: Mapping[str, pd.DataFrame],
    reductions: Sequence[Reduction],
) -> tuple[Estimate, Test]:
    where = f"published {entry['artefact']}, {entry['row']} x {entry['column']}"
    setting = parse_setting(text)
    try:
        rows = select(parts.get(str(setting.get("statistic")), measured), setting)
        if rows.empty:
            return Estimate(math.nan), Test(obstacle=f"not measured in this run: {explain_absence(measured, setting)}")
        ours = estimate(rows, entry["kind"])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    obstacle = _obstacle(rows, setting, reductions)
    if obstacle or entry["value"] != entry["value"]:
        return ours, Test(obstacle=obstacle)
    if not math.isfinite(ours.value):
        return ours, Test(obstacle="ours is not a finite number")
    theirs = Estimate(entry["value"], entry["std"], int(entry["n"]) if entry["n"] == entry["n"] else 0)
    if entry["kind"] in ("mean", "run"):
        if ours.n < 2 or not math.isfinite(ours.std):
            return ours, Test(obstacle="one repetition has no spread")
        test, interval = (welch, of_means) if entry["kind"] == "mean" else (one_more, of_one_run)
        sides = (theirs, ours, entry["rounding"])
        return ours, Test(p=test(*sides), difference=interval(*sides, 1 - LEVEL))
    if entry["kind"] == "proportion":
        return ours, Test(p=fisher(theirs, ours), difference=of_shares(theirs, ours, 1 - LEVEL))
    tolerance = max(entry["rounding"] if entry["rounding"] == entry["rounding"] else 0.0, 1e-9 * abs(theirs.value))
    return ours, Test(equal=bool(abs(ours.value - theirs.value) <= tolerance * (1 + 1e-9)))


def _obstacle(rows: pd.DataFrame, setting: Mapping[str, Any], reductions: Sequence[Reduction]) -> str:
    """Why rows of this setting cannot be held against a published number, or nothing."""
    origins = set(rows["origin"])
    if not origins <= COMPARABLE_ORIGINS:
        return f"made from {' and '.join(sorted(origins - COMPARABLE_ORIGINS))} data"
    statistic = str(setting.get("statistic", ""))
    found = []
    for reduction in reductions:
        place = {key: getattr(reduction, key) for key in ("block", "dataset", "method", "transport")}
        if any(value and setting.get(key, value) != value for key, value in place.items()):
            continue
        # A configured value has its key for a name, and is reduced where that key is; a result, where any is.
        if "." in statistic or statistic in LIKE_REPETITIONS:
            applies = statistic == reduction.key
        else:
            bookkeeping = "steps" in setting and reduction.key in BOOKKEEPING
            applies = not bookkeeping and reduction.key not in LIKE_REPETITIONS
        if applies:
            found.append(reduction)
    return f"not as published: {'; '.join(departures(found))}" if found else ""


def _verdict(line: Mapping[str, Any]) -> str:
    if line["status"] == "published value lost":
        return "published value lost"
    if line["status"] != "reproduced":
        return "not run"
    if line["why"]:
        return "not comparable"
    if line["equal"] is not None and line["equal"] == line["equal"]:
        return "agrees" if line["equal"] else "differs"
    if not math.isfinite(line["p_holm"]):
        raise ValueError(
            f"published {line['artefact']}, {line['row']} x {line['column']}: expected a p-value, found "
            f"{line['p_holm']}: its rule must give one, or say why it cannot"
        )
    return "differs" if line["p_holm"] < LEVEL else "no difference shown"
