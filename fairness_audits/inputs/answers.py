"""One call of a user's model: its answers, or one message for each reason why they cannot be used.

The messages are the same for networks of rows, networks of images and functions of a table; :class:`Form` has the
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairness_audits.errors import InvalidInput, ModelFailed
from fairness_audits.messages import SHOWN, listed, reason
from fairness_audits.models.outputs import resolution
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

Inputs = TypeVar("Inputs")
CHANGE = 1e-3
"""Largest relative change of an output due to rounding, even in float32."""
ROUNDED = 4
"""Largest change of an output in half precision, in units in the last place."""
REMEDIES = (
    ("dtype", ("same dtype", "Double"), "The model uses another precision: {precision}"),
    ("device", ("on the same device",), "The model has tensors on another device: use device='cpu'"),
    (
        "model",
        ("size()[0] ==", ".shape[0] to be equal", "index: 0 Got"),
        "The model only takes batches of one size: export it again with a dynamic first axis (dynamic_shapes)",
    ),
    ("model", ("DMatrix",), "Pass XGBClassifier, or a function of a data frame that makes the DMatrix"),
    (
        "model",
        ("required keyword-only argument", "required positional argument"),
        "The model needs more than its input. Pass a function of the table that adds the rest, such as "
        "lambda X: model.predict(X, sensitive_features=X['sex'])",
    ),
)
"""Option to change and remedy, by words in torch's message."""


unusable = partial(InvalidInput, option="model")
"""Return the error for a model that cannot be audited."""


@dataclass(frozen=True)
class Form:
    """Words of the messages for the inputs and outputs of a model.

    ``unit`` is one input (row, image). ``inputs`` describes n of them. ``remedy`` is for a model that takes other
    inputs, ``precision`` for a model that computes in another precision. ``without_gradient`` names an alternative that
    needs no gradient.
    """

    unit: str
    inputs: str
    remedy: str
    precision: str = "use dtype='float32'"
    without_gradient: str = ""


def row_form(names: Sequence[str], unit: str = "row") -> Form:
    """Return the form of rows with these columns."""
    columns = listed(list(names))
    remedy = (
        f"Its input has the columns {columns}. If the model takes others, or in another order, pass its columns in "
        "its order"
    )
    return Form(unit, f"{unit}s of {len(names)} features", remedy)


def tensor_of(evaluate: Callable[[torch.Tensor], Any], x: torch.Tensor, form: Form) -> torch.Tensor:
    """Evaluate a network once; return floating-point scores of this form. Raises InvalidInput for anything else."""
    import torch

    output = _output(evaluate, x.clone(), form)  # the model may change its input
    if not isinstance(output, torch.Tensor):
        raise unusable(
            f"the model must return a torch tensor, but returns an object of type {type(output).__name__}: return "
            "the tensor of scores itself, not a NumPy array, which has no gradient"
        )
    _check_shape(tuple(output.shape), len(x), form)
    if not output.is_floating_point():
        problem = f"the model must return floating-point scores, but returns {output.dtype}: return scores, not classes"
        raise unusable(problem)
    return _wide(output)


def array_of(evaluate: Callable[[Inputs], Any], inputs: Inputs, form: Form) -> Array:
    """Evaluate a function or a network once; return outputs in the model's own precision, or in float64.

    Raises InvalidInput if the output is not numbers of this form.
    """
    output = np.asarray(_plain(_output(evaluate, inputs, form)))
    _check_shape(output.shape, len(inputs), form)  # type: ignore[arg-type]
    try:
        return np.asarray(output, dtype=output.dtype if output.dtype.kind == "f" else np.float64)
    except (TypeError, ValueError) as error:
        raise unusable(
            f"the model must return numbers, but returns values such as {output.ravel()[:1].tolist()[0]!r}: return 1 "
            "for the positive decision and 0 for the other, or pass a fitted model that names its classes (classes_)"
        ) from error


def classes_by(predict: Callable[[Inputs], Any], inputs: Inputs, form: Form) -> Array:
    """Return the model's own class decisions (n,), under its own names, or numbers (n, K) that are not classes.

    Raises InvalidInput if the model fails or decides several classes for each input.
    """
    predicted = np.asarray(_plain(_output(predict, inputs, form)))
    _check_shape(predicted.shape, len(inputs), form)  # type: ignore[arg-type]
    several = predicted.shape[1:] not in ((), (1,))
    if several and not fractional(predicted):
        raise unusable(
            f"the model predicts {predicted.shape[1]} outputs per {form.unit}, but an audit needs one decision: pass "
            "a model with one output"
        )
    return predicted if several else predicted.reshape(len(predicted))


