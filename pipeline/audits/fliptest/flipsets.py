r"""Flipsets: the people whose outcome changes when they are mapped to their counterpart in the other group.

.. math:: F^+ = \{x : h(x) > h(G(x))\}, \qquad F^- = \{x : h(x) < h(G(x))\}, \qquad F = F^+ \cup F^-

Summing h(x) - h(G(x)) over the group shows that the net size is a difference of two counts of positive decisions:

.. math:: |F^+| - |F^-| = |\{x : h(x) = 1\}| - |\{x : h(G(x)) = 1\}|

If G maps one group onto the other one to one, the last count is that of the other group: the net size is 0 if and only
if h has demographic parity on these rows (Proposition 2); if both groups are restricted to one true label, if and only
if it has equal opportunity for that label.

Source: Black et al. 2020, Definition 1 and Proposition 2.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.models import architecture
from pipeline.types import Array, Classifier


@dataclass(frozen=True)
class Flipsets:
    """Decisions h(x) about n people and h(G(x)) about their counterparts, (n,) in {0, 1}.

    ``positive``, ``negative`` and ``either`` are the members of F+, F- and F, (n,) bool. Raises ValueError for arrays
    of unequal shape and for decisions that are neither 0 nor 1.
    """

    decision: Array
    decision_image: Array

    def __post_init__(self) -> None:
        for name, values in (("decision", self.decision), ("decision_image", self.decision_image)):
            if np.ndim(values) != 1 or np.shape(values) != np.shape(self.decision):
                raise ValueError(
                    f"expected one {name} for each of {np.size(self.decision)} people, found shape {np.shape(values)}"
                )
            if not np.isin(values, (0, 1)).all():
                raise ValueError(f"expected {name} in {{0, 1}}, found {np.unique(values)[:5]}: apply a threshold first")

    @property
    def positive(self) -> Array:
        """F+: the person is decided for, the counterpart against."""
        return self.decision > self.decision_image

    @property
    def negative(self) -> Array:
        """F-: the person is decided against, the counterpart for."""
        return self.decision < self.decision_image

    @property
    def either(self) -> Array:
        """F: the two are decided otherwise."""
        return self.decision != self.decision_image

    @property
    def net(self) -> int:
        """|F+| - |F-|."""
        return int(self.positive.sum()) - int(self.negative.sum())


def judged(
    classifier: Classifier, repetition: int, x: Array, threshold: float | None = None, coin: Array | None = None
) -> tuple[Array, Array]:
    """Scores and decisions h(x) of rows x (n, d), whatever the architecture: (n,) and (n,) int64.

    A score is P(y = 1 | x) for an architecture with probabilities, and for the others what their decision compares with
    a threshold: a predicted outcome, or the decision value of a support vector machine. One evaluation gives both where
    scores say decisions.

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
