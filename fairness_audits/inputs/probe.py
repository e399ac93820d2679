"""A trial of a user's model on what is audited: each way in which it cannot be audited has its message.

The same for networks of rows, networks of images and functions of a data frame; a :class:`Form` says what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import logsumexp

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.encoding import Encoding
from fairness_audits.inputs.model import Computing, Model
from fairness_audits.inputs.table import sha256
from fairness_audits.messages import SHOWN, listed, reason
from fairness_audits.models.outputs import ROUNDING, Kind, class_scores, detected_kind, resolution
from fairness_audits.options import OutputKind
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

Inputs = TypeVar("Inputs")
BLOCK_ROWS = 8192
CHANGE = 1e-3
"""A relative change of an output beyond this is no rounding, not even in float32."""
ROUNDED = 4
"""In half precision, an output may differ by so many units in its last place."""
REMEDIES = (
    ("dtype", ("same dtype", "Double"), "The model computes in another precision: {precision}"),
    ("device", ("on the same device",), "The model keeps tensors on another device: try --device=cpu"),
)
"""The option to change and what to do, by words in torch's message."""


@dataclass(frozen=True)
class Form:
    """What an audit gives to a model and takes from it, in the words of the messages.

    ``unit`` is what a model scores (row, image), ``given`` n of them in words. ``remedy`` is for a model that takes
    other inputs, ``precision`` for one that computes in another; ``without_gradient`` says which way needs none.
    """

    unit: str
    given: str
    remedy: str
    precision: str = "try --dtype=float32"
    without_gradient: str = ""


@dataclass(frozen=True)
class Scores:
    """``evaluate`` maps inputs in the network's own units to the logits (n, K) of K >= 2 classes.

    ``trial`` (n, K) are those of what is audited; ``columns`` is how many the network returned. ``detected`` tells
    whether ``kind`` was read off the values; ``saturated`` counts inputs of which no two classes have a probability
    above 0: neither a loss nor an attack has anything to follow there.
    """

    evaluate: Callable[[torch.Tensor], torch.Tensor]
    kind: Kind
    detected: bool
    columns: int
    trial: torch.Tensor
    saturated: int

    @property
    def prediction(self) -> Array:
        """The class of the largest score of what is audited, (n,)."""
        return np.asarray(self.trial.argmax(1))


TRIED_ROWS = 2000
"""Rows on which a model is tried for jumps."""
NEAR, JUMP, JUMPING = 1e-6, 1e-4, 0.01
"""Outputs jump where probabilities so near to each other differ by more than JUMP, in at least this share of rows."""
FLAT_ROWS, FLAT = 200, 1e-3
"""A model that changes in few rows over this distance, along no axis, is a step function."""


@dataclass(frozen=True)
class Answers:
    """What a model says of points (n, d), in the columns' own units, without any gradient.

    ``outputs`` maps points to numbers (n, K) or (n,), which are of the ``kind``, read off the values where
    ``detected``; ``itself`` maps them to the places of the classes that the model decides on by its own predict, None
    where only its outputs say. ``trial`` (n, K) are the logarithms of the probabilities of what is audited, up to a
    constant of the row, ``prediction`` (n,) its classes; ``columns``, ``saturated`` as in :class:`Scores`. ``single``
    tells whether the outputs are in single precision.
    """

    outputs: Callable[[Array], Array]
    itself: Callable[[Array], Array] | None
    kind: Kind
    detected: bool
    columns: int
    trial: Array
    prediction: Array
    saturated: int
    single: bool

    def scores(self, x: Array) -> Array:
        """Logarithms of probabilities (n, K), up to a constant of the row."""
        return log_scores(self.outputs(x), self.kind)

    def probabilities(self, x: Array) -> Array:
        """Probabilities of the classes (n, K)."""
        scores = self.scores(x)
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))

    def loss(self, x: Array, label: Array) -> Array:
        """The cross-entropy (n,) of each point's own label, exact however small it is."""
        scores = self.scores(x)
        own = np.eye(scores.shape[1], dtype=bool)[label]
        with np.errstate(invalid="ignore"):
            return np.logaddexp(0.0, logsumexp(np.where(own, -np.inf, scores), axis=1) - scores[own])

    def decisions(self, x: Array) -> Array:
        """The classes (n,) that the model decides on: by itself where it can, else those of the largest scores."""
        return self.scores(x).argmax(axis=1) if self.itself is None else self.itself(x)


