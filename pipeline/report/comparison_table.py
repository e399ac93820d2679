"""The comparison with the published numbers as a table and as a tally, which counts repeated numbers once."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import DASH, interval, number, p_value, parameter, sentence, spread
from fairness_audits.results.table import Column
from pipeline.report.comparison import AS_ASSUMED, AS_LIKELY, GIVEN, LEVEL, NOT_RUN, PASSED, VERDICTS, differs_before
from pipeline.report.rules import CLOSE, ENOUGH_POWER, MEAN_MARGIN, RUN_SHIFT, SHARE_MARGIN, SHARE_SHIFT
from pipeline.report.selection import parse_setting
from pipeline.report.stamp import Stamp
from pipeline.report.table import DIFFERS, UNTESTED, StampedTable, tabulated

Line = Mapping[str, Any]
"""A line of the comparison."""
SIDES = {"published": ("value", "std", "n"), "ours": ("ours", "our_std", "our_n")}
MARKED = (AS_ASSUMED, AS_LIKELY)
# A number printed in several places can have several verdicts, since each place has its own adjustment. The tally
# counts the gravest.
GRAVEST_FIRST = (*reversed(GIVEN), "not comparable", "published value missing", "not run")

RULES = (
    "Mean \u00b1 standard deviation (number of repetitions); k of n for shares. Tests: Welch's two-sided test for "
    "means, the F test for variances, and a predictive check for a single number (Student's t: could it be one more of "
    "our repetitions?) and for a share (beta-binomial: could it be a count under our rate?). Adjusted p: Holm's method "
    f"within each published table or figure. Differs: the adjusted p is below {LEVEL:g}; if only the unadjusted p is, "
    f"the notes say so. Agrees: the {100 * (1 - 2 * LEVEL):g} % interval of the difference lies within "
    f"{MEAN_MARGIN:g} published standard deviations, by two one-sided tests, and the means differ by at most {CLOSE:g} "
    f"of them (shares: the interval lies within {100 * SHARE_MARGIN:g} % of the published share of the rarer outcome). "
    "Consistent: a predictive check does not reject the published number, even before adjustment, and has power of at "
    f"least {ENOUGH_POWER:g}. No difference shown: none of these; this does not prove agreement. "
    "Power: for means, the probability that equal means agree; for shares, that the check detects a rate "
    f"that is {SHARE_SHIFT:g} away; for single numbers, that it detects a number {RUN_SHIFT:g} of our standard "
    "deviations away. Detectable: the smallest difference that a predictive check detects with power "
    f"{ENOUGH_POWER:g}. Difference: ours minus published, "
    f"with an unadjusted {100 * (1 - LEVEL):g} % interval (means: Welch; single numbers: prediction "
    "interval; shares: Newcombe). "
    "Constants agree if they are equal after rounding, readings from a figure if they are within the reading error."
)
DEPENDENCE = (
    "The paper's repetitions and ours are random splits of one data set. The splits share rows, but tests and "
    "intervals treat them as independent. The results therefore hold for new splits of these data, not for new data."
)
LIKELY = (
    "Likely setting: a setting that we chose because its result is close to the published number. It may explain the "
    "number, but it is not independent evidence for it."
)


def beside(found: pd.DataFrame, artefact: str) -> dict[tuple[str, str], tuple[Estimate, str]]:
    """Return the published numbers of a table with their marks, for ``StampedTable.published``."""
    marks = {"differs": DIFFERS, "not comparable": UNTESTED}
    own = found[(found["artefact"] == artefact) & (found["reading"] != AS_LIKELY) & found["value"].notna()]
    return {
        (line["row"], line["column"]): (Estimate(line["value"], line["std"]), marks.get(line["verdict"], ""))
        for line in own.to_dict("records")
    }


def read_off(found: pd.DataFrame, artefact: str) -> tuple[str, ...]:
    """Return a note with the numbers read off the published figure and ours, or no note if there are none."""
    # A mean with its spread cannot be read off a figure.
    read = ~found["kind"].isin(["constant", "mean"])
    own = found[(found["artefact"] == artefact) & read & (found["reading"] != AS_LIKELY)]
    told = [
        f"{one['row']}, {one['column']}: {printed(one, 'published')} (ours: {printed(one, 'ours')}, {one['verdict']})"
        for one in own.dropna(subset=["value", "ours"]).to_dict("records")
    ]
    return (f"Values read off the published figure: {'; '.join(told)}.",) if told else ()


def printed(line: Line, side: str) -> str:
    """Format ``published`` or ``ours`` of a line: mean with spread, k of n, or the number alone."""
    theirs = side == "published"
    value, std, n = (line[key] for key in SIDES[side])
    if not np.isfinite(value):
        return DASH
    if line["kind"] == "proportion":
        return f"{round(value * n):,} of {int(n):,}"
    if line["kind"] == "mean" or (line["kind"] == "run" and not theirs):
        return f"{spread(Estimate(value, std, int(n)), decimals_of(line))} ({int(n)})"
    if line["kind"] == "run":
        return number(value, decimals_of(line))
    return parameter(value) if line["kind"] == "constant" or theirs else number(value, 2)


def as_table(compared: pd.DataFrame, stamp: Stamp, notes: Sequence[str] = ()) -> StampedTable:
    """Return the comparison as a table: one line per published number, and one per likelier setting.

    The study's own ``notes`` follow the notes on the rules.
    """

    def told(key: str, text: Callable[[float], str] = p_value) -> Callable[[Line], Estimate]:
        return lambda line: Estimate(line[key], text=text(line[key]))

    def kept(key: str) -> Callable[[Line], str]:
        return lambda line: line[key] if isinstance(line[key], str) else ""

    return tabulated(
        title="Published numbers and ours.",
        stub=("Artefact", "Row", "Number"),
        columns=(
            Column("published", cell=lambda line: _side(line, "published")),
            Column("ours", cell=lambda line: _side(line, "ours")),
            Column("difference", cell=_difference),
            Column("p", cell=told("p")),
            Column("adjusted p", cell=told("p_holm")),
            Column("power", cell=told("power", lambda power: number(power, 2) if np.isfinite(power) else "")),
            Column("detectable", cell=_detectable),
            Column("verdict", "text", cell=kept("verdict")),
            Column("notes", "text", cell=_why),
            Column("rule", printed=False, cell=lambda line: line["rule"] if line["verdict"] in GIVEN else ""),
            Column("our setting", printed=False, cell=lambda line: _words(line["used_setting"])),
            Column("shown in", printed=False, cell=kept("by")),
            Column("source", printed=False, cell=kept("source")),
        ),
        rows=[(_labels(line), line) for line in compared.to_dict("records")],
        stamp=stamp,
        notes=(RULES, *readings_notes(compared), *notes),
    )


def _labels(line: Line) -> tuple[str, str, str]:
    reading = f", {line['reading']}" if line["reading"] in MARKED else ""
    return line["artefact"].replace("_", " ").capitalize(), line["row"], line["column"] + reading


def _side(line: Line, side: str) -> Estimate:
    value, std, n = (line[key] for key in SIDES[side])
    return Estimate(value, std, int(n) if n == n else 0, text=printed(line, side))


def _difference(line: Line) -> Estimate:
    """Format ours minus published, ``0.036 [\u22120.021, 0.093]``, with the decimals of the published number."""
    found = Estimate(line["difference"], low=line["low"], high=line["high"])
    decimals = decimals_of(line) if line["kind"] in ("mean", "run") else 2
    text = f"{number(found.value, decimals)} {interval(found, decimals)}" if np.isfinite(found.value) else ""
    return replace(found, text=text)


def _detectable(line: Line) -> Estimate:
    """Format the smallest difference that a check which does not reject would have detected: ``\u00b1145``."""
    shown = line["verdict"] in PASSED and np.isfinite(line["detectable"])
    decimals = decimals_of(line) if line["kind"] == "run" else 2
    return Estimate(line["detectable"], text=f"\u00b1{number(line['detectable'], decimals)}" if shown else "")


def _why(line: Line) -> str:
    """Return why there is no verdict, the likelier setting of ours, and the note on the number."""
    likely = line["reading"] == AS_LIKELY
    reason = line["status"].removeprefix(NOT_RUN) if line["verdict"] == "not run" else line["why"]
    fits = line["likelier"] and line["verdict"] in PASSED
    parts = (
        f"{sentence(reason)}." if reason else "",
        "Differs before adjustment." if differs_before(line) else "",
        "The next line has a setting that more likely produced the published number." if fits else "",
        f"Setting: {_words(line['used_setting'])}." if likely else "",
        line["note"] if isinstance(line["note"], str) and not likely else "",
    )
    return " ".join(filter(None, parts))


def verdicts(compared: pd.DataFrame) -> pd.DataFrame:
    """Return each published number with ours and the verdict, in the columns that identify a change."""
    numbers = {"value": "published", "std": "published_std", "n": "published_n"}
    columns = ["artefact", "row", "column", "of", "reading", *numbers, "ours", "our_std", "our_n"]
    of = np.where(compared["kind"] == "constant", "setting", "result")
    before = [differs_before(line) for line in compared.to_dict("records")]
    found = compared.assign(of=of, differs_before=np.where(before, "differs before adjustment", ""))
    return found[[*columns, "p", "p_holm", "power", "verdict", "differs_before"]].rename(columns=numbers)


def readings_notes(compared: pd.DataFrame) -> tuple[str, ...]:
    """Return the notes on p-values and on likelier settings, if the comparison has any."""
    tested = compared["kind"].isin(["mean", "run"]) & np.isfinite(compared["p"])
    of = {DEPENDENCE: tested, LIKELY: compared["reading"] == AS_LIKELY}
    return tuple(note for note, lines in of.items() if lines.any())


def decimals_of(line: Line) -> int:
    """Return the number of decimals of the published number; 3 if that number is missing."""
    return max(0, round(-math.log10(2 * line["rounding"]))) if line["rounding"] == line["rounding"] else 3


def _words(setting: Any) -> str:
    """Format a setting: ``statistic=T_n; steps=500`` -> ``T_n, steps 500``."""
    if not isinstance(setting, str):
        return ""
    parts = (part.strip().partition("=") for part in setting.split(";"))
    return ", ".join(value if key == "statistic" else f"{key.replace('_', ' ')} {value}" for key, _, value in parts)


def results(compared: pd.DataFrame) -> dict[str, Any]:
    """Return the :func:`tally` of measured results in their stated or assumed settings."""
    return tally(compared[(compared["kind"] != "constant") & (compared["reading"] != AS_LIKELY)])


def settings(compared: pd.DataFrame) -> dict[str, Any]:
    """Return the :func:`tally` of settings, such as sizes and hyperparameters, whose equality is no result."""
    return tally(compared[(compared["kind"] == "constant") & (compared["reading"] != AS_LIKELY)])


def tally(lines: pd.DataFrame) -> dict[str, Any]:
    """Count ``lines``, distinct ``numbers``, numbers by verdict (``verdicts``), numbers that differ before adjustment
    only (``before``), and numbers with no difference shown that another setting more likely made (``likelier``).

    Two lines with the same value and setting are one number.
    """
    verdicts: dict[Any, str] = {}
    likelier, before = set(), set()
    for line in lines.to_dict("records"):
        setting = parse_setting(line["used_setting"])
        # A number without a setting or a value is identified by its place.
        known = setting and line["value"] == line["value"]
        key = (frozenset(setting.items()), line["value"]) if known else (line["artefact"], line["row"], line["column"])
        verdicts[key] = min(verdicts.get(key, line["verdict"]), line["verdict"], key=GRAVEST_FIRST.index)
        if line["likelier"]:
            likelier.add(key)
        if differs_before(line):
            before.add(key)
    found = list(verdicts.values())
    return {
        "lines": len(lines),
        "numbers": len(verdicts),
        "verdicts": {verdict: found.count(verdict) for verdict in VERDICTS},
        "before": sum(verdicts[key] != "differs" for key in before),
        "likelier": sum(verdicts[key] == "no difference shown" for key in likelier),
    }


def tally_table(counted: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of a tally under the headings of the page's table."""
    verdicts = counted["verdicts"]
    compared = sum(verdicts[verdict] for verdict in GIVEN)
    return {"numbers": counted["numbers"], "compared": compared, **verdicts}


