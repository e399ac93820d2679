"""The user's model as a function from rows to scores and decisions."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from fairness_audits.audits.fliptest.settings import Settings
from fairness_audits.inputs.model import Computing, Model
from fairness_audits.inputs.probe import BLOCK_ROWS, array_of, check_alone, check_finite, row_form
from fairness_audits.inputs.table import FILL, Source, missing_in, numeric
from fairness_audits.messages import SHOWN, listed
from fairness_audits.models.outputs import ROUNDING
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

WANTED = "a torch network, a fitted scikit-learn model, or a function of a data frame"
HALF = 0.5
"""Where probabilities are cut unless --threshold says otherwise."""
DECISION, PROBABILITY, SCORE = "decision", "probability", "score"


@dataclass(frozen=True)
class Decider:
    """Scores and decisions: 1 where the score is at least ``threshold``.

    ``kind`` says what the scores are; ``columns`` is how many the model returns (0: one number a row), ``positive`` the
    one of the class that is decided positively, ``named`` so where it has a name. Of more than two, where no threshold
    was given, the score is the probability of that class less the largest of another: at least 0 where the class is
    the likeliest.
    """

    raw: Model
    kind: str
    threshold: float
    columns: int = 0
    positive: int = 1
    named: str | None = None
    logits: bool = False
    likeliest: bool = False

    @property
    def output(self) -> str:
        """What the scores are, in words."""
        of = "" if self.named is None else f" of class {self.named}"
        logits = ", from logits" if self.logits else ""
        return f"{self.kind}{of}{logits}{' against the likeliest other' if self.likeliest else ''}"

    def scores(self, frame: pd.DataFrame) -> Array:
        """The scores (n,) of counterparts, indexed by whose they are.

        Raises ValueError where the model fails on them or returns something else than for the people themselves.
        """
        output = checked(self.raw, frame, "counterpart")
        if (output.shape[1] if output.ndim == 2 else 0) != self.columns:
            raise ValueError(
                "the model returns another number of columns for counterparts: return the same for all rows"
            )
        return self.score_of(output)

    def score_of(self, output: Array) -> Array:
        """What the model returned, (n,) or (n, K), as scores (n,)."""
        if not self.columns:
            # One number is of the second class.
            if self.positive == 1:
                return output
            return -output if self.kind == SCORE else 1 - output
        p = softmax(output, axis=1) if self.logits else output
        own = p[:, self.positive]
        return np.asarray(own - np.delete(p, self.positive, axis=1).max(axis=1) if self.likeliest else own)

    def decisions(self, scores: Array) -> Array:
        """Decisions (n,) in {0, 1}."""
        return (scores >= self.threshold).astype(np.int64)


def of_frames(model: Model, computing: Computing, path: str) -> Model:
    """The model as a function of a data frame of its inputs, which it cannot change; a network in blocks of rows."""

    def of_network(frame: pd.DataFrame) -> Any:
        import torch

        x = torch.tensor(numeric(Source(path, frame), list(frame)), dtype=computing.dtype, device=computing.device)
        with torch.no_grad():
            return torch.cat([model.evaluate(block) for block in x.split(BLOCK_ROWS)])

    def of_another(frame: pd.DataFrame) -> Any:
        onnx = model.kind == "onnx"
        return model.evaluate(numeric(Source(path, frame), list(frame), gaps=True) if onnx else frame.copy())

    return replace(model, evaluate=of_network if model.kind == "network" else of_another)


def probed(raw: Model, frame: pd.DataFrame, asked: Settings, path: str) -> tuple[Decider, Array]:
    """The model after a trial on all audited rows, and their scores (n,).

    Raises ValueError where it fails, returns another shape or values that are not finite, where rows influence each
    other or chance decides, and where its numbers are neither decisions nor probabilities and no threshold was given.
    """
    source = Source(path, frame)
    if raw.kind == "network":
        numeric(source, list(frame))  # says which columns are text; any other failure is the network's
    try:
        output = checked(raw, frame, "row")
    except ValueError as error:
        if told := missing_in(source):
            raise ValueError(f"{error}. In {path} {told}: if the model takes no missing values, {FILL}") from error
        raise
    check_alone(lambda some: checked(raw, some, "row"), frame, output, row_form(frame.columns))
    threshold, columns = asked.threshold, output.shape[1] if output.ndim == 2 else 0
    positive, named = _positive(raw, asked, columns)
    if not columns:
        unit = bool((output >= 0).all() and (output <= 1).all())
        kind = DECISION if set(np.unique(output)) <= {0.0, 1.0} else PROBABILITY if unit else SCORE
        if raw.cut is not None:
            kind, threshold = SCORE, raw.cut if threshold is None else threshold
        if kind == SCORE and threshold is None:
            raise ValueError(
                f"the model returns numbers from {output.min():.4g} to {output.max():.4g}, neither decisions 0 and 1 "
                "nor probabilities: say from which number on the decision is positive, --threshold=T (0 for logits)"
            )
        made = Decider(raw, kind, HALF if threshold is None else threshold, 0, positive, named)
    else:
        logits = not ((output >= 0).all() and (np.abs(output.sum(axis=1) - 1) < ROUNDING).all())
        likeliest = columns > 2 and threshold is None
        cut = 0.0 if likeliest else HALF if threshold is None else threshold
        made = Decider(raw, PROBABILITY, cut, columns, positive, named or str(positive), logits, likeliest)
    return made, made.score_of(output)


def _positive(raw: Model, asked: Settings, columns: int) -> tuple[int, str | None]:
    """The place among the model's outputs of the class that is decided positively, and its name where it has one."""
    names = list(asked.classes or map(level_name, raw.classes))
    if names and columns and len(names) != columns:
        raise ValueError(f"--classes names {len(names)} classes, but the model returns scores of {columns}: name all")
    names = names or [str(place) for place in range(columns)] if columns > 2 else names
    if asked.positive in names:
        return names.index(asked.positive), asked.positive
    if columns > 2 or (names and asked.positive is not None):
        raise ValueError(
            f"the model tells the classes {listed(names, SHOWN)} apart: say by --positive which of them counts as "
            "decided positively, against the rest"
        )
    if asked.positive is not None and asked.label is None:
        raise ValueError("--positive is about the true label: give --label, or leave it out")
    return 1, names[1] if len(names) == 2 else None


def checked(raw: Model, frame: pd.DataFrame, unit: str) -> Array:
    """What the model returns for the rows, as finite float64 numbers (n,) or (n, K)."""
    form = row_form(frame.columns, unit)
    output = array_of(raw.evaluate, frame, form)
    check_finite(output, frame.index, form)
    return output[:, 0] if output.shape[1:] == (1,) else output