def log_scores(output: Array, kind: Kind) -> Array:
    """Read finite outputs as the logarithms of probabilities (n, K), up to a constant of the row.

    Outputs are (n, K), (n, 1) or (n,). One column is of class 1, as in
    :func:`fairness_audits.models.outputs.class_scores`. The logarithm of 0 is -inf.
    """
    several = output.ndim == 2 and output.shape[1] > 1
    one = output if several else output.reshape(-1)
    with np.errstate(divide="ignore"):
        if several:
            return np.log(one) if kind == "probability" else one
        if kind == "logits":
            return np.stack((np.zeros_like(one), one), axis=1)
        if kind == "probability":
            return np.stack((np.log1p(-one), np.log(one)), axis=1)
        return np.stack((np.log(-np.expm1(one)), one), axis=1)


def kind_of(output: Array) -> Kind:
    """Read the kind off outputs as :func:`fairness_audits.models.outputs.detected_kind` does."""
    rounding = max(ROUNDING, resolution(output))
    unit = bool(((output >= 0) & (output <= 1)).all())
    if output.ndim == 1 or output.shape[1] == 1:
        return "probability" if unit else "logits"
    if unit and bool((np.abs(output.sum(axis=1) - 1) < rounding).all()):
        return "probability"
    return "log-probabilities" if bool((np.abs(logsumexp(output, axis=1)) < ROUNDING).all()) else "logits"


def given_as(
    model: Model, encoding: Encoding, some: Array, computing: Computing, tensors: bool
) -> Callable[[Array], Any]:
    """Return what makes points (n, d) an input of the model.

    A network is given tensors, an ONNX program arrays, anything else a data frame. A function that fails on a data
    frame of ``some`` points is given an array, and then, where ``tensors`` are wanted, a tensor.
    """

    def tensor(x: Array) -> Any:
        import torch

        return torch.tensor(x, dtype=computing.dtype, device=computing.device)

    if model.kind in ("network", "quantised"):
        return tensor
    if model.kind == "onnx":
        return np.array
    forms: list[Callable[[Array], Any]] = [encoding.decoded, np.array, *([tensor] if tensors else [])]
    for made in forms if model.kind == "function" else ():
        try:
            array_of(lambda x: model.evaluate(made(x)), some, row_form(encoding.names))  # noqa: B023
        except ValueError:
            continue
        return made
    return encoding.decoded


def answered(
    model: Model, encoding: Encoding, features: Array, kind: OutputKind, computing: Computing, tensors: bool = False
) -> Answers:
    """Return the model as a map from points to its answers, after a trial on all rows ``features`` (n, d).

    It is asked as :func:`given_as` says. Raises ValueError where the model fails, returns another shape or values that
    are not finite, and where rows influence each other or chance decides.
    """
    form, inputs = row_form(encoding.names), given_as(model, encoding, features[:2], computing, tensors)

    def outputs(x: Array) -> Array:
        blocks = [x[at : at + BLOCK_ROWS] for at in range(0, len(x), BLOCK_ROWS)]
        return np.concatenate([array_of(lambda x: model.evaluate(inputs(x)), one, form) for one in blocks])

    output = outputs(features)
    check_finite(output, range(len(output)), form)
    check_alone(outputs, features, output, form)
    read_as = kind_of(output) if kind == "auto" else kind
    check_kind(output, read_as)
    trial = log_scores(output, read_as)
    places = {level_name(value): place for place, value in enumerate(model.classes)}

    def itself(x: Array) -> Array:
        assert model.predict is not None
        found = classes_by(lambda x: model.predict(inputs(x)), x, form)  # type: ignore[misc]
        return np.array([places[level_name(value)] for value in found.tolist()])

    own = model.predict is not None and len(places) == trial.shape[1]
    second = np.sort(trial, axis=1)[:, -2]
    return Answers(
        outputs=outputs,
        itself=itself if own else None,
        kind=read_as,
        detected=kind == "auto" and model.kind != "estimator",  # whose methods say what they return
        columns=output.shape[1] if output.ndim == 2 else 1,
        trial=trial,
        prediction=itself(features) if own else trial.argmax(axis=1),
        saturated=int(np.isneginf(second).sum()),
        single=bool((output == output.astype(np.float32)).all()),
    )


