"""The most unfair examples of a loss-ratio audit: as a table of whole points, for the JSON, and as told to a reader."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pipeline.cli.audit.loss_ratio.evidence import Evidence
from pipeline.cli.numbers import factor
from pipeline.cli.result import Column, Row, Table
from pipeline.cli.table import Rows
from pipeline.cli.units import Units
from pipeline.types import Array

CHANGES = 4
"""How many changed features an example names in the terminal."""
NEGLIGIBLE = 0.01
"""A feature that moved by less than this share of the largest move is not named."""
VERSIONS = ("original", "comparable", "possible")
"""Of an example: as it is, where the attack ended, and the nearest person who could exist."""
SHOWN_EXAMPLES = 5


def told(entries: Sequence[Mapping[str, Any]], classes: int) -> Table:
    """The losses and probabilities of each example; below them its groups and the features that moved most."""
    of = "1" if classes == 2 else "label"
    heads = (
        "row", "label", "own loss", "comparable loss", "ratio", "possible person's loss", f"own P({of})",
        f"comparable P({of})",
    )  # fmt: skip
    shorter = {
        "comparable loss": "comparable",
        f"comparable P({of})": "comparable",
        "possible person's loss": "possible",
    }
    columns = tuple(Column(head, shorter.get(head)) for head in heads)
    rows = []
    for one in entries:
        groups = [f"{name.partition('=')[0]} {group}" for name, group in one["sensitive"].items()]
        moves = [f"{move['feature']} {move['original']:.4g} -> {move['comparable']:.4g}" for move in one["changes"]]
        cells = (
            f"{one['row']}", f"{one['label']}", f"{one['original_loss']:.3g}", f"{one['comparable_loss']:.3g}",
            factor(one["loss_ratio"]), f"{one['possible_loss']:.3g}", f"{one['original_probability']:.3f}",
            f"{one['comparable_probability']:.3f}",
        )  # fmt: skip
        rows.append(Row(cells, "; ".join([*groups, *moves])))
    return Table(columns, tuple(rows), SHOWN_EXAMPLES, file="examples.csv", notes="groups and largest changes")


def examples_of(
    evidence: Evidence, some: Rows, row_numbers: Array, units: Units, count: int
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """The rows of the ``count`` largest finite ratios: for the JSON with what changed most, and as a table.

    The table has three lines for each: ``original``; ``comparable``, the point at which the attack ended; ``possible``,
    the nearest person who could exist.
    The features stand under their own names in their own units, so that a line can be given to the model again; the
    audit's columns begin with ``audit_``.
    """
    order = np.argsort(-np.nan_to_num(evidence.ratio, nan=-np.inf), kind="stable")
    worst = order[: min(count, int(np.isfinite(evidence.ratio).sum()))]
    two = len(some.label_levels) == 2
    loss = {version: getattr(evidence, f"{version}_loss")[worst] for version in VERSIONS}
    points = {version: getattr(evidence, version)[worst] for version in VERSIONS}
    none = np.full(len(worst), np.nan)
    distance = {"original": 0.0, "comparable": evidence.fair_distance[worst], "possible": none}
    p = {version: probability(own, some.label[worst], two) for version, own in loss.items()}
    groups = {name: np.array(some.levels[name])[group[worst]].tolist() for name, group in some.sensitive.items()}
    parts = [
        pd.DataFrame(
            {
                "audit_rank": np.arange(len(worst)) + 1,
                "audit_row": row_numbers[worst],
                "audit_version": version,
                "audit_loss_ratio": evidence.ratio[worst],
                "audit_fair_distance": distance[version],
                "audit_loss": loss[version],
                f"audit_probability_of_{'1' if two else 'label'}": p[version],
                "audit_label": some.label[worst],
                **{f"audit_{name}": values for name, values in groups.items()},
            }
        ).join(pd.DataFrame(points[version], columns=list(some.names)))
        for version in loss
    ]
    moved = np.abs(units.inward(points["comparable"]) - units.inward(points["original"]))
    entries = [
        {
            "row": int(row_numbers[i]),
            "label": int(some.label[i]),
            "sensitive": {name: values[k] for name, values in groups.items()},
            **{"loss_ratio": float(evidence.ratio[i]), "fair_distance": float(evidence.fair_distance[i])},
            **{f"{version}_loss": float(values[k]) for version, values in loss.items()},
            **{f"{version}_probability": float(values[k]) for version, values in p.items()},
            "changes": [
                {"feature": some.names[j], **{version: float(values[k, j]) for version, values in points.items()}}
                for j in np.argsort(-moved[k], kind="stable")[:CHANGES]
                if moved[k, j] > NEGLIGIBLE * moved[k].max()
            ],
        }
        for k, i in enumerate(worst)
    ]
    return entries, pd.concat(parts).sort_values("audit_rank", kind="stable", ignore_index=True)


def probability(loss: Array, label: Array, two: bool) -> Array:
    """From the cross-entropy l = -log P(label | x): P(1 | x) of ``two`` classes, of more P(label | x)."""
    return np.where((label == 1) | (not two), np.exp(-loss), -np.expm1(-loss))
