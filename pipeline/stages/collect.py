"""Collect the audits of a study in one data frame of tidy rows: ``AuditResult... -> rows``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairness_audits.errors import InvalidInput
from pipeline import io
from pipeline.workflow import stage

if TYPE_CHECKING:
    import pandas as pd

    from pipeline.values import AuditResult

FIRST = (
    "study", "block", "dataset", "origin", "method", "audit", "scale", "repetition", "statistic", "value",
)  # fmt: skip


def collect(audits: Sequence[tuple[AuditResult, str, Mapping[str, Any]]], study: str, scale: str) -> pd.DataFrame:
    """Collect the tidy rows of audits, each with its block and the settings of its point in the grid.

    Settings that an audit does not have are NaN in its rows (text: missing). Raises ValueError if there are no audits.
    """
    import pandas as pd

    if not audits:
        raise InvalidInput(f"Study {study!r} has no audits to collect", option="grid", remedy="Add a block to its grid")
    frames = []
    for result, block, columns in audits:
        place = {"block": block, "dataset": result.dataset, "origin": result.origin, "method": result.method}
        # A column that the audit writes itself, such as its steps, holds the value of each row.
        given = {name: value for name, value in columns.items() if name not in result.rows}
        frames.append(result.rows.assign(**{**given, **place, "audit": result.audit, "study": study, "scale": scale}))
    collected = pd.concat(frames, ignore_index=True)
    for name in collected.columns:
        # Empty text becomes missing, as unused numbers are NaN.
        if not pd.api.types.is_numeric_dtype(collected[name]):
            collected[name] = (
                collected[name].astype(object).where(collected[name].notna() & (collected[name] != ""), None)
            )
    return collected[[*FIRST, *(name for name in collected.columns if name not in FIRST)]]


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        study={},
        scale={},
        audits={"type": json.loads, "help": "JSON list of objects with path, block and columns"},
        output={"help": "file for the rows (.parquet)"},
    )
    audits = [(io.load_audit(one["path"]), one["block"], one["columns"]) for one in options.audits]
    rows = collect(audits, options.study, options.scale)
    io.save_rows(rows, options.output)
    print(f"collected {len(rows):,} rows of {len(audits)} audits")


if __name__ == "__main__":
    main()