def jumps(probabilities: Callable[[Array], Array], points: Array, directions: Array) -> float:
    """Return the share of points at which a model's probabilities jump.

    Parameters
    ----------
    probabilities : callable
        From points (m, d) to (m, K).
    points : array (n, d)
        Some of the rows, in the units of the audit.
    directions : array (k, d)
        Of length 1: where the model is tried.

    Returns
    -------
    float
        The share at which points that are 1e-6 away on both sides along a direction differ by more than 1e-4. 1 for a
        step function whose steps are rarely that near: probabilities differ between points, but around most of the
        points they are the same along every axis.
    """
    gap = np.zeros(len(points))
    for u in directions:
        near = probabilities(points + NEAR * u) - probabilities(points - NEAR * u)
        gap = np.maximum(gap, np.abs(near).max(axis=1))
    share = float((gap > JUMP).mean())
    if share >= JUMPING or (gap > 0).mean() > 0.5:
        return share
    some = points[:FLAT_ROWS]
    here = probabilities(some)
    if np.ptp(here, axis=0).max() == 0:
        return share
    for axis in np.eye(points.shape[1]):
        if (probabilities(some + FLAT * axis) != here).any(axis=1).mean() > 0.5:
            return share
    return 1.0


def row_form(names: Sequence[str], unit: str = "row") -> Form:
    """Rows of the named columns."""
    columns = listed(list(names))
    remedy = f"It was given the columns {columns}: if it takes others, or another order, choose them by --features"
    return Form(unit, f"{unit}s of {len(names)} features", remedy)


def probed(model: Model, features: torch.Tensor, names: Sequence[str], kind: OutputKind) -> Scores:
    """The network as a map from rows to class scores, after a trial on all rows ``features`` (n, d).

    Raises ValueError where it fails, returns something of another shape, non-finite values, or values against
    ``kind``, where rows influence each other or chance decides, or where there is no gradient to follow.
    """
    import torch

    form = row_form(names)
    with torch.no_grad():
        outputs = [tensor_of(model.evaluate, block, form) for block in features.split(BLOCK_ROWS)]
        output = torch.cat(outputs).detach().cpu()
        check_finite(output.numpy(), range(len(output)), form)
        first = features[:BLOCK_ROWS]
        check_alone(lambda x: tensor_of(model.evaluate, x, form).detach().cpu().numpy(), first, output.numpy(), form)
    scores = read(output, lambda x: tensor_of(model.evaluate, x, form), kind)
    check_gradient(scores.evaluate, features.split(BLOCK_ROWS), form)
    return scores


def tensor_of(evaluate: Callable[[torch.Tensor], Any], x: torch.Tensor, form: Form) -> torch.Tensor:
    """One evaluation of a network: floating-point scores of the form. Raises ValueError for anything else."""
    import torch

    output = _output(evaluate, x.clone(), form)  # which the model may change
    if not isinstance(output, torch.Tensor):
        raise ValueError(
            f"expected the model to return a torch tensor, found an object of type {type(output).__name__}: return the "
            "tensor of scores itself (not a NumPy array, which has no gradient, nor a tuple or a dictionary)"
        )
    _check_shape(tuple(output.shape), len(x), form)
    if not output.is_floating_point():
        raise ValueError(
            f"expected the model to return floating-point scores, found {output.dtype}: return scores, not classes"
        )
    return _wide(output)


def array_of(evaluate: Callable[[Inputs], Any], inputs: Inputs, form: Form) -> Array:
    """One evaluation of a function or a network: float64 numbers of the form. Raises ValueError for anything else."""
    output = _output(lambda given: np.asarray(_plain(evaluate(given))), inputs, form)
    _check_shape(output.shape, len(inputs), form)  # type: ignore[arg-type]
    try:
        return np.asarray(output, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"expected the model to return numbers, found values such as {output.ravel()[0]!r}: return 1 for the "
            "positive decision and 0 for the other"
        ) from error


