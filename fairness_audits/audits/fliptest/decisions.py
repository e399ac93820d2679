"""The positive decision of a model that was tried: its score, its threshold, and what decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import softmax

from fairness_audits.arguments import Given
from fairness_audits.audits.permutation.outcomes import decided
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import check_finite, fractional, row_form
from fairness_audits.inputs.model import HALF
from fairness_audits.inputs.predictor import Predictor
from fairness_audits.inputs.probe import TWO_CLASSES, Answers, answered, names_in
from fairness_audits.messages import SHOWN, listed
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

WANTED = "a torch network, a fitted scikit-learn model, or a function of a data frame"
DECISION, PROBABILITY, SCORE = "decision", "probability", "score"


@dataclass(frozen=True)
class Decider:
    """Scores and decisions: from the model's own predict, or 1 if the score is at least ``threshold``.

    ``kind`` says what the scores of the ``answers`` are, ``positive`` is the index of the positive class, and ``named``
    its name if it has one. With more than two classes and no threshold, the score is the probability of the positive
    class minus the ``likeliest`` other class's. It is at least 0 if the positive class is the most likely. ``decides``
    says whether the model's predict decides. Scores and threshold are compared in the precision of the model's outputs.
    """

    answers: Answers
    kind: str
    threshold: float | None
    positive: int = 1
    named: str | None = None
    likeliest: bool = False
    decides: bool = False

    @property
    def logits(self) -> bool:
        """Return whether the scores are probabilities made of several logits."""
        return self.answers.columns > 1 and self.answers.kind != "probability"

    @property
    def output(self) -> str:
        """Return a description of the scores."""
        of = "" if self.named is None else f" of class {self.named}"
        logits = ", from logits" if self.logits else ""
        return f"{self.kind}{of}{logits}{' minus the largest other score' if self.likeliest else ''}"

    @property
    def own_scores(self) -> Array:
        """Return the scores (n,) of the audited rows."""
        return self._score_of(self.answers.output)

    @property
    def own_decisions(self) -> Array:
        """Return the decisions (n,) about the audited rows."""
        return self._by_predict if self.decides else self._cut(self.own_scores)

    @property
    def otherwise(self) -> int | None:
        """Return the number of audited rows in which predict and the threshold disagree, None if one is missing."""
        if self.threshold is None or self.answers.own is None:
            return None
        return int((self._by_predict != self._cut(self.own_scores)).sum())

    @property
    def _by_predict(self) -> Array:
        return (self.answers.own == self.positive).astype(np.int64)  # type: ignore[union-attr]

    def scores(self, frame: pd.DataFrame) -> Array:
        """Return the scores (n,) of counterparts, indexed by their people.

        Raises InvalidInput if the model fails on counterparts or returns another shape for them than for people.
        """
        output = self.answers.outputs(frame, "counterpart")
        check_finite(output, frame.index, row_form(frame.columns, "counterpart"))
        if output.shape[1:] != self.answers.output.shape[1:]:
            problem = "the model returns a different number of columns for counterparts than for people"
            raise InvalidInput(problem, option="predict", remedy="Return the same number for all rows")
        return self._score_of(output)

    def decisions(self, frame: pd.DataFrame, scores: Array | None = None) -> Array:
        """Return decisions (n,) in {0, 1} about rows of the model's inputs; pass their ``scores`` (n,) if known.

        Raises InvalidInput if the model fails on the rows or predicts classes that it did not predict for people.
        """
        if not self.decides:
            return self._cut(self.scores(frame) if scores is None else scores)
        return (self.answers.decisions(frame, "counterpart") == self.positive).astype(np.int64)

    def _score_of(self, output: Array) -> Array:
        """Convert the model's output, (n,) or (n, K), to scores (n,)."""
        output = output.astype(np.float64)
        if output.ndim == 1:
            # A single number is the score of the second class.
            if self.positive == 1:
                return output
            return -output if self.kind == SCORE else 1 - output
        p = softmax(output, axis=1) if self.logits else output
        own = p[:, self.positive]
        return np.asarray(own - np.delete(p, self.positive, axis=1).max(axis=1) if self.likeliest else own)

    def _cut(self, scores: Array) -> Array:
        assert self.threshold is not None
        return decided(scores.astype(self.answers.output.dtype), self.threshold)


