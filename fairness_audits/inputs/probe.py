"""Trial of a user's model on the audited inputs, with one message for each reason why it cannot be audited.

The trial is the same for networks of rows, networks of images and functions of a data frame; :class:`Form` has the
differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import logsumexp

from fairness_audits.errors import InvalidInput, ModelFailed
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
"""Largest relative change of an output due to rounding, even in float32."""
ROUNDED = 4
"""Largest change of an output in half precision, in units in the last place."""
REMEDIES = (
    ("dtype", ("same dtype", "Double"), "The model uses another precision: {precision}"),
    ("device", ("on the same device",), "The model has tensors on another device: use --device=cpu"),
    (
        "model",
        ("size()[0] ==", ".shape[0] to be equal", "index: 0 Got"),
        "The model only takes batches of one size: export it again with a dynamic first axis (dynamic_shapes)",
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
    precision: str = "use --dtype=float32"
    without_gradient: str = ""


@dataclass(frozen=True)
class Scores:
    """A network as a function: ``evaluate`` maps inputs in the network's own units to logits (n, K) of K >= 2 classes.

    ``trial`` (n, K) are the logits of the audited inputs. ``columns`` is the network's number of output columns.
    ``detected`` tells whether ``kind`` was detected from the values. ``saturated`` counts inputs for which only one
    class has a probability above 0. Neither a loss nor an attack has a direction to follow there.
    """

    evaluate: Callable[[torch.Tensor], torch.Tensor]
    kind: Kind
    detected: bool
    columns: int
    trial: torch.Tensor
    saturated: int

    @property
    def prediction(self) -> Array:
        """Return the class with the largest score for each audited input, (n,)."""
        return np.asarray(self.trial.argmax(1))


TRIED_ROWS = 2000
"""Number of rows on which a model is tried for jumps."""
NEAR, JUMP, JUMPING = 1e-6, 1e-4, 0.01
"""Outputs jump if probabilities of points this near differ by more than JUMP in at least this share of rows."""
FLAT_ROWS, FLAT = 200, 1e-3
"""A model is a step function if, along every axis, its outputs change in few rows over this distance."""


@dataclass(frozen=True)
class Answers:
    """A model without a gradient, as functions of points (n, d) in the columns' own units.

    ``outputs`` maps points to numbers (n, K) or (n,) of the ``kind``, which was detected from the values if
    ``detected`` is true. ``itself`` maps points to the class indices of the model's own predict, None if it has only
    outputs. ``trial`` (n, K) are the log-probabilities of the audited rows, up to a constant per row, and
    ``prediction`` (n,) their classes. ``columns`` and ``saturated`` are as in :class:`Scores`. ``single`` tells whether
    the outputs are in single precision, and ``decision_values`` whether they are those of a decision function.
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
    decision_values: bool

    def scores(self, x: Array) -> Array:
        """Return log-probabilities (n, K), up to a constant per row."""
        return log_scores(self.outputs(x), self.kind)

    def probabilities(self, x: Array) -> Array:
        """Return the probabilities of the classes (n, K)."""
        scores = self.scores(x)
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))

    def loss(self, x: Array, label: Array) -> Array:
        """Return the cross-entropy (n,) of each point's own label, exact even if it is tiny."""
        scores = self.scores(x)
        own = np.eye(scores.shape[1], dtype=bool)[label]
        with np.errstate(invalid="ignore"):
            return np.logaddexp(0.0, logsumexp(np.where(own, -np.inf, scores), axis=1) - scores[own])

    def decisions(self, x: Array) -> Array:
        """Return the model's decisions (n,): from its predict if it has one, otherwise by the largest scores."""
        return self.scores(x).argmax(axis=1) if self.itself is None else self.itself(x)


def log_scores(output: Array, kind: Kind) -> Array:
    """Convert finite outputs to log-probabilities (n, K), up to a constant per row.

    Outputs are (n, K), (n, 1) or (n,). A single column belongs to class 1, as in
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


def given_as(
    model: Model, encoding: Encoding, some: Array, computing: Computing, tensors: bool
) -> Callable[[Array], Any]:
    """Return the function that converts points (n, d) to inputs of the model.

    Networks get tensors, ONNX programs arrays, and other models a data frame. A function that fails on a data frame of
    ``some`` points gets an array and then, if ``tensors`` is true, a tensor.
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
    """Return the model as a function from points to answers, after a trial on all rows ``features`` (n, d).

    The inputs are those of :func:`given_as`. Raises InvalidInput if the model fails, returns another shape or values
    that are not finite, or if its outputs are random or depend on other rows.
    """
    form, inputs = row_form(encoding.names), given_as(model, encoding, features[:2], computing, tensors)

    def outputs(x: Array) -> Array:
        blocks = [x[at : at + BLOCK_ROWS] for at in range(0, len(x), BLOCK_ROWS)]
        return np.concatenate([array_of(lambda x: model.evaluate(inputs(x)), one, form) for one in blocks])

    output = outputs(features)
    check_finite(output, range(len(output)), form)
    check_alone(outputs, features, output, form)
    read_as = detected_kind(output) if kind == "auto" else kind
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
        # A method that scores classes determines the kind.
        detected=kind == "auto" and not (model.kind == "estimator" and model.classes),
        columns=output.shape[1] if output.ndim == 2 else 1,
        trial=trial,
        prediction=itself(features) if own else trial.argmax(axis=1),
        saturated=int(np.isneginf(second).sum()),
        single=bool((output == output.astype(np.float32)).all()),
        decision_values=model.cut is not None,
    )