def classes_by(predict: Callable[[Inputs], Any], inputs: Inputs, form: Form) -> Array:
    """The classes (n,) that a model decides on by itself, as it calls them, or numbers (n, K) that are none.

    Raises ValueError where it fails and where it decides several classes for each of the inputs.
    """
    predicted: Array = _output(lambda given: np.asarray(_plain(predict(given))), inputs, form)
    _check_shape(predicted.shape, len(inputs), form)  # type: ignore[arg-type]
    several = predicted.shape[1:] not in ((), (1,))
    if several and not fractional(predicted):
        raise ValueError(
            f"the model predicts {predicted.shape[1]} outputs for each {form.unit}, and an audit is of one decision: "
            "give the model of one"
        )
    return predicted if several else predicted.reshape(len(predicted))


def fractional(values: Array) -> bool:
    """Whether some of the values are numbers that are not whole, and so no classes."""
    return values.dtype.kind == "f" and bool((values != np.round(values)).any())


def check_finite(output: Array, names: Sequence[object], form: Form) -> None:
    """ValueError for outputs (n, ...) that are NaN or infinite, with the ``names`` (n,) of the first of them."""
    bad = np.flatnonzero(~np.isfinite(output.reshape(len(output), -1)).all(axis=1)).tolist()
    if bad:
        counted = "" if isinstance(names[0], str) else " (counted from 0)"
        raise ValueError(
            f"the model returns NaN or infinite values for {len(bad)} of {len(output)} {form.unit}s, the first being "
            f"{listed([names[place] for place in bad], SHOWN)}{counted}: mend the model, or remove these {form.unit}s"
        )


