"""How many published numbers have each verdict: every number once, however often the paper prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report.comparison import AS_LIKELY, VERDICTS
from pipeline.report.settings import parse_setting

# Of the verdicts on one number in several places (adjusted with other numbers there), the gravest one counts.
GRAVEST_FIRST = ("differs", "no difference shown", "agrees", "not comparable", "published value lost", "not run")

PARTS = ("results", "likely", "constants")
"""Measured results in the setting that is stated (or assumed), in the likelier one, and stated settings."""


def tallies(compared: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The :func:`tally` of each of ``PARTS``."""
    constant = compared["kind"] == "constant"
    likely = compared["reading"] == AS_LIKELY
    parts = {"results": ~constant & ~likely, "likely": likely, "constants": constant & ~likely}
    return {name: tally(compared[parts[name]]) for name in PARTS}


def tally(lines: pd.DataFrame) -> dict[str, Any]:
    """``lines``; distinct ``numbers``; ``verdicts``: how many numbers have each; ``repetitions``: fewest and most of
    ours in a test; ``likelier``: numbers without a difference shown that another setting more likely made.

    Two lines are one number where value and setting are the same.
    """
    verdicts: dict[Any, str] = {}
    likelier = set()
    for line in lines.to_dict("records"):
        key = _key(line)
        verdicts[key] = min(verdicts.get(key, line["verdict"]), line["verdict"], key=GRAVEST_FIRST.index)
        if line["likelier"]:
            likelier.add(key)
    tested = lines.loc[lines["p_holm"].notna(), "our_n"]
    found = list(verdicts.values())
    return {
        "lines": len(lines),
        "numbers": len(verdicts),
        "verdicts": {verdict: found.count(verdict) for verdict in VERDICTS},
        "repetitions": [int(tested.min()), int(tested.max())] if len(tested) else [],
        "likelier": sum(verdicts[key] == "no difference shown" for key in likelier),
    }


def words(counted: Mapping[str, Any]) -> str:
    """``54 numbers (82 lines): 46 of 52 tested show no difference, 6 differ, 2 not comparable``."""
    verdicts = counted["verdicts"]
    tested = verdicts["no difference shown"] + verdicts["differs"]
    # Readings off a figure agree or differ without a test; they are counted with what was compared.
    compared = tested + verdicts["agrees"]
    parts = []
    if verdicts["agrees"]:
        parts.append(f"{verdicts['agrees']} of {compared:,} agree")
    if verdicts["no difference shown"]:
        hint = f" ({counted['likelier']} of them more likely made otherwise)" if counted["likelier"] else ""
        parts.append(f"{verdicts['no difference shown']} of {compared:,} show no difference{hint}")
    if compared:
        parts.append(f"{verdicts['differs']} differ{'s' * (verdicts['differs'] == 1)}")
    for verdict, text in (
        ("not comparable", "not comparable"),
        ("not run", "not run"),
        ("published value lost", "published as a picture only, or lost"),
    ):
        if verdicts[verdict]:
            parts.append(f"{verdicts[verdict]} {text}")
    size = f"{counted['numbers']:,} number{'s' * (counted['numbers'] != 1)}"
    if counted["lines"] != counted["numbers"]:
        size += f" in {counted['lines']:,} places"
    return f"{size}: {', '.join(parts)}" if parts else "none"


def repetitions(counted: Mapping[str, Any]) -> str:
    """``tests with 4 to 10 repetitions of ours``; nothing where there was no test."""
    if not counted["repetitions"]:
        return ""
    fewest, most = counted["repetitions"]
    return f"tests with {fewest:,}{'' if fewest == most else f' to {most:,}'} repetitions of ours"


def _key(line: Mapping[str, Any]) -> Any:
    setting = parse_setting(line["used_setting"])
    if not setting or line["value"] != line["value"]:
        return line["artefact"], line["row"], line["column"]
    return frozenset(setting.items()), line["value"]
