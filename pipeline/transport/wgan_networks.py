r"""The networks of ``pipeline.transport.wgan``: how they are trained, their minibatches, and their values in NumPy.

Both have two hidden layers,

.. math:: f(x) = W_3^\top \max(0, W_2^\top \max(0, W_1^\top x + b_1) + b_2) + b_3,

with ``w1`` (T, d, H), ``b1`` (T, H), ``w2`` (T, H, H), ``b2`` (T, H), ``w3`` (T, H, k), ``b3`` (T, k), and k = d
outputs for a generator, k = 1 for a critic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pipeline.fields import Checked, Count, NonNegative, Positive, interval, one_of
from pipeline.types import Array

BLOCK = 8192
"""Rows that are evaluated together: bounds the memory."""
ENGINES = ("auto", "compiled", "torch")
SELECTIONS = ("last", "best")


@dataclass(frozen=True)
class WganSettings(Checked, of="transport"):
    """How the networks are trained, and which are kept.

    ``hidden_units`` H; RMSprop's ``learning_rate``, ``decay`` of v, and ``epsilon``; ``clip``; ``rounds`` of the critic
    for each of ``steps`` of the generator; ``batch_size`` n; ``cost_weight`` lambda. Every ``check_every`` steps, and
    after the last, the maps are measured (see ``wgan.Watch``): ``selection`` "last" keeps the last map, "best" the
    measured one whose largest Kolmogorov-Smirnov statistic over the features is smallest; a kept map in which that
    statistic is above ``diverged_above`` is reported as diverged. ``engine``: ``compiled`` runs on ``threads`` threads,
    a trial in each, and gives the same numbers for any of them; ``torch`` runs on the visible device; ``auto`` is torch
    where a GPU is visible and compiled elsewhere.
    """

    hidden_units: Count
    learning_rate: Positive
    decay: Annotated[float, interval("[0, 1)")]
    epsilon: Positive
    clip: Positive
    rounds: Count
    batch_size: Count
    steps: Count
    cost_weight: NonNegative
    selection: Annotated[str, one_of(SELECTIONS)]
    check_every: Count
    diverged_above: Positive
    engine: Annotated[str, one_of(ENGINES)]
    threads: Count


def minibatches(
    sizes: Sequence[tuple[int, int]], steps: int, rounds: int, n: int, rngs: Sequence[np.random.Generator]
) -> Array:
    """Row numbers of every minibatch of ``steps`` generator steps, with replacement: (T, steps, 2 rounds + 1, n).

    ``sizes[t]`` are the numbers of source and target rows of trial t. A step's minibatches are those of target and
    source in turn, one of each for a round of the critic, and at last the generator's, of source rows.
    """
    drawn = []
    for (sources, targets), rng in zip(sizes, rngs, strict=True):
        upper = np.array([targets, sources] * rounds + [sources])
        drawn.append(rng.integers(0, upper[:, None], (steps, len(upper), n)))
    return np.stack(drawn)


def outputs(network: Mapping[str, Array], rows: Array) -> Array:
    """f(x) of one network, without the trial axis, on rows (n, d): (n, k), in the precision of ``rows``."""
    w1, b1, w2, b2, w3, b3 = (
        network[name].astype(rows.dtype, copy=False) for name in ("w1", "b1", "w2", "b2", "w3", "b3")
    )
    values = np.empty((len(rows), w3.shape[-1]), rows.dtype)
    # A network that has diverged has values that are not finite; who asks for them looks.
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            hidden = np.maximum(np.maximum(rows[block] @ w1 + b1, 0) @ w2 + b2, 0)
            values[block] = hidden @ w3 + b3
    return values