def positive_decision(made: Predictor, frame: pd.DataFrame, given: Given, path: str) -> Decider:
    """Return the model's positive decision, after a trial on all audited rows.

    Raises InvalidInput if the trial fails, if the model names a single class, or if its outputs are neither decisions
    nor probabilities and there is neither a predict nor a threshold.
    """
    answers = answered(made, frame, path, None, classes=given.classes, positive=given.positive)
    columns, output, threshold = answers.columns, answers.output, given.threshold
    positive, named = _positive(made, given, columns)
    if answers.own is None and threshold is None:
        _check_unnamed(made, frame)
    decides = answers.own is not None and threshold is None
    if columns > 1:
        likeliest = columns > 2 and threshold is None
        cut = 0.0 if likeliest else HALF if threshold is None else threshold
        return Decider(answers, PROBABILITY, cut, positive, named or str(positive), likeliest, decides)
    kind = SCORE if answers.kind != "probability" else DECISION if set(np.unique(output)) <= {0.0, 1.0} else PROBABILITY
    if (own := made.model.cut) is not None:
        kind, threshold = SCORE, own if threshold is None else threshold
    if threshold is None and kind != SCORE:
        threshold = HALF
    if threshold is None and not decides:
        raise InvalidInput(
            f"the model returns numbers from {output.min():.4g} to {output.max():.4g}, which are neither "
            "decisions (0 or 1) nor probabilities",
            option="threshold",
            remedy="Use threshold=T: the decision is then positive if the number is at least T (0 for logits)",
        )
    return Decider(answers, kind, threshold, positive, named, decides=decides)


def _check_unnamed(made: Predictor, frame: pd.DataFrame) -> None:
    """Raise InvalidInput if the model's predict returns classes that nobody has named."""
    if made.model.predict is None or fractional(found := made.classes(frame)):
        return
    itself = list(map(level_name, made.model.classes))
    wanted = f"its classes are {listed(itself, SHOWN)}" if itself else "it does not name its classes"
    remedy = "Correct it" if itself else "Name them in the order of its scores, classes=A,B"
    raise InvalidInput(
        f"the model's predict returns {listed(names_in(found), SHOWN)}, but {wanted}",
        option="predict" if itself else "classes",
        remedy=f"{remedy}, or use a threshold on its scores, threshold=T",
    )


def _positive(made: Predictor, given: Given, columns: int) -> tuple[int, str | None]:
    """Return the output index of the positive class, and its name if it has one."""
    own, count = made.model.classes, max(columns, 2)
    names = list(map(level_name, given.classes or own))
    one = given.positive and level_name(given.positive)
    if len(own) == 1:
        raise InvalidInput(
            f"the model knows only the class {names[0]}, so its decision is the same for everybody",
            option="predict",
            remedy="Fit it on both classes",
        )
    if names and len(names) != count:
        problem = f"expected classes of length {count}, a name for each class of the model; found length {len(names)}"
        raise InvalidInput(problem, option="classes", remedy="Name all classes, in the order of the outputs")
    names = names or [str(place) for place in range(columns)] if columns > 2 else names
    if one in names:
        return names.index(one), one
    # If the model predicts 0 and 1, ``positive`` refers to the label, whose values have other names.
    of_label = given.label is not None and len(names) == 2 and set(names) <= set(TWO_CLASSES)
    if columns > 2 or (names and given.positive is not None and not of_label):
        raise InvalidInput(
            f"the model has the classes {listed(names, SHOWN)}",
            option="positive",
            remedy="Name the positive decision, positive=CLASS",
        )
    if given.positive is not None and given.label is None:
        raise InvalidInput(
            "positive is a value of the true label, but there is no label",
            option="positive",
            remedy="Give the label, or drop positive",
        )
    return 1, names[1] if len(names) == 2 else None
