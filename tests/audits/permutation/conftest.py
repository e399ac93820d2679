"""Populations with a known truth, for tests of level and power."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.audits.permutation.outcomes import Predictions


def scored(
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


@pytest.fixture(name="simulate")
def _simulate() -> Callable[..., Predictions]:
    return scored


@pytest.fixture(name="near")
def _near() -> Callable[..., bool]:
    return near
