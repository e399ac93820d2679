"""Scores and decisions of classifiers, and tables at many thresholds at once."""

from collections.abc import Sequence

import numpy as np

from fairness_audits.audits.permutation.outcomes import in_precision, tabulated
from fairness_audits.errors import InvalidInput
from fairness_audits.models import architecture
from fairness_audits.values import Array, Batch, Classifier, Dataset, Split


def scores_of(dataset: Dataset, classifier: Classifier, side: Split) -> tuple[Batch, Array]:
    """Return one side of R classifiers' splits (or of the only split) and P(y = 1 | x) of its rows, (R, n).

    Raises ValueError for an architecture whose scores are not probabilities.
    """
    batch = dataset.batch(side, 1 if dataset.repetitions == 1 else classifier.repetitions)
    shape = classifier.repetitions, batch.label.shape[1]
    batch = Batch(
        np.broadcast_to(batch.features, (*shape, batch.features.shape[2])),
        np.broadcast_to(batch.label, shape),
        {name: np.broadcast_to(values, shape) for name, values in batch.protected.items()},
    )
    model, ones = architecture(classifier.architecture), np.ones(batch.label.shape, dtype=np.int64)
    if hasattr(model, "loss_and_gradient"):
        loss, _ = model.loss_and_gradient(classifier.parameters, batch.features, ones)
        return batch, np.asarray(np.exp(-np.asarray(loss, dtype=float)))
    score = np.asarray(model.score(classifier.parameters, batch.features))
    if score.min() < 0 or score.max() > 1:
        raise InvalidInput(
            f"the scores of {classifier.method!r} (architecture {classifier.architecture!r}) are no probabilities: "
            f"expected numbers in [0, 1], found {score.min():g} to {score.max():g}",
            option="classifier",
        )
    return batch, score


def judged(classifier: Classifier, repetition: int, x: Array, coin: Array | None = None) -> tuple[Array, Array]:
    """Compute scores and decisions h(x) of one ``repetition`` of a classifier of any architecture, for rows x (n, d).

    The score (n,) is P(y = 1 | x) for an architecture with probabilities. For others, it is the number that the
    decision compares with a threshold: a predicted outcome, or the decision value of a support vector machine. The
    decision (n,), int64 in {0, 1}, is the classifier's own. With a ``coin`` (n,), uniform in [0, 1), it is 1 with
    probability P(y = 1 | x). One evaluation gives both if the scores determine the decisions. Raises InvalidInput if
    coins are given and the scores are not probabilities.
    """
    model = architecture(classifier.architecture)
    own = {name: values[repetition : repetition + 1] for name, values in classifier.parameters.items()}
    score = np.asarray(model.score(own, x[None])[0], dtype=float)
    if coin is not None:
        if not hasattr(model, "log_probabilities"):
            raise InvalidInput(
                f"a randomised decision needs probabilities, but the scores of {classifier.method!r} (architecture "
                f"{classifier.architecture!r}) are none",
                option="coin",
                remedy="Audit its own decisions",
            )
        return score, (coin < score).astype(np.int64)
    decision = model.decided(own, score[None]) if hasattr(model, "decided") else model.predict(own, x[None])
    return score, np.asarray(decision[0], dtype=np.int64)


def named_attributes(dataset: Dataset, names: Sequence[str] | None) -> list[str]:
    """Return the protected attributes with these names, None for all. Raises ValueError for an unknown name."""
    chosen = list(dataset.protected) if names is None else list(names)
    if missing := [name for name in chosen if name not in dataset.protected]:
        problem = f"expected audit.attributes among {sorted(dataset.protected)}, found {missing}"
        raise InvalidInput(problem, source=dataset.name, option="attributes", column=missing[0])
    return chosen


def threshold_tables(label: Array, score: Array, protected: Array, thresholds: Array) -> Array:
    """Count tables group x label x prediction at each of the ascending ``thresholds`` (T,): (T, 2, 2, 2).

    Group 0 of a table is level 1 of the attribute ``protected`` (n,), and the decision is 1[``score`` >= threshold].
    """
    # Cell k counts the scores that reach exactly the first k thresholds.
    cell = np.searchsorted(in_precision(thresholds, score.dtype), score, side="right")
    below = tabulated((2, 2, len(thresholds) + 1), 1 - protected, label, cell).cumsum(axis=-1)
    negative = np.moveaxis(below[..., :-1], -1, 0)
    return np.stack([negative, below[..., -1] - negative], axis=-1)
