r"""How robust a group of points is, against perturbations of a size and of all sizes, and against other points.

.. math::
   \widehat{I_P}(\tau) &= \text{share of } P \text{ with length} > \tau \\
   RB(P, \tau) &= \big| \widehat{I_P}(\tau) - \widehat{I_{\bar P}}(\tau) \big| \\
   \sigma(P) &= \frac{AUC(\widehat{I_P}) - AUC(\widehat{I_{\bar P}})}{AUC(\widehat{I_{\bar P}})}, \qquad
   AUC(I) = \int_0^T I(\tau)\, d\tau

with :math:`\bar P` the points outside P, pooled. I_P is a step function, and its area is exactly the mean over P of
min(length, T): no grid of tau is needed. Where T is no less than any length, sigma is the ratio of two mean lengths,
minus 1. It is negative for a group that is closer to the boundary.

Equation (3) prints a sum over the other elements P' of the partition where :math:`\bar P` stands here. Taken literally,
the area of a sum of curves is the sum of their areas, which exceeds that of any one of them as soon as there are a few
groups: every sigma would be negative, which the published ones are not. The authors' code pools the points.

The code also sums over grids of tau, 2,000 points on [0, 2] (DeepFool) or [0, 1] (Carlini and Wagner), which gives
these areas up to the step of the grid and stops at the grid's end, as T does here; for certificates 100 points from
their smallest to their largest, which leaves out the area below the smallest. T is therefore a setting, and the
largest length where it is not set.

Source: Nanda et al. 2021, (1)-(6).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.audits.robustness_bias.lengths import Lengths
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.types import Array


def survival(lengths: Lengths, member: Array, tau: Array) -> Array:
    """I_P(tau), (t,) at each tau (t,); P are the ``member`` (n,) bool. NaN where no point of P counts."""
    own = np.sort(lengths.length[member & lengths.counts])
    if not len(own):
        return np.full(np.shape(tau), np.nan)
    return 1 - np.searchsorted(own, tau, side="right") / len(own)


def robustness_bias(lengths: Lengths, partition: Partition, level: int, tau: Array) -> Array:
    """RB(P, tau), (t,) at each tau (t,), of one level of a partition."""
    inside, outside = partition.element(level)
    return np.abs(survival(lengths, inside, tau) - survival(lengths, outside, tau))


@dataclass(frozen=True)
class ByLevel:
    """For the L levels of a partition: ``n`` points that count, the ``area`` of their curve, and ``sigma``, (L,) each.

    NaN where no point of the level, or none outside it, counts; sigma also where the area outside is 0.
    """

    n: Array
    area: Array
    sigma: Array


def by_level(lengths: Lengths, partition: Partition, budget: float) -> ByLevel:
    """The measures of every level, for perturbations up to ``budget``."""
    total, n = level_sums(np.ones((1, len(lengths.length))), lengths, partition, budget)
    with np.errstate(invalid="ignore"):
        return ByLevel(n[0].astype(np.int64), (total / n)[0], sigma(total, n)[0])


def level_sums(weight: Array, lengths: Lengths, partition: Partition, budget: float) -> tuple[Array, Array]:
    """Sums over each level of min(length, budget) and of the points that count, when they weigh ``weight`` (b, n).

    Returns (b, L) each.
    """
    value, counts = lengths.upto(budget) * lengths.counts, lengths.counts.astype(float)
    members = [np.flatnonzero(partition.codes == level) for level in range(len(partition))]
    parts = [(weight[:, rows] @ value[rows], weight[:, rows] @ counts[rows]) for rows in members]
    total, n = (np.stack(sums, axis=-1) for sums in zip(*parts, strict=True))
    return total, n


def sigma(total: Array, n: Array) -> Array:
    """sigma(P) of each level from the sums over all levels (..., L) of min(length, T) and of points, (..., L)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = total / n, _others(total) / _others(n)
        return np.where(outside > 0, inside / outside - 1, np.nan)


def _others(values: Array) -> Array:
    """The sum over the other levels, added up and not subtracted: it is 0 exactly where all of them are, (..., L)."""
    others = 1 - np.eye(values.shape[-1])
    return values @ others


def curves(lengths: Lengths, partition: Partition, place: int, budget: float, grid: int) -> dict[str, Any]:
    """I_P of an element and that of the others at ``grid`` sizes from 0 to the budget, and the largest RB.

    RB changes only where one of the curves does. None where there is no budget, or no curve.
    """
    inside, outside = partition.element(place)
    if not np.isfinite(budget):
        return {"curve": None, "largest_bias": None}
    steps = np.unique(np.concatenate([np.zeros(1), lengths.upto(budget)[lengths.counts & (inside | outside)]]))
    bias = np.abs(survival(lengths, inside, steps) - survival(lengths, outside, steps))
    largest = int(np.argmax(bias)) if np.isfinite(bias).all() else None
    tau = np.linspace(0, budget, grid)
    both = {"group": survival(lengths, inside, tau), "others": survival(lengths, outside, tau)}
    return {
        "largest_bias": None if largest is None else {"tau": steps[largest], "value": bias[largest]},
        "curve": {"tau": tau, **both},
    }
