"""Trial of a user's model on the audited inputs: scores of a network, or answers of any model of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logsumexp

from fairness_audits.arguments import OutputKind
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import Form, check_alone, check_finite, row_form, tensor_of, unusable
from fairness_audits.inputs.encoding import Encoding
from fairness_audits.inputs.model import BLOCK_ROWS, Model
from fairness_audits.inputs.predictor import Predictor, check_as_handed_over, kind_of
from fairness_audits.inputs.table import sha256
from fairness_audits.messages import reason
from fairness_audits.models.outputs import ROUNDING, Kind, class_scores, detected_kind
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch


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


@dataclass(frozen=True)
class Answers:
    """A model without a gradient, as functions of points (n, d) in the columns' own units.

    ``outputs`` maps points to numbers (n, K) or (n,) of the ``kind``, which was detected from the values if
    ``detected`` is true. ``itself`` maps points to the class indices of the model's own predict, None if it has only
    outputs. ``trial`` (n, K) are the log-probabilities of the audited rows, up to a constant per row, and
    ``prediction`` (n,) their classes. ``columns`` and ``saturated`` are as in :class:`Scores`.
    ``decision_values`` tells whether the outputs are those of a decision function, and ``regression`` whether they are
    predictions of the label, less 1/2.
    """

    outputs: Callable[[Array], Array]
    itself: Callable[[Array], Array] | None
    kind: Kind
    detected: bool
    columns: int
    trial: Array
    prediction: Array
    saturated: int
    decision_values: bool
    regression: bool

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
        return likeliest(self.scores(x)) if self.itself is None else self.itself(x)


def likeliest(scores: Array) -> Array:
    """Return the class (n,) of the largest of scores (n, K). Of two equal scores it is class 1, as at a threshold."""
    return (scores[:, 1] >= scores[:, 0]).astype(np.int64) if scores.shape[1] == 2 else scores.argmax(axis=1)


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


def answered(made: Predictor, encoding: Encoding, features: Array, numbers: Array, kind: OutputKind) -> Answers:
    """Return the model as a function from points to answers, after a trial on the rows ``features`` (n, d).

    ``numbers`` (n,) are the positions of the rows in the table. Raises InvalidInput if the model fails, returns another
    shape or values that are not finite, if its outputs are random or depend on other rows, or if it answers otherwise
    to the caller's own rows.
    """
    model, form = made.model, row_form(encoding.names)

    def raw(x: Array) -> Array:
        return made.outputs(encoding.decoded(x))

    output = raw(features)
    check_finite(output, range(len(output)), form)
    check_alone(raw, features, output, form)
    rows = encoding.decoded(features).set_axis(numbers)
    predicted = None if model.predict is None else made.classes(rows)
    check_as_handed_over(made, rows, output, predicted)
    count = max(2, output.shape[1] if output.ndim == 2 else 2)
    places = {level_name(value): place for place, value in enumerate(model.classes) if len(model.classes) == count}

    def coded(found: Array) -> Array:
        return np.array([places[level_name(value)] for value in found.tolist()])

    def itself(x: Array) -> Array:
        return coded(made.classes(encoding.decoded(x)))

    own = coded(predicted) if predicted is not None and places else None
    read_as, cut = kind_of(model, output, kind)
    check_kind(output, read_as)

    def outputs(x: Array) -> Array:
        return raw(x) - cut if cut else raw(x)

    trial = log_scores(output - cut if cut else output, read_as)
    if own is not None:
        _check_agreement(model, own, trial)
    second = np.sort(trial, axis=1)[:, -2]
    return Answers(
        outputs=outputs,
        itself=None if own is None else itself,
        kind=read_as,
        # A method that scores classes determines the kind.
        detected=kind == "auto" and not (model.kind == "estimator" and model.classes),
        columns=output.shape[1] if output.ndim == 2 else 1,
        trial=trial,
        prediction=likeliest(trial) if own is None else own,
        saturated=int(np.isneginf(second).sum()),
        decision_values=model.cut == 0,
        regression=bool(cut),
    )


def _check_agreement(model: Model, own: Array, trial: Array) -> None:
    """Raise InvalidInput if the scores (n, K) fall where the model's own decisions (n,) rise."""
    for place in np.unique(own).tolist():
        margin = trial[:, place] - np.delete(trial, place, axis=1).max(axis=1)
        chosen = own == place
        if chosen.all() or np.median(margin[chosen]) >= np.median(margin[~chosen]):
            continue
        raise unusable(
            f"the scores of {model.name} contradict its decisions: they are lower where it decides for class {place}",
            remedy="Name another output, or export a model with probabilities. The audit fliptest needs only decisions",
        )


def probed(model: Model, features: torch.Tensor, names: Sequence[str], kind: OutputKind) -> Scores:
    """Return the network as a function from rows to class scores, after a trial on all rows ``features`` (n, d).

    Raises InvalidInput if the network fails, returns another shape, values that are not finite or values that
    contradict ``kind``, if its outputs are random or depend on other rows, or if there is no gradient.
    """
    import torch

    form = replace(row_form(names), without_gradient="; search='people' needs no gradient")
    with torch.no_grad():
        output = tensor_of(model.evaluate, features, form).detach().cpu()
        check_finite(output.numpy(), range(len(output)), form)
        first = features[:BLOCK_ROWS]
        check_alone(lambda x: tensor_of(model.evaluate, x, form).detach().cpu().numpy(), first, output.numpy(), form)
    scores = read(output, lambda x: tensor_of(model.evaluate, x, form), kind)
    check_gradient(scores.evaluate, features.split(BLOCK_ROWS), form)
    return scores


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
    kinds = {name: isinstance(scores, Answers) and getattr(scores, name) for name in ("decision_values", "regression")}
    return {**facts, **read_as, **kinds}


def model_words(facts: Mapping[str, Any]) -> str:
    """Return a description of the model and of how its outputs were read."""
    shape = f"{facts['output_columns']} columns" if facts["output_columns"] > 1 else "one column, class 1"
    read = " (inferred from the values)" if facts["output_kind_detected"] else ""
    return f"{facts['origin']}; output: {shape}, {facts['output_kind']}{read}"


def output_conditions(kind: Kind, detected: bool, saturated: int, unit: str) -> dict[str, Any]:
    """Return the conditions of the shared caveats on how the outputs for each ``unit`` were read."""
    return {
        "read_as_probabilities": kind == "probability" and detected and {"ROUNDING": ROUNDING},
        "saturated": saturated and {"count": saturated, "unit": unit},
    }


def check_kind(output: torch.Tensor | Array, kind: Kind) -> None:
    """Raise InvalidInput if the values cannot be of the kind that the user gave."""
    low, high = output.min().item(), output.max().item()
    fits = high <= ROUNDING if kind == "log-probabilities" else kind == "logits" or 0 <= low <= high <= 1
    if not fits:
        wanted = "in [0, 1]" if kind == "probability" else "of at most 0"
        raise InvalidInput(
            f"output_kind={kind!r}: expected values {wanted}, found {low:.4g} to {high:.4g}: these look like logits",
            option="output_kind",
        )