def fractional(values: Array) -> bool:
    """Return whether some values are numbers that are not whole, and therefore not classes."""
    return values.dtype.kind == "f" and bool((values != np.round(values)).any())


def check_finite(output: Array, names: Sequence[Any], form: Form) -> None:
    """Raise InvalidInput for outputs (n, ...) that are not finite, with the first of their ``names`` (n,)."""
    bad = np.flatnonzero(~np.isfinite(output.reshape(len(output), -1)).all(axis=1)).tolist()
    if bad:
        text = isinstance(names[0], str)
        # An audit may have its own order of rows; the reader has that of the file.
        first = [names[place] for place in bad] if text else sorted(int(names[place]) for place in bad)
        counted = "" if text else " (counted from 0)"
        problem = (
            f"the model returns NaN or infinite values for {len(bad)} of {len(output)} {form.unit}s, such as "
            f"{listed(first, SHOWN)}{counted}: correct the model, or remove these {form.unit}s"
        )
        raise unusable(problem, row=bad[0] if text else first[0])


def tolerance(output: Array) -> float:
    """Return the largest relative change of outputs that rounding explains, in their own precision."""
    return max(CHANGE, ROUNDED * resolution(output))


def check_alone(evaluate: Callable[[Any], Array], inputs: Any, together: Array, form: Form) -> None:
    """Raise InvalidInput unless an input's output depends on this input only and is the same in each call.

    A third of the ``inputs`` are evaluated again without the others; all inputs gave ``together``.
    """
    some = -(-len(inputs) // 3)
    alone, before = evaluate(inputs[:some]), together[:some]
    if bool((np.abs(alone - before) > tolerance(together) * (1 + np.abs(before))).any()):
        article = "an" if form.unit[0] in "aeiou" else "a"
        raise unusable(
            f"the model's output for {article} {form.unit} depends on the other {form.unit}s of the batch, or "
            "changes from call to call: switch a network to evaluation mode with .eval() (no dropout, fixed batch "
            "normalisation). For a model that decides at random, pass a function that returns its probabilities"
        )


def _output(evaluate: Callable[[Any], Any], inputs: Any, form: Form) -> Any:
    """Return what a model returns, with a tensor or an array in place of anything like one."""
    try:
        output = evaluate(inputs)
        if isinstance(output, Mapping) or (isinstance(output, tuple) and any(np.ndim(one) for one in output)):
            raise _several(output)
        return output if hasattr(output, "detach") else np.asarray(output)
    except InvalidInput:
        raise
    except Exception as error:
        message = str(error)
        known = ((name, text) for name, words, text in REMEDIES if any(word in message for word in words))
        option, remedy = next(known, (None, form.remedy))
        problem = f"the model failed on {len(inputs)} {form.inputs}: {reason(error)}"
        remedy = remedy.format(precision=form.precision) if option else remedy
        raise ModelFailed(problem, option=option, remedy=remedy) from error


def _several(output: Any) -> InvalidInput:
    """Return the error for a dictionary or a tuple of outputs."""
    named = isinstance(output, Mapping)
    what = f"a dictionary of {listed(list(output), SHOWN)}" if named else f"a tuple of {len(output)} outputs"
    first = repr(next(iter(output), "logits")) if named else "0"
    return unusable(
        f"the model returns {what}, but an audit needs the scores alone",
        remedy=f"Pass a function that returns them, such as lambda x: model(x)[{first}]",
    )


def _check_shape(shape: tuple[int, ...], n: int, form: Form) -> None:
    if not (len(shape) in (1, 2) and shape[0] == n and shape[1:] != (0,)):
        raise unusable(
            f"the model must return scores of shape ({n}, K) for K classes, or ({n},) or ({n}, 1) for class 1, but "
            f"returns shape {shape} for {n} {form.unit}s"
        )


def _plain(output: Any) -> Any:
    """Convert a torch tensor to an array; return anything else unchanged."""
    return _wide(output).detach().cpu().numpy() if hasattr(output, "detach") else output


def _wide(output: torch.Tensor) -> torch.Tensor:
    """Convert half precision, for example from autocast, to float32, so that later results are not rounded again."""
    return output.float() if output.is_floating_point() and output.itemsize < 4 else output
