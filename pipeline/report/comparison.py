"""Compare each published number with ours: both spreads, and a verdict by a stated rule.

:mod:`pipeline.report.rules` has the rule of each kind of number. p-values are adjusted by Holm's method within each
published table or figure. The verdicts are

* ``differs``: the adjusted p-value is below ``LEVEL``. Holm's method favours the papers' numbers, so a number whose
  p-value is below ``LEVEL`` before adjustment only is marked;
* ``agrees``: equivalence is shown at level ``LEVEL`` within a margin, constants are equal, or a reading is within its
  error. A test that does not reject does not show equality;
* ``consistent``: a predictive check with enough power does not reject, before adjustment either;
* ``no difference shown``: none of these. The interval and the power tell how large the difference may be.

Settings (constants) and results are counted separately.

A verdict requires matching settings and official data. Fewer repetitions are allowed because they only widen the test.
A setting that the paper does not state cannot be matched: the number is shown with the assumed setting and without a
verdict. Every other number is ``not comparable``, and its row says why. Numbers marked ``across networks`` summarise
many networks and data sets. They are compared with ours under any settings and also with re-encoded images, as are the
sizes of data sets.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.inference import corrected
from fairness_audits.errors import InvalidInput
from fairness_audits.results.estimate import Estimate
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.facts import DATA
from pipeline.report.inputs import Inputs, points
from pipeline.report.reduction import Reduction, departures
from pipeline.report.rules import ENOUGH_POWER, RULES, Outcome
from pipeline.report.selection import by_statistic, explain_absence, parse_setting, select

LEVEL = 0.05
COMPARABLE_ORIGINS = frozenset({"official", "bundled", "simulated", "configuration"})
PASSED = ("agrees", "consistent", "no difference shown")
GIVEN = (*PASSED, "differs")
"""Verdicts of a rule."""
VERDICTS = (*GIVEN, "not comparable", "not run", "published value missing")
COLUMNS = (
    "artefact", "row", "column", "value", "std", "n", "source",
    "kind", "rounding", "setting", "likely", "status", "by", "note",
)  # fmt: skip
UNSTATED = "unstated"
"""Optional column that names the settings which the paper does not state."""
ACROSS, ACROSS_NETWORKS = "across", "networks"
"""Optional column, and its value, for numbers that are compared under any settings of our networks."""
AS_STATED, AS_ASSUMED, AS_LIKELY = "stated setting", "assumed setting", "likely setting"
"""Readings of a published number: the stated setting, our assumption if none is stated, or a likelier setting."""
NUMBERS = ("ours", "our_std", "difference", "low", "high", "p", "power", "detectable")
FOUND = ("reading", "likelier", "used_setting", *NUMBERS, "our_n", "equal", "equivalent", "rule", "why")
"""Columns that a comparison adds to a published number. Some are fields of :class:`rules.Outcome`."""
REPRODUCED, MISSING = "reproduced", "published value missing"
NOT_RUN, NOT_COMPARED = "not run: ", "not compared: "
"""The statuses of a published number. A reason follows the last two."""
ALL_DATA = "all"
"""Data set of a number that covers all data sets of the paper."""

# Settings that select the recorded steps. They do not change the numbers at a recorded step.
BOOKKEEPING = ("audit.record", "audit.steps")

# With fewer independent simulations or repetitions the test widens, but each repetition is as published.
LIKE_REPETITIONS = ("audit.simulations", "repetitions")


def compared(
    inputs: Inputs, published: pd.DataFrame, measured: pd.DataFrame, reductions: Sequence[Reduction] | None = None
) -> pd.DataFrame:
    """Call :func:`compare` for a study. ``measured`` holds its rows and the rows derived from them.

    ``reductions`` defaults to those of the inputs. A reduced number of repetitions counts as a reduction of that number
    only. Numbers of unavailable data get the status ``not run``, which names the data.
    """
    missing = set(inputs.rows.loc[inputs.rows["origin"] == "absent", "dataset"])
    entries = published.assign(status=[_status(entry, missing) for entry in published.to_dict("records")])
    fewer = [
        Reduction.at(here, "repetitions", here["repetitions"], there["repetitions"])
        for here, there in zip(inputs.points, points(inputs.config["published"]), strict=True)
        if here["repetitions"] != there["repetitions"]
    ]
    return compare(entries, measured, (*(inputs.reductions if reductions is None else reductions), *fewer))


def compare(published: pd.DataFrame, measured: pd.DataFrame, reductions: Sequence[Reduction]) -> pd.DataFrame:
    """Compare each published number with ours.

    There is one line for the stated setting, and a second line if another setting was also run that more likely made
    the number. ``measured`` holds the tidy rows of the audits and the rows derived from them. The result has the
    columns of ``published``, ``reading`` (``stated setting``, ``assumed setting`` if the paper does not state it, or
    ``likely setting``), ``likelier`` (whether a line ``likely setting`` follows), ``ours``, ``our_std``, ``our_n``,
    ``difference`` (ours minus published) with ``low`` and ``high``, ``p``, ``p_holm``, ``power``, ``detectable``,
    ``rule``, ``verdict`` and ``why``. Raises InvalidInput if the list has missing columns, missing numbers or unknown
    words.
    """
    check_published(published)
    numbers = {name: pd.to_numeric(published[name]) for name in ("value", "std", "n", "rounding")}
    published = published.assign(**{UNSTATED: published.get(UNSTATED), **numbers})
    sides = _Sides(measured, by_statistic(measured), reductions)
    lines: list[dict[str, Any]] = []
    for entry in published.to_dict("records"):
        reading = AS_ASSUMED if isinstance(entry[UNSTATED], str) else AS_STATED
        lines.append(_line(entry, entry["setting"], reading, sides))
        if isinstance(entry["likely"], str):
            likely = _line(entry, entry["likely"], AS_LIKELY, sides)
            # A likelier setting that was not run adds no line.
            if math.isfinite(likely["ours"]):
                lines[-1]["likelier"] = True
                lines.append(likely)
    found = pd.DataFrame(lines, columns=[*published.columns, *FOUND]).astype(dict.fromkeys(NUMBERS, float))
    found["p_holm"] = np.nan
    for _, group in found.groupby(["artefact", "reading"], sort=False):
        found.loc[group.index, "p_holm"] = corrected(group["p"].to_numpy(float), "holm")
    found["verdict"] = [_verdict(line) for line in found.to_dict("records")]
    return found.drop(columns=["equal", "equivalent"])


def check_published(published: pd.DataFrame) -> None:
    """Raise InvalidInput if a list of published numbers lacks a column, has an unknown kind or status, or lacks values
    that a test needs: spread and count of a mean, rounding of a reading, count of a proportion.
    """
    absent = [column for column in COLUMNS if column not in published]
    if absent:
        problem = f"the list of published numbers lacks the columns {absent}"
        raise InvalidInput(problem, column=absent[0], remedy=f"It needs {list(COLUMNS)}")
    for row, entry in enumerate(published.to_dict("records")):
        where, kind, status = f"published numbers, line {row + 2}", entry["kind"], str(entry["status"])
        if kind not in RULES:
            problem = f"{where}: kind {kind!r} is not one of {list(RULES)}"
            raise InvalidInput(problem, column="kind", row=row)
        if status not in (REPRODUCED, MISSING) and not status.startswith((NOT_RUN, NOT_COMPARED)):
            remedy = "Write 'reproduced', 'not run: <reason>', 'not compared: <reason>' or 'published value missing'"
            raise InvalidInput(f"{where}: status {status!r} is not known", column="status", row=row, remedy=remedy)
        absent = [name for name in RULES[kind].needs if pd.isna(entry[name])]
        if status == REPRODUCED and absent:
            problem = f"{where}: a {kind} cannot be compared without {' and '.join(absent)}"
            remedy = "Fill them in, or say in the column status why it is not compared"
            raise InvalidInput(problem, column=absent[0], row=row, remedy=remedy)
        if status == REPRODUCED and kind in ("mean", "variance") and entry["n"] < 2:
            raise InvalidInput(f"{where}: a {kind} has no spread with n below 2", column="n", row=row)


@dataclass(frozen=True)
class _Sides:
    """Our rows, all together and by statistic, and the reductions of the run."""

    measured: pd.DataFrame
    parts: Mapping[str, pd.DataFrame]
    reductions: Sequence[Reduction]


def _line(entry: Mapping[str, Any], setting: Any, reading: str, sides: _Sides) -> dict[str, Any]:
    ours, why, found = Estimate(math.nan), "", Outcome()
    status = entry["status"]
    # A number without a comparison still shows ours.
    if status == REPRODUCED or (not status.startswith(NOT_RUN) and isinstance(setting, str)):
        ours, why, found = _outcome(entry, parse_setting(setting), sides)
    if status != REPRODUCED:
        why, found = status.removeprefix(NOT_COMPARED) * status.startswith(NOT_COMPARED), Outcome()
    elif reading == AS_ASSUMED:
        why = "; ".join(filter(None, (f"the paper does not state {entry[UNSTATED]}", why)))
        found = replace(found, p=math.nan, power=math.nan, detectable=math.nan)
    return {
        **entry,
        "reading": reading,
        "likelier": False,
        "used_setting": setting,
        "ours": ours.value,
        "our_std": ours.std,
        "our_n": ours.n,
        **vars(found),
        "rule": RULES[entry["kind"]].called + ", across networks" * (entry.get(ACROSS) == ACROSS_NETWORKS),
        "why": why,
    }


def _outcome(
    entry: Mapping[str, Any], setting: Mapping[str, str | float], sides: _Sides
) -> tuple[Estimate, str, Outcome]:
    """Return our number, the reason why it cannot be compared (empty if it can), and the outcome of the rule."""
    rule = RULES[entry["kind"]]
    try:
        rows = select(sides.parts.get(str(setting.get("statistic")), sides.measured), setting)
        if rows.empty:
            absence = explain_absence(sides.measured, setting)
            return Estimate(math.nan), f"not measured in this run: {absence}", Outcome()
        ours = estimate(rule.estimator, rows)
    except ValueError as error:
        raise InvalidInput.within(
            f"published {entry['artefact']}, {entry['row']} x {entry['column']}", error
        ) from error
    across = entry.get(ACROSS) == ACROSS_NETWORKS
    obstacle = _obstacle(rows, setting, () if across else sides.reductions, across)
    if not obstacle and not math.isfinite(ours.value):
        obstacle = "ours is not a finite number"
    if not obstacle and 0 < ours.n < len(rows):
        obstacle = f"{len(rows) - ours.n} of {len(rows)} repetitions are not finite"
    if not obstacle and rule.spread and (ours.n < 2 or not math.isfinite(ours.std)):
        obstacle = "a single repetition has no spread"
    if obstacle or math.isnan(entry["value"]):
        return ours, obstacle, Outcome()
    theirs = Estimate(entry["value"], entry["std"], 0 if math.isnan(entry["n"]) else int(entry["n"]))
    if not rule.decides(theirs, ours, 1 - LEVEL):
        return ours, f"too few repetitions ({theirs.n} published, {ours.n} ours) to detect a difference", Outcome()
    return ours, "", rule.compare(theirs, ours, entry["rounding"], 1 - LEVEL)


def _obstacle(rows: pd.DataFrame, setting: Mapping[str, Any], reductions: Sequence[Reduction], across: bool) -> str:
    """Return why rows of this setting cannot be compared with a published number, or an empty text."""
    # Re-encoding does not change the number of images.
    comparable = COMPARABLE_ORIGINS | ({"re-encoded"} if across or setting.get("block") == DATA else set())
    if other := set(rows["origin"]) - comparable:
        return f"ours is from {' and '.join(sorted(other))} data"
    statistic = str(setting.get("statistic", ""))
    found = []
    for reduction in reductions:
        if not reduction.concerns(setting):
            continue
        # A configured value is reduced if its own key is. A result is reduced if any setting is.
        if "." in statistic or statistic in LIKE_REPETITIONS:
            applies = statistic.partition("[")[0] == reduction.key
        else:
            bookkeeping = "steps" in setting and reduction.key in BOOKKEEPING
            applies = not bookkeeping and reduction.key not in LIKE_REPETITIONS
        if applies:
            found.append(reduction)
    return f"our settings differ: {'; '.join(departures(found))}" if found else ""


def _status(entry: Mapping[str, Any], missing: Collection[str]) -> str:
    """Return ``not run: data ...`` if the data of a number are unavailable, otherwise the status in the list."""
    status, setting = str(entry["status"]), parse_setting(entry["setting"])
    # Configured values need no data, and numbers across data sets use the data sets that are available.
    if entry.get(ACROSS) == ACROSS_NETWORKS and "dataset" not in setting:
        return status
    if status != REPRODUCED or not setting or "." in str(setting.get("statistic", "")):
        return status
    dataset = str(setting.get("dataset", ALL_DATA))
    absent = w.datasets_in(missing) if dataset == ALL_DATA else sorted({dataset} & set(missing))
    return f"{NOT_RUN}the data of {', '.join(map(w.dataset_label, absent))} are missing" if absent else status


def _verdict(line: Mapping[str, Any]) -> str:
    if line["status"] == MISSING:
        return "published value missing"
    if line["status"].startswith(NOT_RUN):
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
    if line["p_holm"] < LEVEL:
        return "differs"
    if line["equivalent"]:
        return "agrees"
    shown = RULES[line["kind"]].predictive and line["p"] >= LEVEL and line["power"] >= ENOUGH_POWER
    return "consistent" if shown else "no difference shown"


def differs_before(line: Mapping[str, Any]) -> bool:
    """Return whether a number differs before adjustment only."""
    return bool(line["p"] < LEVEL) and line["verdict"] in PASSED