def jumps(probabilities: Callable[[Array], Array], points: Array, directions: Array) -> float:
    """Return the share of points at which a model's probabilities jump.

    Parameters
    ----------
    probabilities : callable
        Maps points (m, d) to probabilities (m, K).
    points : array (n, d)
        A sample of the rows, in the units of the audit.
    directions : array (k, d)
        Unit vectors along which the model is tried.

    Returns
    -------
    float
        Share of points for which probabilities there and at 1e-6 on either side along a direction differ by more than
        1e-4. It is 1 for a step function whose steps are rarely that near: probabilities differ between points, but
        around most points they are constant along every axis.
    """
    gap, here = np.zeros(len(points)), probabilities(points)
    for u in directions:
        # A model may treat all values that do not occur in its data alike, so compare both sides with the point too.
        sides = np.stack([probabilities(points - NEAR * u), here, probabilities(points + NEAR * u)])
        gap = np.maximum(gap, np.ptp(sides, axis=0).max(axis=1))
    share = float((gap > JUMP).mean())
    if share >= JUMPING or (gap > 0).mean() > 0.5:
        return share
    some, here = points[:FLAT_ROWS], here[:FLAT_ROWS]
    if np.ptp(here, axis=0).max() == 0:
        return share
    for axis in np.eye(points.shape[1]):
        if (probabilities(some + FLAT * axis) != here).any(axis=1).mean() > 0.5:
            return share
    return 1.0


def row_form(names: Sequence[str], unit: str = "row") -> Form:
    """Return the form of rows with these columns."""
    columns = listed(list(names))
    remedy = (
        f"Its input has the columns {columns}. If the model takes others, or in another order, pass its columns "
        "(--features)"
    )
    return Form(unit, f"{unit}s of {len(names)} features", remedy)


