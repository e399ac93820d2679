"""SenSR's iterations on a CPU: the interface to the compiled code of this package.

The two columns of the output layer have opposite gradients, so Adam moves them in opposite directions. Only half their
difference is stored; their mean is constant. Computations are in float32, as in the authors' code. The compiled code is
generic; in float64 it agrees with ``benchmarks.plain_sensr`` up to rounding.
"""

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from fairness_audits.fair_metric import FairMetric
from fairness_audits.values import Array, Batch
from pipeline.training.sensr import training
from pipeline.training.sensr.lanes import LANES, TERMS, UNROLL, Attack, corrected_rates, largest_step
from pipeline.training.sensr_config import EPSILON, Config

CHANGED = ("parameters", "first", "second", "penalty", "counts")
"""The arrays of a repetition that the iterations change."""
SIDES = np.array([-1, 1])
"""Suffixes of the two columns of the output layer."""


class Repetition(NamedTuple):
    """One network in training: the last arguments of the compiled code, in its order.

    ``features`` (n, d) with a column of ones and padding; ``sign`` (n,); ``attack``; flat ``parameters`` (W, half of v,
    half of c) with Adam's ``first`` and ``second`` moments; ``penalty`` (lambda, the full attack's rate); ``counts``
    (updates, failed subspace attacks, failed full attacks, attacks that are not finite).
    """

    features: Array
    sign: Array
    attack: Attack
    parameters: Array
    first: Array
    second: Array
    penalty: Array
    counts: Array


class CompiledIterations:
    """R networks in training, each in one of ``plan.threads`` threads."""

    def __init__(
        self, data: Batch, metric: FairMetric, start: Mapping[str, Array], plan: Config, precision: str = "float32"
    ) -> None:
        self._start, self._plan = start, plan
        self._repetitions = [_packed(data, metric, start, plan, np.dtype(precision), r) for r in range(len(data.label))]

    def advance(self, rows: Array) -> Array:
        """Train on the batches ``rows`` (R, iterations, n); return loss, lambda, fair distance (R, iterations, 3)."""
        curves = np.empty((*rows.shape[:2], 3))
        rates = float(self._plan.learning_rate), float(self._plan.radius)

        def work(r: int) -> None:
            training.train(rows[r], curves[r], *rates, *self._repetitions[r])

        with ThreadPoolExecutor(self._plan.threads) as pool:
            list(pool.map(work, range(len(rows))))
        return curves

    def parameters(self) -> dict[str, Array]:
        """Return the parameters of ``fairness_audits.models.mlp`` in float64."""
        d, units = self._start["w1"].shape[1:]
        flat = np.stack([own.parameters for own in self._repetitions]).astype(float)
        width = self._repetitions[0].features.shape[1]
        height = (flat.shape[1] - 1) // (width + 1)
        weights = flat[:, : height * width].reshape(-1, height, width)[:, :units].swapaxes(1, 2)
        half_v, half_c = flat[:, height * width :][:, :units], flat[:, -1:]
        mean_w2, mean_b2 = (self._start[name].mean(axis=-1, keepdims=True) for name in ("w2", "b2"))
        return {
            "w1": weights[:, :d],
            "b1": weights[:, d],
            "w2": mean_w2 + half_v[..., None] * SIDES,
            "b2": mean_b2 + half_c * SIDES,
        }

    def state(self) -> dict[str, Array]:
        """Return the arrays that the iterations change, for all repetitions: (R, ...) by name."""
        return {name: np.stack([getattr(own, name) for own in self._repetitions]) for name in CHANGED}

    def resume(self, state: Mapping[str, Array]) -> None:
        """Continue from a ``state``."""
        for r, own in enumerate(self._repetitions):
            for name in CHANGED:
                getattr(own, name)[...] = state[name][r]

    def facts(self) -> dict[str, Array]:
        """Return the numbers of failed attacks and the final lambda: arrays (R,)."""
        _, subspace, full, non_finite = np.stack([own.counts for own in self._repetitions], axis=1)
        return {
            "failed_subspace_attacks": subspace,
            "failed_full_attacks": full,
            "non_finite_attacks": non_finite,
            "final_lambda": np.array([own.penalty[0] for own in self._repetitions]),
        }


def _packed(
    data: Batch, metric: FairMetric, start: Mapping[str, Array], plan: Config, kind: np.dtype[Any], r: int
) -> Repetition:
    n, d = data.features.shape[1:]
    width, height = _multiple(d + 1, UNROLL), _multiple(plan.hidden_units, UNROLL)
    # Without a sensitive direction, use one of length 0, which moves nothing.
    count = _multiple(max(len(metric.directions[r]), 1), 2)
    features = _padded(np.concatenate([data.features[r], np.ones((n, 1))], axis=1), n, width)
    weights = _padded(np.concatenate([start["w1"][r].T, start["b1"][r][:, None]], axis=1), height, width)
    halves = [np.diff(start[name][r], axis=-1) / 2 for name in ("w2", "b2")]
    parameters = np.concatenate([weights.ravel(), _padded(halves[0], height, 1).ravel(), halves[1]]).astype(kind)
    power = np.ones(LANES, kind)
    attack = Attack(
        directions=_padded(metric.directions[r], count, width).astype(kind),
        basis=_padded(metric.basis[r].T, count, width).astype(kind),
        subspace_rates=corrected_rates(plan.subspace_rate, plan.subspace_steps).astype(kind),
        full_rates=corrected_rates(1.0, plan.full_steps).astype(kind),
        epsilon=np.array([plan.batch_size * EPSILON], kind),
        series=np.array([1 / math.factorial(k) for k in range(TERMS)], kind),
        power=power,
        bits=power.view(f"int{8 * kind.itemsize}"),
        inputs=d,
        largest=largest_step(plan.full_steps),
    )
    return Repetition(
        features=features.astype(kind),
        sign=np.where(data.label[r] == 1, 1, -1).astype(kind),
        attack=attack,
        parameters=parameters,
        first=np.zeros_like(parameters),
        second=np.zeros_like(parameters),
        penalty=np.array([plan.initial_lambda, plan.full_rate]),
        counts=np.zeros(4, np.int64),
    )


def _multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def _padded(values: Array, rows: int, columns: int) -> Array:
    wide = np.zeros((rows, columns))
    wide[: values.shape[0], : values.shape[1]] = values
    return wide
