"""The rows that the model treats worst, each beside the comparable point that it treats worse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pipeline.cli.audit.loss_ratio.evidence import Evidence
from pipeline.cli.columns import Rows
from pipeline.cli.units import Units
from pipeline.types import Array

CHANGES = 4
"""How many changed features an example names in the terminal."""
NEGLIGIBLE = 0.01
"""A feature that moved by less than this share of the largest move is not named."""


def worst(evidence: Evidence, count: int) -> Array:
    """Positions of the ``count`` largest finite loss ratios, the largest first; ties in the order of the rows."""
    order = np.argsort(-np.nan_to_num(evidence.ratio, nan=-np.inf), kind="stable")
    return order[: min(count, int(np.isfinite(evidence.ratio).sum()))]


def table(evidence: Evidence, rows: Rows, row_numbers: Array, count: int) -> pd.DataFrame:
    """Two lines for each example: ``original``, and below it ``comparable``, the point at which the attack ended.

    The features stand under their own names in their own units, so that a line can be given to the model again; the
    audit's columns begin with ``audit_``.
    """
    chosen = np.repeat(worst(evidence, count), 2)
    comparable = np.arange(len(chosen)) % 2 == 1
    loss = np.where(comparable, evidence.comparable_loss[chosen], evidence.original_loss[chosen])
    columns: dict[str, Any] = {
        "audit_rank": np.arange(len(chosen)) // 2 + 1,
        "audit_row": row_numbers[chosen],
        "audit_version": np.where(comparable, "comparable", "original"),
        "audit_loss_ratio": evidence.ratio[chosen],
        "audit_fair_distance": np.where(comparable, evidence.fair_distance[chosen], 0.0),
        "audit_loss": loss,
        "audit_probability_of_1": probability_of_1(loss, rows.label[chosen]),
        "audit_label": rows.label[chosen],
    }
    for name, group in rows.sensitive.items():
        columns[f"audit_{name}"] = np.array(rows.levels[name])[group[chosen]]
    points = np.where(comparable[:, None], evidence.comparable[chosen], evidence.original[chosen])
    features = pd.DataFrame(points, columns=list(rows.names))
    return pd.concat([pd.DataFrame(columns), features], axis=1)


def entries(evidence: Evidence, rows: Rows, row_numbers: Array, units: Units, count: int) -> list[dict[str, Any]]:
    """The examples for the JSON document: losses and probabilities of both versions, and what changed most."""
    before = probability_of_1(evidence.original_loss, rows.label)
    after = probability_of_1(evidence.comparable_loss, rows.label)
    numbers = {
        "loss_ratio": evidence.ratio,
        "fair_distance": evidence.fair_distance,
        "original_loss": evidence.original_loss,
        "comparable_loss": evidence.comparable_loss,
        "original_probability": before,
        "comparable_probability": after,
    }
    return [
        {
            "row": int(row_numbers[i]),
            "label": int(rows.label[i]),
            "sensitive": {name: rows.levels[name][group[i]] for name, group in rows.sensitive.items()},
            **{name: float(values[i]) for name, values in numbers.items()},
            "changes": _changes(evidence, units, rows.names, i),
        }
        for i in worst(evidence, count)
    ]


def probability_of_1(loss: Array, label: Array) -> Array:
    """P(y = 1 | x) from the cross-entropy l = -log P(label | x)."""
    return np.where(label == 1, np.exp(-loss), -np.expm1(-loss))


def _changes(evidence: Evidence, units: Units, names: tuple[str, ...], position: int) -> list[dict[str, Any]]:
    """The features of one row that moved most, in the units of the audit, with their values before and after."""
    before, after = evidence.original[position], evidence.comparable[position]
    moved = np.abs(units.inward(after) - units.inward(before))
    order = np.argsort(-moved, kind="stable")[:CHANGES]
    return [
        {"feature": names[j], "original": float(before[j]), "comparable": float(after[j])}
        for j in order
        if moved[j] > NEGLIGIBLE * moved.max()
    ]
