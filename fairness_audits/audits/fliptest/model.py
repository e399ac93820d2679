"""The user's model as a function from rows to scores and decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy.special import softmax

from fairness_audits.arguments import Given
from fairness_audits.audits.permutation.outcomes import decided
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import check_alone, check_finite, fractional, row_form
from fairness_audits.inputs.model import HALF, Model
from fairness_audits.inputs.predictor import TORCH, Predictor, check_as_handed_over
from fairness_audits.inputs.table import FILL, Source, check_complete, numeric
from fairness_audits.messages import SHOWN, listed
from fairness_audits.models.outputs import detected_kind
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

WANTED = "a torch network, a fitted scikit-learn model, or a function of a data frame"
DECISION, PROBABILITY, SCORE = "decision", "probability", "score"
TWO_CLASSES: Mapping[str, int] = {"0": 0, "1": 1, "-1": 0, "False": 0, "True": 1}
"""Indices of two classes that the model does not name, keyed by the output of its predict."""


@dataclass(frozen=True)
class Decider:
    """Scores and decisions: from the model's own predict, or 1 if the score is at least ``threshold``.

    ``kind`` says what the scores are. ``columns`` is the number of columns that the model returns (0: one number per
    row), ``positive`` the index of the positive class, and ``named`` its name if it has one. With more than two classes
    and no threshold, the score is the probability of the positive class minus the largest other probability. It is at
    least 0 if the positive class is the most likely. ``classes`` are the indices of the classes that predict returns,
    None if the threshold decides. Scores and threshold are compared in the ``precision`` of the model's outputs.
    """

    raw: Predictor
    kind: str
    threshold: float | None
    columns: int = 0
    positive: int = 1
    named: str | None = None
    logits: bool = False
    likeliest: bool = False
    classes: Mapping[str, int] | None = None
    precision: np.dtype = field(default_factory=lambda: np.dtype(np.float64))

    @property
    def output(self) -> str:
        """Return a description of the scores."""
        of = "" if self.named is None else f" of class {self.named}"
        logits = ", from logits" if self.logits else ""
        return f"{self.kind}{of}{logits}{' minus the largest other score' if self.likeliest else ''}"

    def scores(self, frame: pd.DataFrame) -> Array:
        """Return the scores (n,) of counterparts, indexed by their people.

        Raises InvalidInput if the model fails on counterparts or returns another shape for them than for people.
        """
        output = checked(self.raw, frame, "counterpart")
        if (output.shape[1] if output.ndim == 2 else 0) != self.columns:
            problem = "the model returns a different number of columns for counterparts than for people"
            raise InvalidInput(problem, option="predict", remedy="Return the same number for all rows")
        return self.score_of(output)

    def score_of(self, output: Array) -> Array:
        """Convert the model's output, (n,) or (n, K), to scores (n,)."""
        if not self.columns:
            # A single number is the score of the second class.
            if self.positive == 1:
                return output
            return -output if self.kind == SCORE else 1 - output
        p = softmax(output, axis=1) if self.logits else output
        own = p[:, self.positive]
        return np.asarray(own - np.delete(p, self.positive, axis=1).max(axis=1) if self.likeliest else own)

    def decisions(self, frame: pd.DataFrame, scores: Array | None = None) -> Array:
        """Return decisions (n,) in {0, 1} about rows of the model's inputs; pass their ``scores`` (n,) if known.

        Raises InvalidInput if the model fails on the rows or predicts classes that it did not predict for people.
        """
        if self.classes is None:
            return self.cut(self.scores(frame) if scores is None else scores)
        found = self.raw.classes(frame, "counterpart")
        if strange := [name for name in names_in(found) if name not in self.classes]:
            raise InvalidInput(
                f"the model's predict returns {listed(strange, SHOWN)} for counterparts, but "
                f"{listed(list(self.classes), SHOWN)} for people",
                option="predict",
                remedy="Correct the model, or use a threshold on its scores, threshold=T",
            )
        return (placed(found, self.classes) == self.positive).astype(np.int64)

    def cut(self, scores: Array) -> Array:
        """Return 1 for scores (n,) that reach the threshold, otherwise 0."""
        assert self.threshold is not None
        return decided(np.asarray(scores).astype(self.precision), self.threshold)


@dataclass(frozen=True)
class Trial:
    """The model with its ``scores`` and ``decisions`` (n,) on all audited rows.

    ``otherwise`` counts the rows in which the model's own predict and its thresholded scores disagree. It is None if
    the model has only one of them.
    """

    model: Decider
    scores: Array
    decisions: Array
    otherwise: int | None


