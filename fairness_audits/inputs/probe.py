"""The one trial of a user's model on the audited inputs: what its outputs are, and what it decides.

:func:`answered` tries a model of rows, of any make. :func:`probed` and :func:`read` try a network whose gradient torch
follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from fairness_audits.arguments import OutputKind
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import Form, check_alone, check_finite, fractional, row_form, tensor_of, unusable
from fairness_audits.inputs.model import BLOCK_ROWS, Model
from fairness_audits.inputs.predictor import TORCH, Predictor, check_as_handed_over
from fairness_audits.inputs.table import FILL, Source, check_complete, numeric, sha256
from fairness_audits.messages import SHOWN, listed, reason
from fairness_audits.models.outputs import ROUNDING, Kind, class_scores, detected_kind
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

TWO_CLASSES: Mapping[str, int] = {"0": 0, "1": 1, "-1": 0, "False": 0, "True": 1}
"""Indices of two classes that the model does not name, keyed by the output of its predict."""


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
    decision_values = regression = False

    @property
    def prediction(self) -> Array:
        """Return the class with the largest score for each audited input, (n,)."""
        return np.asarray(self.trial.argmax(1))


@dataclass(frozen=True)
class Answers:
    """A model of rows, and its answers to the n audited rows.

    The model is a function of rows, or of points that ``decoded`` converts to rows. ``output``, (n,) or (n, K), are its
    numbers for the audited rows, in its own precision, less the ``cut`` of a regression. Their ``kind`` was detected
    from the values if ``detected`` is true. ``places`` maps the classes that the model's own predict returns to
    indices of the outputs, and ``own`` (n,) are its decisions as indices. Both are None for a model without predict,
    and for one whose classes are unknown.
    """

    predictor: Predictor
    decoded: Callable[[Any], pd.DataFrame]
    output: Array
    kind: Kind
    detected: bool
    cut: float
    places: Mapping[str, int] | None
    own: Array | None

    @property
    def columns(self) -> int:
        """Return the number of columns of the outputs."""
        return self.output.shape[1] if self.output.ndim == 2 else 1

    @property
    def decision_values(self) -> bool:
        """Return whether the outputs are those of a decision function."""
        return self.predictor.model.cut == 0

    @property
    def regression(self) -> bool:
        """Return whether the outputs are predictions of the label, less 1/2."""
        return bool(self.cut)

    @cached_property
    def trial(self) -> Array:
        """Return the log-probabilities (n, K) of the audited rows, up to a constant per row."""
        return log_scores(self.output, self.kind)

    @property
    def prediction(self) -> Array:
        """Return the decided class of each audited row, (n,)."""
        return likeliest(self.trial) if self.own is None else self.own

    @property
    def saturated(self) -> int:
        """Return the number of audited rows for which only one class has a probability above 0."""
        return int(np.isneginf(np.sort(self.trial, axis=1)[:, -2]).sum())

    def only(self, rows: Array) -> Answers:
        """Return the answers to some of the audited rows."""
        return replace(self, output=self.output[rows], own=None if self.own is None else self.own[rows])

    def outputs(self, x: Any, unit: str = "row") -> Array:
        """Return the model's numbers for points, (n,) or (n, K), in its own precision."""
        output = one_axis(self.predictor.outputs(self.decoded(x), unit))
        return output - self.cut if self.cut else output

    def scores(self, x: Any) -> Array:
        """Return log-probabilities (n, K), up to a constant per row."""
        return log_scores(self.outputs(x), self.kind)

    def probabilities(self, x: Any) -> Array:
        """Return the probabilities of the classes (n, K)."""
        scores = self.scores(x)
        return np.exp(scores - logsumexp(scores, axis=1, keepdims=True))

    def decisions(self, x: Any, unit: str = "row") -> Array:
        """Return the model's decisions (n,): from its predict if it has one, otherwise by the largest scores.

        Raises InvalidInput if its predict returns a class that it returned for no audited row and that has no name.
        """
        if self.places is None:
            return likeliest(self.scores(x))
        return placed(self.predictor.classes(self.decoded(x), unit), self.places, unit)


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


