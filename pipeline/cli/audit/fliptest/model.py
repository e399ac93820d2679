"""The user's model as a function from rows to scores and decisions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from pipeline.cli.columns import numeric
from pipeline.cli.network import Computing, Network, load_network
from pipeline.cli.output_kind import ROUNDING
from pipeline.cli.probe import BLOCK_ROWS, Form, array_of, check_alone, check_finite, given_columns
from pipeline.types import Array

WANTED = (
    "a torch network, or a function of a data frame (of a fitted scikit-learn model: def predict(frame): return "
    "model.predict_proba(frame))"
)
Kind = Literal["decision", "probability", "score", "probability of class 1", "probability of class 1, from logits"]
TWO_COLUMNS: tuple[Kind, ...] = ("probability of class 1", "probability of class 1, from logits")
HALF = 0.5
"""Where probabilities are cut unless --threshold says otherwise."""


@dataclass(frozen=True)
class Model:
    """Scores and decisions: 1 where the score is at least ``threshold``. ``kind`` says what the scores are."""

    raw: Network
    kind: Kind
    threshold: float

    def scores(self, frame: pd.DataFrame) -> Array:
        """The scores (n,) of counterparts, indexed by whose they are.

        Raises ValueError where the model fails on them or returns something else than for the people themselves.
        """
        output = checked(self.raw, frame, "counterpart")
        if (output.ndim == 2) != (self.kind in TWO_COLUMNS):
            raise ValueError(
                "the model returns another number of columns for counterparts: return the same for all rows"
            )
        return self.score_of(output)

    def score_of(self, output: Array) -> Array:
        """What the model returned, (n,) or (n, 2), as scores (n,)."""
        if self.kind == "probability of class 1":
            return np.asarray(output[:, 1])
        if self.kind == "probability of class 1, from logits":
            from scipy.special import expit

            return np.asarray(expit(output[:, 1] - output[:, 0]))
        return output

    def decisions(self, scores: Array) -> Array:
        """Decisions (n,) in {0, 1}."""
        return (scores >= self.threshold).astype(np.int64)


def load_model(arguments: Namespace) -> Network:
    """The model that ``--predict`` names, as a function of a data frame of its inputs.

    Raises ValueError for anything that is not to be found. torch is imported for networks alone.
    """
    computing = Computing(arguments.device, arguments.dtype)
    network = load_network(arguments.predict, arguments.trust_pickle, computing, "--predict", WANTED)
    of_frame = _of_network(network, computing, arguments.data) if network.is_module else _of_function(network)
    return replace(network, evaluate=of_frame)


def probed(raw: Network, frame: pd.DataFrame, threshold: float | None, path: Path) -> tuple[Model, Array]:
    """The model after a trial on all audited rows, and their scores (n,).

    Raises ValueError where it fails, returns another shape or values that are not finite, where rows influence each
    other or chance decides, and where its numbers are neither decisions nor probabilities and no threshold was given.
    """
    if raw.is_module:
        numeric(frame, list(frame.columns), path)  # says which columns are text; any other failure is the network's
    output = checked(raw, frame, "row")
    check_alone(lambda some: checked(raw, some, "row"), frame, output, _form(frame, "row"))
    kind = _kind(output)
    if kind == "score" and threshold is None:
        raise ValueError(
            f"the model returns numbers from {output.min():.4g} to {output.max():.4g}, neither decisions 0 and 1 nor "
            "probabilities: say from which number on the decision is positive, --threshold T (0 for logits)"
        )
    model = Model(raw, kind, HALF if threshold is None else threshold)
    return model, model.score_of(output)


def checked(raw: Network, frame: pd.DataFrame, unit: str) -> Array:
    """What the model returns for the rows, as finite float64 numbers (n,) or (n, 2)."""
    form = _form(frame, unit)
    output = array_of(raw.evaluate, frame, form)
    check_finite(output, frame.index, form)
    return output[:, 0] if output.shape[1:] == (1,) else output


def _form(frame: pd.DataFrame, unit: str) -> Form:
    return Form(
        unit=unit,
        given=f"{unit}s of {frame.shape[1]} features",
        returns="({n},) decisions or scores, or ({n}, 2) scores of two classes",
        fits=lambda shape: shape in {(), (1,), (2,)},
        remedy=given_columns(list(frame.columns)),
    )


def _kind(output: Array) -> Kind:
    """What finite outputs (n,) or (n, 2) are, read off their values."""
    if output.ndim == 2:
        probable = bool((output >= 0).all() and (np.abs(output.sum(axis=1) - 1) < ROUNDING).all())
        return "probability of class 1" if probable else "probability of class 1, from logits"
    if set(np.unique(output)) <= {0.0, 1.0}:
        return "decision"
    return "probability" if bool((output >= 0).all() and (output <= 1).all()) else "score"


def _of_function(network: Network) -> Callable[[pd.DataFrame], Any]:
    """A function that cannot change the rows that it is given."""
    return lambda frame: network.evaluate(frame.copy())


def _of_network(network: Network, computing: Computing, path: Path) -> Callable[[pd.DataFrame], Any]:
    """A network as a function of a frame of numbers, in blocks of rows."""
    import torch

    def evaluate(frame: pd.DataFrame) -> torch.Tensor:
        x = torch.tensor(numeric(frame, list(frame.columns), path), dtype=computing.dtype, device=device)
        with torch.no_grad():
            return torch.cat([network.evaluate(block) for block in x.split(BLOCK_ROWS)])

    device = computing.device
    return evaluate