def tally_in_words(counted: Mapping[str, Any]) -> str:
    """Format a tally: ``54 numbers in 82 places. 52 compared: 46 show no difference, 6 differ. 2 not comparable``."""
    verdicts = counted["verdicts"]
    # Readings off a figure agree or differ without a test. They count as compared numbers.
    compared = sum(verdicts[verdict] for verdict in GIVEN)
    hint = f" ({counted['likelier']} of them with a likelier setting)" if counted["likelier"] else ""
    before = f" ({counted['before']} more before adjustment)" if counted["before"] else ""
    # Each verdict with its words for one number and for any other count.
    words = {
        "agrees": ("agrees", "agree"),
        "consistent": ("is consistent", "are consistent"),
        "no difference shown": (f"shows no difference{hint}", f"show no difference{hint}"),
        "differs": (f"differs{before}", f"differ{before}"),
        "not comparable": ("is not comparable", "are not comparable"),
        "not run": ("was not run", "were not run"),
        "published value missing": (
            "is missing from our copy or only in a picture",
            "are missing from our copy or only in a picture",
        ),
    }
    shown = {verdict for verdict in words if verdicts[verdict] or (verdict == "differs" and compared)}
    texts = {v: f"{verdicts[v]} {said[verdicts[v] != 1]}" for v, said in words.items() if v in shown}
    of_rule = ", ".join(texts.pop(verdict) for verdict in GIVEN if verdict in texts)
    size = f"{counted['numbers']:,} number{'s' * (counted['numbers'] != 1)}"
    if counted["lines"] != counted["numbers"]:
        size += f" in {counted['lines']:,} places"
    parts = [size, f"{compared:,} compared: {of_rule}" if compared else "", ", ".join(texts.values())]
    return ". ".join(filter(None, parts)) if counted["numbers"] else "none"