def check_alone(evaluate: Callable[[Any], Array], inputs: Any, together: Array, form: Form) -> None:
    """ValueError unless an input's output is its own: the same in any company, and each time.

    A third of the ``inputs`` are tried again without the others, with which they gave ``together``.
    """
    some = -(-len(inputs) // 3)
    alone, before = evaluate(inputs[:some]), together[:some]
    change = max(CHANGE, ROUNDED * resolution(together))
    if bool((np.abs(alone - before) > change * (1 + np.abs(before))).any()):
        article = "an" if form.unit[0] in "aeiou" else "a"
        raise ValueError(
            f"the model's output for {article} {form.unit} changes with the other {form.unit}s of its batch, or from "
            f"call to call: expected a function of each {form.unit} alone that draws no random numbers (a network in "
            "evaluation mode, .eval(): no dropout, fixed batch normalisation)"
        )


def read(
    output: torch.Tensor, evaluate: Callable[[torch.Tensor], torch.Tensor], told: OutputKind, finite: bool = False
) -> Scores:
    """What finite outputs (n, K), (n, 1) or (n,) mean; ``finite`` as in :func:`class_scores`.

    The kind is ``told`` by the user or, ``auto``, read off the values. Raises ValueError for values against it.
    """
    kind = detected_kind(output) if told == "auto" else told
    check_kind(output, kind)
    scores = class_scores(kind, finite)
    second = class_scores(kind)(output).topk(2, dim=1).values[:, 1]
    return Scores(
        evaluate=lambda x: scores(evaluate(x)),
        kind=kind,
        detected=told == "auto",
        columns=output.shape[1] if output.ndim == 2 else 1,
        trial=scores(output),
        saturated=int(second.isneginf().sum()),
    )


def check_gradient(
    evaluate: Callable[[torch.Tensor], torch.Tensor], blocks: Iterable[torch.Tensor], form: Form
) -> None:
    """ValueError unless the margin of the two largest scores has a gradient at the inputs that is not 0 for all."""
    import torch

    count, flat, finite = 0, True, True
    for block in blocks:
        x = block.detach().requires_grad_(True)
        with torch.enable_grad():
            largest = evaluate(x).topk(2, dim=1).values
            margin = (largest[:, 0] - largest[:, 1]).sum()
        gradient = None
        if margin.requires_grad:
            try:
                (gradient,) = torch.autograd.grad(margin, x, allow_unused=True)
            except RuntimeError as error:
                raise ValueError(f"the model's gradient cannot be computed: {reason(error)}") from error
        if gradient is None:
            raise ValueError(
                "the model gives no gradient with respect to its input: the audit needs a differentiable torch network "
                f"(no .detach(), no NumPy, no torch.no_grad() inside, no trees){form.without_gradient}"
            )
        count, finite = count + len(x), finite and bool(gradient.isfinite().all())
        # A component that is infinite or NaN has no direction to follow.
        flat = flat and not bool((gradient.nan_to_num(0.0, 0.0, 0.0) != 0).any())
    if flat:
        what = "zero" if finite else "zero or not finite"
        raise ValueError(
            f"the model's gradient is {what} at all {count} {form.unit}s tried: it is constant, saturated, or rounds "
            "inside (argmax, a threshold). The audit follows gradients: return logits, the scores before the rounding"
            f"{form.without_gradient}"
        )


def model_facts(model: Model, scores: Scores | Answers | None = None) -> dict[str, Any]:
    """Which model was audited, and how its outputs were read, for the JSON."""
    facts = {"given": model.given, "origin": model.origin, "sha256": None if model.file is None else sha256(model.file)}
    if scores is None:
        return facts
    read_as = {"output_kind": scores.kind, "output_kind_detected": scores.detected, "output_columns": scores.columns}
    return {**facts, **read_as}


def model_words(facts: Mapping[str, Any]) -> str:
    """The model and how its outputs were read, in words."""
    shape = f"{facts['output_columns']} columns" if facts["output_columns"] > 1 else "one column, class 1"
    read = "read off the values" if facts["output_kind_detected"] else "as told"
    return f"{facts['origin']}; output: {shape}, {facts['output_kind']} ({read})"


OUTPUT_CAVEATS = f"""
read_as_probabilities: All outputs lie between 0 and 1 (sums within {ROUNDING:g} of 1 where there are several) and were
  read as probabilities; if they are logits, say --output-kind=logits.
saturated: One class has all the probability in {{count:,}} {{unit}}s: every other probability is rounded to 0. A loss
  is infinite or has no gradient there: let the model return logits, the values before the last sigmoid or softmax.
"""


def output_conditions(kind: Kind, detected: bool, saturated: int, unit: str) -> dict[str, Any]:
    """For OUTPUT_CAVEATS: what a reader must know of how the outputs for each ``unit`` were read."""
    return {
        "read_as_probabilities": kind == "probability" and detected,
        "saturated": saturated and {"count": saturated, "unit": unit},
    }


def check_kind(output: torch.Tensor | Array, kind: Kind) -> None:
    """ValueError where the values cannot be of the kind that the user says they are."""
    low, high = float(output.min()), float(output.max())
    fits = high <= ROUNDING if kind == "log-probabilities" else kind == "logits" or 0 <= low <= high <= 1
    if not fits:
        wanted = "in [0, 1]" if kind == "probability" else "of at most 0"
        raise ValueError(
            f"--output-kind={kind}: expected values {wanted}, found {low:.4g} to {high:.4g}: these look like logits"
        )


def _output(evaluate: Callable[[Any], Any], inputs: Any, form: Form) -> Any:
    try:
        return evaluate(inputs)
    except Exception as error:
        message = str(error)
        known = ((name, text) for name, words, text in REMEDIES if any(word in message for word in words))
        option, remedy = next(known, (None, form.remedy))
        raise InvalidInput(
            f"the model failed on {len(inputs)} {form.given}: {reason(error)}",
            option=option,
            remedy=remedy.format(precision=form.precision) if option else remedy,
        ) from error


def _check_shape(shape: tuple[int, ...], n: int, form: Form) -> None:
    if not (len(shape) in (1, 2) and shape[0] == n and shape[1:] != (0,)):
        raise ValueError(
            f"expected the model to return ({n}, K) scores of K classes, or ({n},) or ({n}, 1) of class 1, for {n} "
            f"{form.unit}s, found shape {shape}: return the scores of each {form.unit}"
        )


def _plain(output: Any) -> Any:
    """A torch tensor as an array; anything else as it is."""
    return _wide(output).detach().cpu().numpy() if hasattr(output, "detach") else output


def _wide(output: torch.Tensor) -> torch.Tensor:
    """Half precision, of autocast for one, as float32: what is computed from it is not rounded again."""
    return output.float() if output.is_floating_point() and output.itemsize < 4 else output
