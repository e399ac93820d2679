"""The role of the initial weights: sections 7.2 and 8.2 of Nanda et al. (2021), from ImageNet weights and from random
ones.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.table import Column, Row
from pipeline.report import labels as w
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.robustness_bias import stamps, study
from pipeline.report.robustness_bias.network_tables import engines
from pipeline.report.robustness_bias.sign_agreement import agreement, once
from pipeline.report.robustness_bias.study import Audited
from pipeline.report.table import StampedTable, labels


def kept_signs(one: Audited, attack: str, moment: str) -> Estimate:
    """Return the share of groups whose sigma has the same sign at a checkpoint and after the last epoch, over ``n``
    groups, even if the network had not learned at the checkpoint. NaN if there are no such groups.
    """
    tables = one.table(attack, moment, any_checkpoint=True), one.table(attack)
    sigma = np.array([table["sigma"].reindex(one.groups) for table in tables], float)
    return agreement(sigma[:, once(one.groups)])


def twins(inputs: Inputs) -> list[tuple[Audited, Audited]]:
    """Return the pairs of networks from ImageNet weights and from random weights that have the same seeds."""
    found = study.run(study.audited(inputs, study.PRETRAINED))
    random = {(one.data, one.network, one.training): one for one in found if one.pretrained is False}
    pairs = [(one, random.get((one.data, one.network, one.training))) for one in found if one.pretrained]
    return [(one, twin) for one, twin in pairs if twin is not None]


def first_bias(pair: Sequence[Audited], attack: str) -> float:
    """Return the mean |sigma| after the first epoch of one network minus that of another, over the groups that both
    have, even if the networks had not learned by then; NaN without such groups. Correctly classified points.
    """
    tables = [one.table(attack, w.FIRST, w.CORRECT, any_checkpoint=True) for one in pair]
    sigma = pd.concat([table["sigma"] for table in tables], axis=1).abs().dropna().to_numpy(float)
    return float((sigma[:, 0] - sigma[:, 1]).mean()) if len(sigma) else math.nan


@artefact(
    "Robustness bias after the first epoch and after the last, for SqueezeNet from ImageNet weights and from random "
    "weights. Training runs with the same index have the same seeds.",
)
def table_pretrained(inputs: Inputs) -> StampedTable:
    every = study.audited(inputs, study.PRETRAINED)
    found = study.run(every)
    kinds: dict[tuple[str, str], list[Audited]] = {}
    for one in found:
        weights = "ImageNet" if one.pretrained else "random"
        kinds.setdefault((w.dataset_label(one.dataset), weights), []).append(one)
    columns = (
        *labels("Data", "Initial weights"),
        Column("trainings", decimals=0, name="training runs"),
        Column("accuracy first", "spread", group="accuracy, %", decimals=1, name="first epoch"),
        Column("accuracy last", "spread", group="accuracy, %", decimals=1, name="last epoch"),
        Column("attack first", "spread", group="mean |sigma| by DeepFool", decimals=2, name="first epoch"),
        Column("attack last", "spread", group="mean |sigma| by DeepFool", decimals=2, name="last epoch"),
        Column("noise first", "spread", group="mean |sigma| by smoothing", decimals=2, name="first epoch"),
        Column("noise last", "spread", group="mean |sigma| by smoothing", decimals=2, name="last epoch"),
        Column("kept attack", "spread", group="signs kept", decimals=2, name="DeepFool"),
        Column("kept optimum", "spread", group="signs kept", decimals=2, name="Carlini-Wagner"),
    )
    rows = tuple(Row((*kind, len(ones), *_cells(ones))) for kind, ones in kinds.items())
    return StampedTable(
        title="SqueezeNet from ImageNet weights and from random weights.",
        columns=columns,
        rows=rows or (Row((f"not run at the {w.scales(inputs.scale)}", "", *[None] * 9)),),
        stamp=stamps.stamp(inputs, study.PRETRAINED),
        notes=(
            "Means over training runs, with the standard deviation. |sigma|: correctly classified points, "
            f"mean over the groups with at least {study.TOO_FEW} of them. Signs kept: share of groups whose sigma has "
            "the same sign after the first epoch and after the last, all members.",
            *_fewer(columns, rows, [len(ones) for ones in kinds.values()]),
            *_pruned(found),
            *engines(found),
            *study.not_run(every),
        ),
    )


def _cells(ones: Sequence[Audited]) -> Iterator[Estimate]:
    """Yield the cells of the training runs of one kind."""
    for moment in (w.FIRST, w.LAST):
        yield Estimate.mean(np.array([100 * one.curve.get(one.epoch(moment) or 0, math.nan) for one in ones]))
    for attack in (w.DEEPFOOL, w.SMOOTHING):
        for moment in (w.FIRST, w.LAST):
            here = [one for one in ones if one.better_than_constant(moment)]
            tables = (one.table(attack, moment, w.CORRECT, any_checkpoint=True)["sigma"].abs() for one in here)
            yield Estimate.mean(np.array([table.mean() for table in tables], float))
    for attack in (w.DEEPFOOL, w.CARLINI_WAGNER):
        yield Estimate.mean(np.array([kept_signs(one, attack, w.FIRST).value for one in ones]))


def _fewer(columns: Sequence[Column], rows: Sequence[Row], runs: Sequence[int]) -> Iterator[str]:
    """Yield a note on the cells with fewer training runs than their row, which has ``runs``."""
    found = [
        f"{row.cells[0]} from {row.cells[1]} weights, {column.group}, {column.name} ({cell.n} of {n})"
        for row, n in zip(rows, runs, strict=True)
        for column, cell in zip(columns, row.cells, strict=True)
        if isinstance(cell, Estimate) and 0 < cell.n < n
    ]
    if found:
        yield (
            "Fewer training runs (none: a dash), because the others have no group with enough points, no certified "
            "radius for most images, or an accuracy after the first epoch that is not clearly above the share of the "
            f"largest class: {'; '.join(found)}."
        )


def _pruned(found: Sequence[Audited]) -> Iterator[str]:
    """Yield a note on ImageNet weights that are 0."""
    share = max((one.facts.get("pruned", 0.0) for one in found), default=0.0)
    if share:
        yield f"{100 * share:.0f} % of the ImageNet weights are 0 (pruned), because the complete weights were missing."
