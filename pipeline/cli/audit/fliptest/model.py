"""The user's model as a function from rows to scores and decisions, and each way in which it is none."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipeline.cli.columns import numeric
from pipeline.cli.network import ARCHIVES, device_named, imported, load_network, ready
from pipeline.cli.output_kind import ROUNDING
from pipeline.cli.probe import BLOCK_ROWS, CHANGE
from pipeline.messages import SHOWN, listed, reason
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd
    import torch

WANTED = (
    "a torch network, or a function of a data frame (of a fitted scikit-learn model: def predict(frame): return "
    "model.predict_proba(frame))"
)
Kind = Literal["decision", "probability", "score", "probability of class 1", "probability of class 1, from logits"]
TWO_COLUMNS: tuple[Kind, ...] = ("probability of class 1", "probability of class 1, from logits")
HALF = 0.5
"""Where probabilities are cut unless --threshold says otherwise."""


@dataclass(frozen=True)
class Raw:
    """``evaluate`` maps rows of the model's inputs to what the model returns, an array; ``origin`` says what it is.

    ``file`` is the file that holds it, None for an importable module; ``network``: whether it takes numbers only.
    """

    evaluate: Callable[[pd.DataFrame], Array]
    origin: str
    file: Path | None
    network: bool


@dataclass(frozen=True)
class Model:
    """Scores and decisions: 1 where the score is at least ``threshold``. ``kind`` says what the scores are."""

    raw: Raw
    kind: Kind
    threshold: float

    def scores(self, frame: pd.DataFrame) -> Array:
        """The scores (n,) of counterparts, indexed by whose they are.

        Raises ValueError where the model fails on them or returns something else than for the people themselves.
        """
        output = _checked(self.raw, frame, "counterparts of rows")
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


def load_model(arguments: Namespace) -> Raw:
    """The network or function that ``--predict`` names. Raises ValueError for anything that is not to be found."""
    text: str = arguments.predict
    if ":" in text and not text.endswith(ARCHIVES):
        found, origin, file = imported(text, "--predict", WANTED)
        torch = sys.modules.get("torch")  # whoever gives a network has imported it
        if torch is None or not isinstance(found, torch.nn.Module):
            return Raw(lambda frame: np.asarray(_plain(found(frame.copy()))), origin, file, False)
        dtype = getattr(torch, arguments.dtype)
        device = device_named(arguments.device, dtype)
        return Raw(_of_network(ready(found, device, dtype), device, dtype, arguments.data), origin, file, True)
    import torch as loaded_torch

    dtype = getattr(loaded_torch, arguments.dtype)
    device = device_named(arguments.device, dtype)
    network = load_network(text, arguments.trust_pickle, device, dtype, "--predict")
    return Raw(_of_network(network.evaluate, device, dtype, arguments.data), network.origin, network.file, True)


def probed(raw: Raw, frame: pd.DataFrame, threshold: float | None, path: Path) -> tuple[Model, Array]:
    """The model after a trial on all audited rows, and their scores (n,).

    Raises ValueError where it fails, returns another shape or values that are not finite, where rows influence each
    other or chance decides, and where its numbers are neither decisions nor probabilities and no threshold was given.
    """
    if raw.network:
        numeric(frame, list(frame.columns), path)  # says which columns are text; any other failure is the network's
    output = _checked(raw, frame)
    alone = _checked(raw, frame.iloc[: -(-len(frame) // 3)])
    together = output[: len(alone)]
    if bool((np.abs(alone - together) > CHANGE * (1 + np.abs(together))).any()):
        raise ValueError(
            "the model's output for a row changes with the other rows, or from call to call: expected a function of "
            "each row alone that draws no random numbers (a network in evaluation mode, .eval())"
        )
    kind = _kind(output)
    if kind == "score" and threshold is None:
        raise ValueError(
            f"the model returns numbers from {output.min():.4g} to {output.max():.4g}, neither decisions 0 and 1 nor "
            "probabilities: say from which number on the decision is positive, --threshold T (0 for logits)"
        )
    model = Model(raw, kind, HALF if threshold is None else threshold)
    return model, model.score_of(output)


def _kind(output: Array) -> Kind:
    """What finite outputs (n,) or (n, 2) are, read off their values."""
    if output.ndim == 2:
        probable = bool((output >= 0).all() and (np.abs(output.sum(axis=1) - 1) < ROUNDING).all())
        return "probability of class 1" if probable else "probability of class 1, from logits"
    if set(np.unique(output)) <= {0.0, 1.0}:
        return "decision"
    return "probability" if bool((output >= 0).all() and (output <= 1).all()) else "score"


def _of_network(
    network: Callable[[torch.Tensor], Any], device: torch.device, dtype: torch.dtype, path: Path
) -> Callable[[pd.DataFrame], Array]:
    """A network as a function of a frame of numbers, in blocks of rows."""
    import torch

    def evaluate(frame: pd.DataFrame) -> Array:
        x = torch.tensor(numeric(frame, list(frame.columns), path), dtype=dtype, device=device)
        with torch.no_grad():
            return np.concatenate([np.asarray(_plain(network(block))) for block in x.split(BLOCK_ROWS)])

    return evaluate


def _plain(output: Any) -> Any:
    """A torch tensor as an array; anything else as it is."""
    return output.detach().cpu().numpy() if hasattr(output, "detach") else output


def _checked(raw: Raw, frame: pd.DataFrame, rows: str = "rows") -> Array:
    """What the model returns for the rows, as finite float64 numbers (n,) or (n, 2)."""
    n = len(frame)
    try:
        output = raw.evaluate(frame)
    except Exception as error:
        raise ValueError(
            f"the model failed on {n} {rows} with {reason(error)}. It was given the columns "
            f"{listed(list(frame.columns))}: if it takes others, or another order, name them in --features"
        ) from error
    if output.shape not in {(n,), (n, 1), (n, 2)}:
        raise ValueError(
            f"expected the model to return ({n},) decisions or scores, or ({n}, 2) scores of two classes, for {n} "
            f"rows, found shape {output.shape}: return one decision, probability or score a row"
        )
    try:
        output = output.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected the model to return numbers, found values such as {output.ravel()[0]!r}: return 1 for the "
            "positive decision and 0 for the other"
        ) from error
    bad = frame.index[~np.isfinite(output.reshape(n, -1)).all(axis=1)]
    if len(bad):
        raise ValueError(
            f"the model returns NaN or infinite values for {len(bad)} of {n} {rows}, the first being "
            f"{listed(list(bad), SHOWN)} (counted from 0): mend the model, or remove these rows"
        )
    return output[:, 0] if output.shape[1:] == (1,) else output