def answered(
    made: Predictor,
    rows: pd.DataFrame,
    name: str,
    kind: OutputKind | None,
    *,
    decoded: Callable[[Any], pd.DataFrame] = pd.DataFrame,
    classes: Sequence[str] | None = None,
    positive: str | None = None,
) -> Answers:
    """Return the model as a function of rows, after a trial on all ``rows`` of the table ``name``.

    Parameters
    ----------
    made : Predictor
        The model.
    rows : data frame (n, d)
        The audited rows in the audit's form, indexed by their position in the table.
    kind : output kind, optional
        The kind of the outputs; ``auto`` detects it from the values, and None also takes numbers of no known kind.
    decoded : function, optional
        Converts the points of an audit to rows.
    classes, positive : options, optional
        Names of the classes, in the order of the outputs, and of the second one, for a model that names none.

    Raises
    ------
    InvalidInput
        If the model fails, returns another shape or values that are not finite, if its answers are random or depend on
        other rows, if it answers otherwise to the caller's own rows, or if its scores contradict its decisions.
    """
    model, form = made.model, row_form(rows.columns)
    if model.kind in (*TORCH, "onnx") and not model.of_frames:
        numeric(
            Source(name, rows), list(rows), gaps=model.kind == "onnx"
        )  # reports text; other failures are the model's

    def raw(some: pd.DataFrame) -> Array:
        output = one_axis(made.outputs(some))
        check_finite(output, some.index, form)
        return output

    try:
        output = raw(rows)
    except ValueError as error:
        check_complete(Source(name, rows), f"{error}. In {name}", f"If the model cannot handle missing values, {FILL}")
        raise
    check_alone(raw, rows, output, form)
    predicted = None if model.predict is None else made.classes(rows)
    places = None if predicted is None else _places(model, predicted, output, classes, positive)
    own = None
    if predicted is not None and places is not None:
        known, own = places, placed(predicted, places)
        check_alone(lambda some: placed(made.classes(some), known), rows, own, form)
    check_as_handed_over(made, rows, output, predicted)
    read_as, cut = _kind_of(model, output, kind)
    check_kind(output, read_as)
    # A method that scores classes determines the kind.
    detected = kind == "auto" and not (model.kind == "estimator" and model.classes)
    found = Answers(made, decoded, output - cut if cut else output, read_as, detected, cut, places, own)
    if own is not None and kind is not None:
        _check_agreement(model, own, found.trial)
    return found


def one_axis(output: Array) -> Array:
    """Return outputs (n,), (n, 1) or (n, K) as (n,) or (n, K)."""
    return output[:, 0] if output.shape[1:] == (1,) else output


def _kind_of(model: Model, output: Array, wanted: OutputKind | None) -> tuple[Kind, float]:
    """Return the kind of a model's finite outputs, (n,) or (n, K), and the number to subtract from them as logits.

    The kind is ``wanted`` by the user, or inferred from the values. A regression on labels 0 and 1 decides at 1/2, also
    if its predictions leave [0, 1]. Unless ``wanted`` is None, raises InvalidInput for a model whose ``predict``
    returns other numbers: they may be logits or predictions of the label.
    """
    # Decision values may all lie between 0 and 1.
    detected: Kind = "logits" if model.cut == 0 else detected_kind(output)
    kind = detected if wanted is None or wanted == "auto" else wanted
    predicts = (model.kind == "estimator" or model.regression) and model.predict is None
    if wanted is None or kind != "logits" or not predicts:
        return kind, 0.0
    if model.cut is None and wanted == "auto":
        raise unusable(
            f"{model.name} predicts numbers from {output.min():.4g} to {output.max():.4g}, which are neither classes "
            "nor probabilities",
            option="output_kind",
            remedy="If they are logits, use output_kind='logits'. If they predict labels, pass a function that "
            "returns 1 for the positive decision and 0 for the other",
        )
    return kind, model.cut or 0.0


def _places(
    model: Model, found: Array, output: Array, classes: Sequence[str] | None, positive: str | None
) -> Mapping[str, int] | None:
    """Return the output indices of the classes that predict returns, None if they are unknown or scores."""
    if fractional(found):
        return None
    names, count = names_in(found), output.shape[1] if output.ndim == 2 else 2
    own = {level_name(value): place for place, value in enumerate(model.classes)}
    if own:
        return own if len(own) == count and set(names) <= set(own) else None
    given = {level_name(value): place for place, value in enumerate(classes or ())}
    # The label value of the model's class 1. The values 0 and 1 already are class numbers.
    one = None if positive is None else level_name(positive)
    stated = (
        {} if count > 2 or one not in names or set(names) <= {"0", "1"} else {two: int(two == one) for two in names}
    )
    unnamed = {str(place): place for place in range(count)} if count > 2 else TWO_CLASSES
    fitting = (known for known in (given, stated, unnamed) if set(names) <= set(known) and len(names) <= count)
    return next(fitting, None)


def names_in(found: Array) -> list[str]:
    """Return the names of the classes in (n,)."""
    return list(dict.fromkeys(map(level_name, pd.unique(found.ravel()).tolist())))


def placed(found: Array, places: Mapping[str, int], unit: str = "row") -> Array:
    """Return classes (n,) as indices of the outputs. Raises InvalidInput for a class without an index."""
    codes, values = pd.factorize(found)
    names = list(map(level_name, values.tolist()))
    if strange := [name for name in names if name not in places]:
        raise InvalidInput(
            f"the model's predict returns {listed(strange, SHOWN)} for {unit}s, but its classes are "
            f"{listed(list(places), SHOWN)}",
            option="predict",
            remedy="Correct the model, or pass a function that returns its scores",
        )
    return np.array([places[name] for name in names])[codes]


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
    kinds = {name: getattr(scores, name) for name in ("decision_values", "regression")}
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
