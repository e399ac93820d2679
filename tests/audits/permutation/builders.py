"""Populations with a known truth, for tests of level and power; the AUC from its definition."""

import numpy as np

from fairness_audits.audits.permutation.metrics import UserMetric
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.values import Array


def simulate(
    rng: np.random.Generator, sizes: tuple[int, ...], positives: tuple[float, ...], shift: tuple[float, ...]
) -> Predictions:
    """Normal scores, positives of group g shifted by shift[g]; groups are named a, b, ... and decided at 1/2."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    label = (rng.random(len(group)) < np.array(positives)[group]).astype(np.int64)
    score = rng.normal(size=len(group)) + label * np.array(shift)[group]
    names = tuple("abcdefgh"[: len(sizes)])
    return Predictions(label, score, group, names, prediction=(score >= 0.5).astype(np.int64))


ROWS = simulate(np.random.default_rng(11), (150, 90), (0.5, 0.35), (1.3, 0.8))


def near(share: float, level: float, simulations: int, deviations: float = 4.0) -> bool:
    """Whether an observed share is within some standard errors of a probability, and not 0, as of a test never made."""
    return share > 0 and abs(share - level) <= deviations * np.sqrt(level * (1 - level) / simulations)


def at_most(share: float | np.floating, level: float, simulations: int, deviations: float = 4.0) -> bool:
    """Whether an observed share is above a probability by no more than some standard errors."""
    return share <= level + deviations * np.sqrt(level * (1 - level) / simulations)


def mean_error(y: Array, score: Array, weight: Array) -> Array:
    return ((score - y) * weight).sum(axis=-1) / weight.sum(axis=-1)


BIAS = UserMetric("bias", mean_error, batched=True)  # type: ignore[arg-type]


def wins(label: Array, score: Array) -> Array:
    """Whether each positive scores above each negative, one half where they tie: (positives, negatives)."""
    positive, negative = score[label == 1][:, None], score[label == 0]
    return (positive > negative) + 0.5 * (positive == negative)


def delong(label: Array, score: Array) -> tuple[float, float]:
    """The AUC and its variance from the definition, with all pairs of a positive and a negative."""
    won = wins(label, score)
    variance = won.mean(axis=1).var(ddof=1) / won.shape[0] + won.mean(axis=0).var(ddof=1) / won.shape[1]
    return float(won.mean()), float(variance)


def tabulated(group: Array, label: Array, cell: Array) -> Array:
    """Counts group x label x cell."""
    table = np.zeros((group.max() + 1, 2, cell.max() + 1), dtype=np.int64)
    np.add.at(table, (group, label, cell), 1)
    return table
