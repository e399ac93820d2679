"""Populations with a known truth, for tests of level and power."""

import numpy as np

from pipeline.audits.permutation.metrics import UserMetric
from pipeline.audits.permutation.outcomes import Predictions
from pipeline.types import Array


def simulate(
    rng: np.random.Generator, sizes: tuple[int, ...], positives: tuple[float, ...], shift: tuple[float, ...]
) -> Predictions:
    """Normal scores, positives of group g shifted by shift[g]; groups are named a, b, ... and decided at 1/2."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    label = (rng.random(len(group)) < np.array(positives)[group]).astype(np.int64)
    score = rng.normal(size=len(group)) + label * np.array(shift)[group]
    names = tuple("abcdefgh"[: len(sizes)])
    return Predictions(label, score, group, names, prediction=(score >= 0.5).astype(np.int64))


def near(share: float, level: float, simulations: int, deviations: float = 4.0) -> bool:
    """Whether an observed share is within some standard errors of a probability, and not 0, as of a test never made."""
    return share > 0 and abs(share - level) <= deviations * np.sqrt(level * (1 - level) / simulations)


def mean_error(y: Array, score: Array, weight: Array) -> Array:
    return ((score - y) * weight).sum(axis=-1) / weight.sum(axis=-1)


BIAS = UserMetric("bias", mean_error, batched=True)  # type: ignore[arg-type]