def probed(raw: Predictor, frame: pd.DataFrame, given: Given, path: str) -> Trial:
    """Return the model after a trial on all audited rows.

    Raises InvalidInput if the model fails, returns another shape or values that are not finite, names a single class,
    or if its outputs are random or depend on other rows. Also raises it if the outputs are neither decisions nor
    probabilities and there is neither a predict nor a threshold.
    """
    source = Source(path, frame)
    if raw.model.kind in (*TORCH, "onnx") and not raw.model.of_frames:
        numeric(source, list(frame), gaps=raw.model.kind == "onnx")  # reports text; other failures are the model's
    try:
        found = answered(raw, frame, "row")
        output = found.astype(np.float64)
    except ValueError as error:
        check_complete(source, f"{error}. In {path}", f"If the model cannot handle missing values, {FILL}")
        raise
    check_alone(lambda some: checked(raw, some, "row"), frame, output, row_form(frame.columns))
    threshold, columns = given.threshold, output.shape[1] if output.ndim == 2 else 0
    positive, named = _positive(raw.model, given, columns)
    classes = own = None
    itself = None
    if raw.model.predict is not None:
        itself = raw.classes(frame)
        classes = _classes(raw.model, given, columns, itself)
        if classes is not None:
            own = placed(itself, classes)
            check_alone(lambda some: placed(raw.classes(some), classes), frame, own, row_form(frame.columns))
    check_as_handed_over(raw, frame, found, itself)
    if not columns:
        unit = bool((output >= 0).all() and (output <= 1).all())
        kind = DECISION if set(np.unique(output)) <= {0.0, 1.0} else PROBABILITY if unit else SCORE
        if (cut := raw.model.cut) is not None:
            kind, threshold = SCORE, cut if threshold is None else threshold
        if kind == SCORE and threshold is None and own is None:
            raise InvalidInput(
                f"the model returns numbers from {output.min():.4g} to {output.max():.4g}, which are neither "
                "decisions (0 or 1) nor probabilities",
                option="threshold",
                remedy="Use threshold=T: the decision is then positive if the number is at least T (0 for logits)",
            )
        cut = HALF if threshold is None and kind != SCORE else threshold
        made = Decider(raw, kind, cut, 0, positive, named)
    else:
        logits = detected_kind(found) != "probability"
        likeliest = columns > 2 and threshold is None
        cut = 0.0 if likeliest else HALF if threshold is None else threshold
        made = Decider(raw, PROBABILITY, cut, columns, positive, named or str(positive), logits, likeliest)
    made = replace(made, precision=found.dtype)
    scores = made.score_of(output)
    if own is None:
        return Trial(made, scores, made.cut(scores), None)
    by_itself = (own == positive).astype(np.int64)
    if made.threshold is None:
        return Trial(replace(made, classes=classes), scores, by_itself, None)
    cut_off = made.cut(scores)
    otherwise = int((by_itself != cut_off).sum())
    if given.threshold is not None:
        return Trial(made, scores, cut_off, otherwise)
    return Trial(replace(made, classes=classes), scores, by_itself, otherwise)


def _classes(raw: Model, given: Given, columns: int, found: Array) -> Mapping[str, int] | None:
    """Return the output indices of the classes that predict returns, or None if predict returns scores."""
    if fractional(found):
        return None
    names = names_in(found)
    itself = {level_name(value): place for place, value in enumerate(raw.classes)}
    listed_by_user = {level_name(name): place for place, name in enumerate(given.classes or ())}
    unnamed = {str(place): place for place in range(columns)} if columns > 2 else TWO_CLASSES
    # The label value of the model's class 1. The values 0 and 1 already are class numbers.
    one = given.positive and level_name(given.positive)
    first = one if columns <= 2 and not set(names) <= {"0", "1"} and one in names else None
    stated = {name: int(name == first) for name in names} if first else {}
    for known in [itself] if itself else [listed_by_user, stated, unnamed]:
        if set(names) <= set(known) and len(names) <= max(columns, 2):
            return known
    if given.threshold is not None:
        return None
    wanted = f"its classes are {listed(list(itself), SHOWN)}" if itself else "it does not name its classes"
    remedy = "Correct it" if itself else "Name them in the order of its scores, classes=A,B"
    raise InvalidInput(
        f"the model's predict returns {listed(names, SHOWN)}, but {wanted}",
        option="predict" if itself else "classes",
        remedy=f"{remedy}, or use a threshold on its scores, threshold=T",
    )


def names_in(found: Array) -> list[str]:
    """Return the names of the classes in (n,)."""
    return list(dict.fromkeys(map(level_name, pd.unique(found.ravel()).tolist())))


def placed(found: Array, classes: Mapping[str, int]) -> Array:
    """Return classes (n,) as their indices."""
    codes, values = pd.factorize(found)
    return np.array([classes[level_name(value)] for value in values.tolist()])[codes]


def _positive(raw: Model, given: Given, columns: int) -> tuple[int, str | None]:
    """Return the output index of the positive class, and its name if it has one."""
    names = list(map(level_name, given.classes or raw.classes))
    one = given.positive and level_name(given.positive)
    if len(raw.classes) == 1:
        raise InvalidInput(
            f"the model knows only the class {names[0]}, so its decision is the same for everybody",
            option="predict",
            remedy="Fit it on both classes",
        )
    if names and len(names) != (columns or 2):
        wanted = columns or 2
        problem = f"expected classes of length {wanted}, a name for each class of the model; found length {len(names)}"
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


def checked(raw: Predictor, frame: pd.DataFrame, unit: str) -> Array:
    """Evaluate the model on the rows; return finite float64 numbers (n,) or (n, K)."""
    return answered(raw, frame, unit).astype(np.float64)


def answered(raw: Predictor, frame: pd.DataFrame, unit: str) -> Array:
    """Evaluate the model on the rows; return finite numbers (n,) or (n, K) in their own precision."""
    output = raw.outputs(frame, unit)
    check_finite(output, frame.index, row_form(frame.columns, unit))
    return output[:, 0] if output.shape[1:] == (1,) else output
