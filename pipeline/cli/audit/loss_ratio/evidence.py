"""The measurement itself: attack every audited row, then test the ratios."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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
from pipeline.cli.progress import followed
from pipeline.cli.units import Units
from pipeline.fair_metric import FairMetric
from pipeline.types import Array

RECORDED = 30
"""At how many step numbers, at most, the course of T_n is recorded."""


@dataclass(frozen=True)
class Settings:
    """The parameters of attack and test."""

    regularization: float
    step_size: float
    steps: int
    delta: float
    alpha: float
    device: str
    dtype: Literal["float32", "float64"]


@dataclass(frozen=True)
class Evidence:
    """What was measured of n rows.

    ``original`` and ``comparable`` (n, d) are the points before and after the attack in the columns' own units,
    ``original_loss``, ``comparable_loss``, ``ratio`` and ``fair_distance`` (n,) belong to them (``ratio`` is NaN where
    it does not exist). ``course`` and ``error_course`` are the tests at each of ``steps``, one leading axis; the last
    entry is the verdict.
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
    settings: Settings,
) -> Evidence:
    """Attack rows ``features`` (n, d) of ``label`` (n,) in the units of the audit and test both ratios on the way.

    ``scores`` maps inputs in the columns' own units to the (n, 2) logits. Raises ValueError for an unstable step size
    and where no two rows have a finite ratio.
    """
    record = recorded_steps(settings.steps)
    points = units.inward(features)
    blocks = -(-len(points) // CPU_BLOCK_ROWS) if settings.device == "cpu" else 1
    with followed(scores, blocks * (settings.steps + 1), "following the gradient") as watched:
        flow = attack(
            lambda z: watched(units.network_input(z)),
            points,
            label,
            metric,
            settings.regularization,
            step_schedule("constant", settings.step_size, 0.0, settings.steps),
            record,
            device=settings.device,
            dtype=settings.dtype,
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
    error, errors = misclassified(flow.original_loss, label), misclassified(flow.losses, label)
    return Evidence(
        steps=flow.record,
        course=loss_ratio_test(flow.original_loss, flow.losses, settings.delta, settings.alpha),
        error_course=error_rate_ratio_test(error, errors, settings.delta, settings.alpha),
        original=features,
        comparable=units.outward(np.asarray(flow.x, dtype=np.float64)),
        original_loss=flow.original_loss,
        comparable_loss=flow.losses[-1],
        ratio=ratios.values,
        fair_distance=fair_distance,
    )


def recorded_steps(steps: int) -> tuple[int, ...]:
    """At most RECORDED step numbers from 1 to ``steps``, evenly spread on a logarithmic scale."""
    return tuple(sorted({round(step) for step in np.geomspace(1, steps, RECORDED)}))
