"""Scores and decisions of one repetition's classifier on any rows, whatever its architecture.

A score is P(y = 1 | x) for an architecture with probabilities, and for the others what their decision compares with a
threshold: a predicted outcome, or the decision value of a support vector machine.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from pipeline.models import architecture
from pipeline.types import Array, Classifier


def scores(classifier: Classifier, repetition: int, x: Array) -> Array:
    """The scores (n,) of rows x (n, d)."""
    model, own = _of(classifier, repetition)
    return np.asarray(model.score(own, x[None])[0], dtype=float)


def decisions(classifier: Classifier, repetition: int, x: Array, threshold: float | None) -> Array:
    """h(x) = 1[score >= threshold], or the classifier's own decision for None: x (n, d) -> (n,) int64."""
    if threshold is not None:
        return (scores(classifier, repetition, x) >= threshold).astype(np.int64)
    model, own = _of(classifier, repetition)
    return np.asarray(model.predict(own, x[None])[0], dtype=np.int64)


def scored(classifier: Classifier, repetition: int, x: Array, threshold: float | None) -> tuple[Array, Array]:
    """Scores and decisions of rows x (n, d), (n,) each, by one evaluation where scores say decisions."""
    model, own = _of(classifier, repetition)
    score = np.asarray(model.score(own, x[None])[0], dtype=float)
    if threshold is not None:
        return score, (score >= threshold).astype(np.int64)
    decision = model.decided(own, score[None]) if hasattr(model, "decided") else model.predict(own, x[None])
    return score, np.asarray(decision[0], dtype=np.int64)


def scored_and_tossed(classifier: Classifier, repetition: int, x: Array, coin: Array) -> tuple[Array, Array]:
    """Scores P(y = 1 | x) of rows x (n, d), and h(x) = 1 with that probability: (n,) and (n,) int64.

    Each row's coin (n,), uniform in [0, 1), decides. Raises ValueError for an architecture whose scores are no
    probabilities.
    """
    if not hasattr(architecture(classifier.architecture), "log_probabilities"):
        raise ValueError(
            f"{classifier.method!r} has architecture {classifier.architecture!r}, whose scores are no probabilities: "
            "set audit.decision=threshold"
        )
    score = scores(classifier, repetition, x)
    return score, (coin < score).astype(np.int64)


def tossed(classifier: Classifier, repetition: int, x: Array, coin: Array) -> Array:
    """The decisions of :func:`scored_and_tossed` alone, (n,) int64."""
    return scored_and_tossed(classifier, repetition, x, coin)[1]


def _of(classifier: Classifier, repetition: int) -> tuple[ModuleType, dict[str, Array]]:
    own = {name: values[repetition : repetition + 1] for name, values in classifier.parameters.items()}
    return architecture(classifier.architecture), own