def probed(model: Model, features: torch.Tensor, names: Sequence[str], kind: OutputKind) -> Scores:
    """Return the network as a function from rows to class scores, after a trial on all rows ``features`` (n, d).

    Raises InvalidInput if the network fails, returns another shape, values that are not finite or values that
    contradict ``kind``, if its outputs are random or depend on other rows, or if there is no gradient.
    """
    import torch

    form = replace(row_form(names), without_gradient="; --search=people needs no gradient")
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
    """Evaluate a network once; return floating-point scores of this form. Raises InvalidInput for anything else."""
    import torch

    output = _output(evaluate, x.clone(), form)  # the model may change its input
    if not isinstance(output, torch.Tensor):
        raise unusable(
            f"the model must return a torch tensor, but returns an object of type {type(output).__name__}: return "
            "the tensor of scores itself, not a NumPy array (which has no gradient), a tuple or a dictionary"
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
    output = _output(lambda x: np.asarray(_plain(evaluate(x))), inputs, form)
    _check_shape(output.shape, len(inputs), form)  # type: ignore[arg-type]
    try:
        return np.asarray(output, dtype=output.dtype if output.dtype.kind == "f" else np.float64)
    except (TypeError, ValueError) as error:
        raise unusable(
            f"the model must return numbers, but returns values such as {output.ravel()[:1].tolist()[0]!r}: return 1 "
            "for the positive decision and 0 for the other"
        ) from error


def classes_by(predict: Callable[[Inputs], Any], inputs: Inputs, form: Form) -> Array:
    """Return the model's own class decisions (n,), under its own names, or numbers (n, K) that are not classes.

    Raises InvalidInput if the model fails or decides several classes for each input.
    """
    predicted: Array = _output(lambda x: np.asarray(_plain(predict(x))), inputs, form)
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


def check_alone(evaluate: Callable[[Any], Array], inputs: Any, together: Array, form: Form) -> None:
    """Raise InvalidInput unless an input's output depends on this input only and is the same in each call.

    A third of the ``inputs`` are evaluated again without the others; all inputs gave ``together``.
    """
    some = -(-len(inputs) // 3)
    alone, before = evaluate(inputs[:some]), together[:some]
    change = max(CHANGE, ROUNDED * resolution(together))
    if bool((np.abs(alone - before) > change * (1 + np.abs(before))).any()):
        article = "an" if form.unit[0] in "aeiou" else "a"
        raise unusable(
            f"the model's output for {article} {form.unit} depends on the other {form.unit}s of the batch, or "
            "changes from call to call: switch a network to evaluation mode with .eval() (no dropout, fixed batch "
            "normalisation), and remove other sources of randomness"
        )


def read(
    output: torch.Tensor, evaluate: Callable[[torch.Tensor], torch.Tensor], wanted: OutputKind, finite: bool = False
) -> Scores:
    """Return the scores from finite outputs (n, K), (n, 1) or (n,); ``finite`` as in :func:`class_scores`.

    The kind is ``wanted`` by the user, or detected from the values if it is ``auto``. Raises InvalidInput for
    contradictory values.
    """
    kind = detected_kind(output.numpy(force=True)) if wanted == "auto" else wanted
    check_kind(output, kind)
    scores = class_scores(kind, finite)
    second = class_scores(kind)(output).topk(2, dim=1).values[:, 1]
    return Scores(
        evaluate=lambda x: scores(evaluate(x)),
        kind=kind,
        detected=wanted == "auto",
        columns=output.shape[1] if output.ndim == 2 else 1,
        trial=scores(output),
        saturated=int(second.isneginf().sum()),
    )


def check_gradient(
    evaluate: Callable[[torch.Tensor], torch.Tensor], blocks: Iterable[torch.Tensor], form: Form
) -> None:
    """Raise InvalidInput unless the margin of the two largest scores has a gradient that is not 0 at all inputs."""
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
                raise unusable(f"the model's gradient cannot be computed: {reason(error)}") from error
        if gradient is None:
            raise unusable(
                "the model has no gradient with respect to its input: the audit needs a differentiable torch "
                f"network, without .detach(), NumPy, torch.no_grad() or trees inside{form.without_gradient}"
            )
        count, finite = count + len(x), finite and bool(gradient.isfinite().all())
        # A component that is infinite or NaN is not a direction to follow.
        flat = flat and not bool((gradient.nan_to_num(0.0, 0.0, 0.0) != 0).any())
    if flat:
        what = "zero" if finite else "zero or not finite"
        raise unusable(
            f"the model's gradient is {what} at all {count} {form.unit}s tried: the model is constant, saturated, or "
            "rounds inside (argmax, a threshold). Return logits, the scores before the "
            f"rounding{form.without_gradient}"
        )


def model_facts(model: Model, scores: Scores | Answers | None = None) -> dict[str, Any]:
    """Return the description of the model and of how its outputs were read, for the JSON."""
    facts = {"given": model.name, "origin": model.origin, "sha256": None if model.file is None else sha256(model.file)}
    if scores is None:
        return facts
    read_as = {"output_kind": scores.kind, "output_kind_detected": scores.detected, "output_columns": scores.columns}
    return {**facts, **read_as, "decision_values": isinstance(scores, Answers) and scores.decision_values}


def model_words(facts: Mapping[str, Any]) -> str:
    """Return a description of the model and of how its outputs were read."""
    shape = f"{facts['output_columns']} columns" if facts["output_columns"] > 1 else "one column, class 1"
    read = " (inferred from the values)" if facts["output_kind_detected"] else ""
    return f"{facts['origin']}; output: {shape}, {facts['output_kind']}{read}"


OUTPUT_CAVEATS = f"""
read_as_probabilities: All outputs lie between 0 and 1 (and sum to 1 within {ROUNDING} if there are several), so they
  were read as probabilities. If they are logits, use --output-kind=logits.
decision_values: The model has no probabilities, so its decision values were read as log-odds. A loss then depends on
  their scale. Calibrate the model first, for example by scikit-learn's CalibratedClassifierCV.
saturated: For some {{unit}}s (number: {{count:,}}), one class has probability 1 and all others are rounded to 0. Their
  loss is infinite or has no gradient. Let the model return logits, the values before the last sigmoid or softmax.
"""


def output_conditions(kind: Kind, detected: bool, saturated: int, unit: str) -> dict[str, Any]:
    """Return the conditions of OUTPUT_CAVEATS on how the outputs for each ``unit`` were read."""
    return {
        "read_as_probabilities": kind == "probability" and detected,
        "saturated": saturated and {"count": saturated, "unit": unit},
    }


def check_kind(output: torch.Tensor | Array, kind: Kind) -> None:
    """Raise InvalidInput if the values cannot be of the kind that the user gave."""
    low, high = output.min().item(), output.max().item()
    fits = high <= ROUNDING if kind == "log-probabilities" else kind == "logits" or 0 <= low <= high <= 1
    if not fits:
        wanted = "in [0, 1]" if kind == "probability" else "of at most 0"
        raise InvalidInput(
            f"--output-kind={kind}: expected values {wanted}, found {low:.4g} to {high:.4g}: these look like logits",
            option="output_kind",
        )


def _output(evaluate: Callable[[Any], Any], inputs: Any, form: Form) -> Any:
    try:
        return evaluate(inputs)
    except Exception as error:
        message = str(error)
        known = ((name, text) for name, words, text in REMEDIES if any(word in message for word in words))
        option, remedy = next(known, (None, form.remedy))
        problem = f"the model failed on {len(inputs)} {form.inputs}: {reason(error)}"
        remedy = remedy.format(precision=form.precision) if option else remedy
        raise ModelFailed(problem, option=option, remedy=remedy) from error


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
