"""The comparison with the published numbers, as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pipeline.report.comparison import LEVEL
from pipeline.report.numbers import DASH, Estimate, number, p_value, plain, spread
from pipeline.report.stamp import Stamp
from pipeline.report.table import Cell, Column, Row, Table

RULES = (
    "Mean \u00b1 standard deviation (repetitions); k of n for proportions. Means: Welch's test, two-sided. "
    "Proportions: Fisher's exact test. p-values are adjusted by Holm's method within each published table or figure; a "
    f"number differs below {LEVEL:g}. Constants: equality after rounding. Readings: within the reading error."
)


def printed(line: Mapping[str, Any], side: str) -> str:
    """``published`` or ``ours`` of one compared line as text: mean with spread, k of n, or the number alone."""
    theirs = side == "published"
    value, std, n = (line[k] for k in (("value", "std", "n") if theirs else ("ours", "our_std", "our_n")))
    if not np.isfinite(value):
        return DASH
    if line["kind"] == "proportion":
        return f"{round(value * n):,} of {int(n):,}"
    if line["kind"] == "mean":
        # As many decimals as were printed; three where the printed number is lost.
        decimals = max(0, round(-math.log10(2 * line["rounding"]))) if line["rounding"] == line["rounding"] else 3
        return f"{spread(Estimate(value, std, int(n)), decimals)} ({int(n)})"
    return plain(value) if line["kind"] == "constant" or theirs else number(value, 2)


def lines(compared: pd.DataFrame) -> list[dict[str, str]]:
    """Each compared number as texts: what it is, both sides, verdict, setting, and why or what is known about it."""
    found = []
    for line in compared.to_dict("records"):
        stated = line["reading"] == "as stated"
        note = line["note"] if isinstance(line["note"], str) and stated else ""
        reason = line["status"].removeprefix("not run: ") if line["verdict"] == "not run" else line["why"]
        found.append(
            {
                "artefact": artefact_name(line["artefact"]),
                "row": line["row"],
                "number": line["column"] if stated else f"{line['column']}, as likely made",
                "published": printed(line, "published"),
                "ours": printed(line, "ours"),
                "p": p_value(line["p_holm"]) if np.isfinite(line["p_holm"]) else "",
                "verdict": line["verdict"],
                "rule": line["rule"] if line["verdict"] in ("agrees", "differs") else "",
                "setting": _words(line["used_setting"]),
                "by": line["by"] if isinstance(line["by"], str) else "",
                "source": line["source"],
                "why": " ".join(text for text in (_sentence(reason), note) if text),
                "reading": line["reading"],
                "kind": line["kind"],
            }
        )
    return found


def as_table(compared: pd.DataFrame, stamp: Stamp, title: str) -> Table:
    """The comparison as a table: one line for each published number, and one more for a likelier setting."""
    columns = {
        "published": "published",
        "ours": "ours",
        "p": "p, adjusted",
        "verdict": "verdict",
        "why": "why, and notes",
        "rule": "rule",
        "setting": "setting of ours",
        "by": "shown in",
        "source": "source",
    }
    in_csv_alone = ("rule", "setting", "by", "source")
    rows = []
    for line, exact in zip(lines(compared), compared.to_dict("records"), strict=True):
        cells: dict[str, Cell] = dict(line)
        for side, names in (("published", ("value", "std", "n")), ("ours", ("ours", "our_std", "our_n"))):
            value, std, n = (exact[name] for name in names)
            cells[side] = Estimate(value, std, int(n) if n == n else 0, text=line[side])
        rows.append(Row((line["artefact"], line["row"], line["number"]), tuple(cells[key] for key in columns)))
    return Table(
        title=title,
        stub=("Artefact", "Row", "Number"),
        columns=tuple(Column(name, show="text", printed=key not in in_csv_alone) for key, name in columns.items()),
        rows=tuple(rows),
        stamp=stamp,
        notes=(RULES,),
    )


def artefact_name(name: str) -> str:
    """``table_1`` -> ``Table 1``."""
    return name.replace("_", " ").capitalize()


def _words(setting: Any) -> str:
    """``statistic=T_n; steps=500`` -> ``T_n, steps 500``."""
    if not isinstance(setting, str):
        return ""
    parts = (part.strip().partition("=") for part in setting.split(";"))
    return ", ".join(value if key == "statistic" else f"{key.replace('_', ' ')} {value}" for key, _, value in parts)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
