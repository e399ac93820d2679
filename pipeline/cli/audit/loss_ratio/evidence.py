"""The measurement: the fair metric, the attack on every audited row, and the tests of the ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from pipeline.attacks.autograd import CPU_BLOCK_ROWS, attack
from pipeline.attacks.gradient_flow import step_schedule
from pipeline.audits.loss_ratio.ratio_tests import (
    RatioTest,
    error_rate_ratio_test,
    loss_ratio_test,
    loss_ratios,
    misclassified,
)
from pipeline.cli.audit.loss_ratio import Settings
from pipeline.cli.progress import followed
from pipeline.cli.table import Rows
from pipeline.cli.units import Units
from pipeline.fair_metric import FairMetric, from_directions, learn
from pipeline.types import Array

RECORDED = 30
"""At how many step numbers, at most, the course of T_n is recorded."""


@dataclass(frozen=True)
class Equated:
    """A fair metric, and where its directions come from.

    ``names`` (m) say where each direction comes from, ``loadings`` (m, d) are the directions scaled to length 1, in the
    units of the audit. ``separation[name]`` is the area under the ROC curve of telling the attribute's two groups apart
    along its direction: near .5 the direction says little about the attribute.
    """

    metric: FairMetric
    names: tuple[str, ...]
    loadings: Array
    separation: Mapping[str, float]


def learned(rows: Rows, units: Units) -> Equated:
    """The metric that ignores what tells the groups of the sensitive attributes apart on these rows."""
    from sklearn.metrics import roc_auc_score

    if len(rows.sensitive_inputs) == len(rows.names):
        raise ValueError("expected features beside the sensitive columns to learn the fair metric from, found none")
    points = units.inward(rows.features)
    metric = learn(points, rows.sensitive, rows.sensitive_inputs)
    assert metric.directions is not None
    separation = {
        name: float(roc_auc_score(group, points @ direction))
        for (name, group), direction in zip(rows.sensitive.items(), metric.directions, strict=False)
    }
    names = (*rows.sensitive, *(f"input {rows.names[position]}" for position in rows.sensitive_inputs))
    return Equated(metric, names, _unit(metric.directions), separation)


def directions_in(path: Path, d: int) -> Array:
    """The numbers in a ``.npy`` file."""
    try:
        return np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {path}: --directions takes a .npy file of shape (number, {d})") from error
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise ValueError(f"{path} does not hold an array of numbers: write it with numpy.save") from error


def given_directions(directions: Array, source: str, names: tuple[str, ...], units: Units) -> Equated:
    """The metric that ignores displacements along ``directions`` (m, d), in the columns' own units."""
    d = len(names)
    directions = directions[None, :] if directions.ndim == 1 else directions
    if directions.ndim != 2 or directions.shape[1] != d or not len(directions):
        raise ValueError(
            f"expected --directions of shape (number, {d}), one entry for each feature in the order "
            f"{', '.join(names)}; found shape {directions.shape} in {source}"
        )
    # A displacement by v in the columns' units is one by v / scale in those of the audit.
    try:
        metric = from_directions(directions / units.scale)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    assert metric.directions is not None
    return Equated(metric, tuple(f"direction {i}" for i in range(len(directions))), _unit(metric.directions), {})


def _unit(directions: Array) -> Array:
    scaled = directions / np.abs(directions).max(axis=1, keepdims=True)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


@dataclass(frozen=True)
class Evidence:
    """What was measured of n rows.

    ``original`` and ``comparable`` (n, d) are the points before and after the attack in the columns' own units,
    ``original_loss``, ``comparable_loss``, ``ratio`` and ``fair_distance`` (n,) belong to them (``ratio`` is NaN where
    it does not exist). ``course`` and ``error_course`` are the tests at each of ``steps``, one leading axis; the last
    entry is the verdict. Of more than two classes the error is known at the last step alone.
    """

    steps: tuple[int, ...]
    course: RatioTest
    error_course: RatioTest
    original: Array
    comparable: Array
    original_loss: Array
    comparable_loss: Array
    ratio: Array
    fair_distance: Array


def gather(
    scores: Callable[[torch.Tensor], torch.Tensor],
    features: Array,
    label: Array,
    metric: FairMetric,
    units: Units,
    asked: Settings,
    device: str = "cpu",
    classes: int = 2,
) -> Evidence:
    """Attack rows ``features`` (n, d) of ``label`` (n,) in the units of the audit and test both ratios on the way.

    ``scores`` maps inputs in the columns' own units to the (n, K) logits, K being ``classes``.
    Raises ValueError for an unstable step size and where no two rows have a finite ratio.
    """
    record = recorded_steps(asked.steps)
    points = units.inward(features)
    blocks = -(-len(points) // CPU_BLOCK_ROWS) if device == "cpu" else 1
    with followed(scores, blocks * (asked.steps + 1), "following the gradient") as watched:
        flow = attack(
            lambda z: watched(units.network_input(z)),
            points,
            label,
            metric,
            asked.regularization,
            step_schedule("constant", asked.step_size, 0.0, asked.steps),
            record,
            device=device,
            dtype=asked.dtype,
        )
    ratios = loss_ratios(flow.original_loss, flow.losses[-1])
    finite = int(np.isfinite(ratios.values).sum())
    if finite < 2:
        raise ValueError(
            f"only {finite} of {len(points)} rows have a finite loss before and after the attack: expected at least 2. "
            "Try a smaller --step-size, and a model that returns logits rather than probabilities"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # points that ran away are counted, and their distance is NaN
        fair_distance = np.sqrt(metric.squared_distance(flow.x, points))
    comparable = units.outward(np.asarray(flow.x, dtype=np.float64))
    error, errors = misclassified(flow.original_loss, label), misclassified(flow.losses, label)
    if classes > 2:
        # Of more classes an error is another's larger score, not a loss beyond log 2.
        with torch.no_grad():
            both = [torch.tensor(x, dtype=getattr(torch, asked.dtype), device=device) for x in (features, comparable)]
            found = [
                torch.cat([scores(rows).argmax(1) for rows in x.split(CPU_BLOCK_ROWS)]).cpu().numpy() for x in both
            ]
        error, last = ((predicted != label).astype(float) for predicted in found)
        errors = np.full_like(errors, np.nan)
        errors[-1] = np.where(np.isfinite(ratios.values), last, np.nan)
    return Evidence(
        steps=flow.record,
        course=loss_ratio_test(flow.original_loss, flow.losses, asked.delta, asked.alpha),
        error_course=error_rate_ratio_test(error, errors, asked.delta, asked.alpha),
        original=features,
        comparable=comparable,
        original_loss=flow.original_loss,
        comparable_loss=flow.losses[-1],
        ratio=ratios.values,
        fair_distance=fair_distance,
    )


def recorded_steps(steps: int) -> tuple[int, ...]:
    """At most RECORDED step numbers from 1 to ``steps``, evenly spread on a logarithmic scale."""
    return tuple(sorted({round(step) for step in np.geomspace(1, steps, RECORDED)}))
