"""Scores and decisions of one repetition's classifier on any rows, whatever its architecture.

A score is P(y = 1 | x) for an architecture with probabilities, and for the others what their decision compares with a
threshold: a predicted outcome, or the decision value of a support vector machine.
"""

from __future__ import annotations

import numpy as np

from pipeline.models import architecture
from pipeline.types import Array, Classifier


def judged(
    classifier: Classifier, repetition: int, x: Array, threshold: float | None = None, coin: Array | None = None
) -> tuple[Array, Array]:
    """Scores and decisions h(x) of rows x (n, d): (n,) and (n,) int64, by one evaluation where scores say decisions.

    With a ``coin`` (n,) for each row, uniform in [0, 1), h(x) = 1 with probability P(y = 1 | x); else h(x) =
    1[score >= threshold], and the classifier's own decision for None. Raises ValueError for coins where scores are no
    probabilities.
    """
    model = architecture(classifier.architecture)
    own = {name: values[repetition : repetition + 1] for name, values in classifier.parameters.items()}
    score = np.asarray(model.score(own, x[None])[0], dtype=float)
    if coin is not None:
        if not hasattr(model, "log_probabilities"):
            raise ValueError(
                f"a randomised decision needs probabilities, and the scores of {classifier.method!r} (architecture "
                f"{classifier.architecture!r}) are none: audit its own decisions"
            )
        return score, (coin < score).astype(np.int64)
    if threshold is not None:
        return score, (score >= threshold).astype(np.int64)
    decision = model.decided(own, score[None]) if hasattr(model, "decided") else model.predict(own, x[None])
    return score, np.asarray(decision[0], dtype=np.int64)
