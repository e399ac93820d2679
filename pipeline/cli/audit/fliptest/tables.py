"""The tables of an audit: everybody who flips, and every line of the transparency reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pipeline.cli.audit.fliptest.evidence import FLIPSETS, Side


def flipsets(sides: Sequence[Side], id_name: str | None) -> pd.DataFrame:
    """One row for each person who flips: who it is, the decisions about both, and the counterpart's features.

    The counterpart's features stand under their own names in their own units, so that a row can be given to the model
    again; the audit's columns begin with ``audit_``. ``audit_counterpart_row`` is empty where a
    counterpart is no person of the file.
    """
    parts = []
    for side in sides:
        members = np.flatnonzero(side.flips.either)
        people = side.kept[members]
        person = side.found.person[members]
        columns: dict[str, Any] = {
            "audit_direction": side.way.direction,
            "audit_group": side.way.source.level,
            "audit_row": side.way.source.rows[people],
        }
        if side.way.source.ids is not None:
            columns["audit_id"] = side.way.source.ids[people]
        columns |= {
            "audit_flipset": np.where(side.flips.positive[members], *FLIPSETS),
            "audit_score": side.way.score[people],
            "audit_decision": side.flips.decision[members],
            "audit_counterpart_score": side.score_image[members],
            "audit_counterpart_decision": side.flips.decision_image[members],
            "audit_counterpart_row": pd.Series(person, dtype="Int64").mask(person < 0).array,
        }
        if side.way.target.ids is not None:
            known = dict(zip(side.way.target.rows.tolist(), side.way.target.ids.tolist(), strict=True))
            columns["audit_counterpart_id"] = [known.get(row) for row in person.tolist()]
        features = side.found.frame.iloc[members].reset_index(drop=True)
        parts.append(pd.concat([pd.DataFrame(columns, index=range(len(members))), features], axis=1))
    return pd.concat(parts, ignore_index=True)


def transparency(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Every line of every report, those of the JSON, in the order of the ranks."""
    return pd.DataFrame(
        [
            {
                "direction": found["direction"],
                "source": found["source"],
                "target": found["target"],
                "flipset": name,
                "members": found["flipsets"][name]["size"],
                **line,
            }
            for found in results
            for name in FLIPSETS
            for line in found["transparency"][name]
        ]
    )
