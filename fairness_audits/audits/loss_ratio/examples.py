"""The most unfair examples: rows beside their comparable points and the nearest people who could exist."""

from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.loss_ratio.evidence import Evidence
from fairness_audits.audits.scaling import Units
from fairness_audits.inputs.encoding import Encoding
from fairness_audits.inputs.table import Rows
from fairness_audits.messages import apart
from fairness_audits.values import Array

CHANGES = 4
"""Number of changed features that an example names in the terminal."""
NEGLIGIBLE = 0.01
"""Features that moved by less than this share of the largest move are not named."""
VERSIONS = ("original", "comparable", "possible")
"""Versions of an example: the original, the end of the attack, and the nearest person who could exist."""


def examples_of(
    evidence: Evidence, some: Rows, row_numbers: Array, units: Units, encoding: Encoding, count: int
) -> pd.DataFrame:
    """Return the rows with the ``count`` largest finite ratios.

    Each row has three lines: ``original``; ``comparable``, the end of the attack; ``possible``, the nearest person who
    could exist. The columns are those of the model, in their own units, so each line can be passed to the model. The
    audit's columns begin with ``audit_``. A feature with the name of an audit column gets the suffix ``(input)``.
    """
    ratio, found = evidence.found.ratio, evidence.found
    order = np.argsort(-np.nan_to_num(ratio, nan=-np.inf), kind="stable")
    worst = order[: min(count, int(np.isfinite(ratio).sum()))]
    two = len(some.label_levels) == 2
    losses = found.original_loss, found.comparable_loss, evidence.possible_loss
    loss = dict(zip(VERSIONS, (own[worst] for own in losses), strict=True))
    points = dict(
        zip(VERSIONS, (x[worst] for x in (some.features, evidence.comparable, evidence.possible)), strict=True)
    )
    none = np.full(len(worst), np.nan)
    distance = {"original": 0.0, "comparable": evidence.fair_distance[worst], "possible": none}
    p = {version: probability(own, some.label[worst], two) for version, own in loss.items()}
    groups = {name: np.array(some.levels[name])[group[worst]].tolist() for name, group in some.sensitive.items()}
    moved = np.abs(units.inward(points["comparable"]) - units.inward(points["original"]))
    moved = np.column_stack([moved[:, list(group)].max(axis=1) for group in encoding.groups])
    inputs = {version: encoding.decoded(own) for version, own in points.items()}
    changes = []
    for k, own in enumerate(moved):
        largest = [j for j in np.argsort(-own, kind="stable")[:CHANGES] if own[j] > NEGLIGIBLE * own.max()]
        ends = [(encoding.columns[j], *(inputs[one].iloc[k, j] for one in ("original", "comparable"))) for j in largest]
        levels = [f"{name.partition('=')[0]} {values[k]}" for name, values in groups.items()]
        changes.append("; ".join([*levels, *(f"{name} {_shown(start)} -> {_shown(end)}" for name, start, end in ends)]))
    parts = []
    for version in loss:
        own = {
            "audit_rank": np.arange(len(worst)) + 1,
            "audit_row": row_numbers[worst],
            "audit_version": version,
            "audit_loss_ratio": ratio[worst],
            "audit_fair_distance": distance[version],
            "audit_loss": loss[version],
            f"audit_probability_of_{'1' if two else 'label'}": p[version],
            "audit_label": some.label[worst],
        }
        last = {"audit_changes": changes}
        named = apart([f"audit_{name}" for name in groups], {*own, *last}, "sensitive")
        columns = {**own, **dict(zip(named, groups.values(), strict=True)), **last}
        features = inputs[version].set_axis(apart(encoding.columns, columns, "input"), axis="columns")
        parts.append(pd.DataFrame(columns).join(features))
    return pd.concat(parts).sort_values("audit_rank", kind="stable", ignore_index=True)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}" if isinstance(value, float) else str(value)


def probability(loss: Array, label: Array, two: bool) -> Array:
    """Convert cross-entropies l = -log P(label | x) to P(1 | x) for ``two`` classes, otherwise to P(label | x)."""
    return np.where((label == 1) | (not two), np.exp(-loss), -np.expm1(-loss))
