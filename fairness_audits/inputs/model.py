"""A user's model in any supported form, as a function of its inputs.

A model is a torch network, a fitted scikit-learn estimator or pipeline, an ONNX program, or any function. During the
audit, a torch network is on the audit's device, in its precision and in evaluation mode. You can pass the model itself,
or name it by a file, by ``path/to/file.py:name`` or by ``package.module:name``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.known import categories, input_names, pandas_categories
from fairness_audits.inputs.model_files import Computing, Onnx, opened
from fairness_audits.inputs.native import taken
from fairness_audits.inputs.state import lent, plain_torch
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

    from fairness_audits.inputs.table import Source

QUANTISED = re.compile(r"torch\.ao\.nn\.(intrinsic\.)?quantized\b")
WHAT = {
    "network": "a torch network",
    "quantised": "a quantised torch network",
    "estimator": "a scikit-learn model",
    "onnx": "an ONNX program",
    "function": "a function",
}


@dataclass(frozen=True)
class Model:
    """A model: ``evaluate`` maps inputs to its output, ``origin`` describes it, ``name`` says how it was passed.

    ``file`` is the file with the model, None for an importable module or an object. An estimator's ``classes`` are the
    label's values in the order of its outputs. Its ``columns`` are the names of its inputs. Both are empty if unknown.
    ``cut`` is the threshold on its scores, 0 for decision values, None if it has none or its scores need none.
    ``predict`` maps the same inputs to the model's own class decisions, None if it has only scores. An estimator has
    itself as ``fitted`` and its decision function as ``margins``, None if it has none; a network is its own ``fitted``.
    ``categories`` are the inputs that it treats as categories, by name, or by position if it was fitted on an array,
    with the values that it knows, None if it does not tell them. A ``regression`` predicts the label itself.
    ``numbered`` are names that its library may have made up for the columns of an array.
    """

    evaluate: Callable[[Any], Any]
    origin: str
    file: Path | None
    kind: Literal["network", "quantised", "estimator", "onnx", "function"] = "function"
    name: str = ""
    classes: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    cut: float | None = None
    predict: Callable[[Any], Any] | None = None
    fitted: Any = None
    margins: Callable[[Any], Any] | None = None
    categories: Mapping[Any, tuple[Any, ...] | None] = field(default_factory=dict)
    regression: bool = False
    numbered: tuple[str, ...] = ()

    @property
    def libraries(self) -> tuple[str, ...]:
        """Return the packages whose versions matter for the model's output, by the names they are imported under."""
        if self.kind in ("network", "quantised"):
            return ("torch",)
        fitted = any(base.__module__.startswith("sklearn.") for base in type(self.fitted).__mro__)
        return ("sklearn",) if fitted else ()

    @property
    def of_frames(self) -> bool:
        """Return whether the model takes data frames, and so columns of text."""
        return self.kind in ("estimator", "function") or (self.kind == "onnx" and bool(self.columns))

    def names_in(self, table: Collection[str]) -> tuple[str, ...]:
        """Return the table's names for the model's inputs, empty if it was fitted on an array.

        Names that the model's library may have made up count only if the table has all of them.
        """
        return self.columns or (self.numbered if set(self.numbered) <= set(table) else ())

    def of_labels(self, levels: Collection[Any]) -> Model:
        """Return the model; a regression on labels 0 and 1 decides at 1/2."""
        return replace(self, cut=HALF) if self.regression and levels and set(levels) <= {0, 1} else self


HALF = 0.5
"""Threshold on probabilities, and on a regression's predictions of labels 0 and 1."""
BLOCK_ROWS = 8192
"""Largest number of rows in one call of a model, unless the user states a smaller one."""
GPU_BLOCK_ROWS = 1 << 20
WANTED = "a torch network, a fitted scikit-learn model or a function of x"
"""The models that an audit takes."""


def in_calls(function: Callable[[Any], Any], most: int, rows: Any) -> Any:
    """Return a function's outputs for rows, from calls with at most ``most`` rows and never with one if ``most`` > 1.

    Blocks are of equal size as far as possible. A single row is passed twice, because a model may squeeze the axis of a
    batch of one. Outputs that cannot be joined are returned as the first call gave them.
    """
    n = len(rows)
    if n == 1 and most > 1:
        output = function(taken(rows, np.zeros(2, dtype=np.int64)))
        return output[:1] if getattr(output, "shape", None) or isinstance(output, list) else output
    if n <= most:
        output = function(rows)
        squeezed = n == 1 and hasattr(output, "shape") and tuple(output.shape[:1]) != (1,)
        return output.reshape(1, *output.shape) if squeezed else output
    blocks = np.array_split(np.arange(n), -(-n // most))
    outputs = []
    for block in blocks:
        outputs.append(in_calls(function, most, taken(rows, block)))
        if isinstance(outputs[-1], tuple | Mapping):
            return outputs[-1]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(outputs[0], torch.Tensor):
        return torch.cat(outputs)
    return np.concatenate([np.asarray(one) for one in outputs])


@contextmanager
def load_model(
    model: Any, trust_pickle: bool, computing: Computing, option: str = "model", wanted: str = WANTED
) -> Iterator[Model]:
    """Lend a model: the text of ``option``, which names a model (see TAKES), or an object.

    A torch network is converted, set to evaluation mode and, on exit, restored. Any other model is used unchanged; if a
    function holds a network, its caller sets the mode. Raises InvalidInput if the model cannot be found or opened, or
    is not what was ``wanted``.
    """
    file: Path | None = None
    if isinstance(model, str):
        loaded, origin, file = opened(model, trust_pickle, computing, option)
        name = model
    else:
        loaded, origin, name = model, f"{type(model).__name__} of this program", type(model).__name__
        if inspect.isclass(model):
            problem = f"expected {wanted}, found the class {model.__name__} instead of an object"
            raise InvalidInput(problem, option=option, remedy="Pass a fitted object of this class")
    with plain_torch(), lent(loaded):
        made = _model(loaded, origin, file, name, computing)
        if not callable(made.evaluate):
            place = f"{option} {model}: " if file else ""
            problem = f"{place}expected {wanted}, found an object of type {type(loaded).__name__}"
            raise InvalidInput(problem, source=file, option=option)
        on_gpu = made.kind == "network" and computing.device.type == "cuda"
        most = computing.batch_rows or (GPU_BLOCK_ROWS if on_gpu else BLOCK_ROWS)
        yield replace(
            made,
            evaluate=partial(in_calls, made.evaluate, most),
            predict=made.predict and partial(in_calls, made.predict, most),
            margins=made.margins and partial(in_calls, made.margins, most),
        )


def _model(loaded: Any, origin: str, file: Path | None, name: str, computing: Computing) -> Model:
    torch = sys.modules.get("torch")  # a caller with a network has imported torch
    if torch is not None and isinstance(loaded, torch.nn.Module):
        quantised = [home for one in loaded.modules() if QUANTISED.match(home := type(one).__module__)]
        if not hasattr(loaded, "_guards_fn"):  # exported programs have a fixed mode
            loaded.eval()
        if quantised:
            alone = any("dynamic" in home for home in quantised)
            return Model(_of_quantised(loaded, alone), origin, file, "quantised", name, fitted=loaded)
        network = loaded.to(device=computing.device, dtype=computing.dtype)
        for values in network.parameters():
            values.requires_grad_(False)
        return Model(network, origin, file, "network", name, fitted=network)
    if isinstance(loaded, Onnx):
        predict, regression = loaded.predict if loaded.decides else None, loaded.regression
        own = loaded.columns
        return Model(loaded, origin, file, "onnx", name, (), own, predict=predict, fitted=loaded, regression=regression)
    if hasattr(loaded, "predict") and not inspect.isroutine(loaded):
        return _of_estimator(Model(loaded.predict, origin, file, "estimator", name), loaded)
    return Model(loaded, origin, file, "function", name)


def _of_quantised(network: torch.nn.Module, alone: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the quantised network in its own precision, float32 on the CPU; ``alone`` takes inputs one by one."""
    import torch

    def evaluate(x: torch.Tensor) -> torch.Tensor:
        own = x.cpu().float()
        # Dynamic quantisation derives its scale from the batch.
        return torch.cat([network(one) for one in own.split(1)]) if alone else network(own)

    return evaluate


SCORES = ("predict_proba", "decision_function")
"""Methods of an estimator that score its classes. The first available one is used."""


def _of_estimator(model: Model, fitted: Any) -> Model:
    """Return the estimator as functions of a table; it gets its own columns, or an array if fitted on one."""
    (named, made_up), known = input_names(fitted), getattr(fitted, "classes_", None)
    columns = () if made_up else named
    known = () if known is None else known
    if any(np.ndim(one) for one in known):
        problem = f"{model.name} predicts {len(known)} outputs per row, but an audit needs one decision"
        raise InvalidInput(problem, source=model.name, option="model", remedy="Pass a model with one output")
    classes = tuple(np.asarray(known).tolist())
    scores = [name for name in SCORES if hasattr(fitted, name)]
    recodes = pandas_categories(fitted)
    levels = categories(fitted, columns or range(len(named) or getattr(fitted, "n_features_in_", 0)))

    def called(method: str, rows: Any) -> Array:
        if not isinstance(rows, pd.DataFrame):  # the caller's own table of another kind
            names = getattr(rows, "column_names", getattr(rows, "columns", ()))
            own = named_as(columns, names) if columns and len(names) else ()
            return np.asarray(getattr(fitted, method)(rows.select(own) if own else rows))
        wanted = columns or (named if set(named) <= set(rows.columns) else ())
        if wanted and wanted != tuple(rows.columns):
            own = named_as(wanted, rows.columns)
            check_columns(rows, own, "the model", "its input")
            rows = rows[own]
        if recodes:
            rows = rows.assign(**{name: recoded(rows[name], levels.get(name)) for name in rows})
        array = not wanted and hasattr(fitted, "n_features_in_")
        return np.asarray(getattr(fitted, method)(rows.to_numpy() if array else rows))

    def evaluate(rows: Any) -> Array:
        for method in scores:
            output = called(method, rows)
            # Decision values for pairs of classes do not determine a class.
            if not classes or output.ndim == 1 or output.shape[1] == len(classes):
                return output
        predicted = called("predict", rows)
        if not set(predicted.ravel().tolist()) <= set(classes):
            return predicted
        codes = np.array([classes.index(one) for one in predicted.ravel().tolist()])
        return codes if len(classes) <= 2 else np.eye(len(classes))[codes]

    return replace(
        model,
        evaluate=evaluate,
        classes=classes,
        columns=columns,
        numbered=named if made_up else (),
        cut=0.0 if scores == ["decision_function"] else None,
        # The predictions of a regression or of a network are scores.
        predict=partial(called, "predict") if classes or scores else None,
        fitted=fitted,
        margins=partial(called, "decision_function") if "decision_function" in scores else None,
        categories=levels,
        regression=not classes and is_regression(fitted),
    )


def recoded(column: pd.Series, known: Sequence[Any] | None) -> pd.Series:
    """Return a column of text, or one of ``known`` categories, as a pandas category; keep any other column."""
    text = str(column.dtype) in ("object", "str", "string")
    if isinstance(column.dtype, pd.CategoricalDtype) or not (text or known):
        return column
    if known is None:
        return column.astype("category")
    named = {level_name(value): value for value in known}
    own = column.map(lambda value: named.get(level_name(value), value), na_action="ignore")
    return pd.Series(pd.Categorical(own, categories=list(known)), index=column.index)


def is_regression(fitted: Any) -> bool:
    """Return whether scikit-learn, or a library with its conventions, calls a model a regressor."""
    sklearn = sys.modules.get("sklearn.base")
    try:
        return bool(sklearn and sklearn.is_regressor(fitted))
    except (AttributeError, TypeError):  # a model without scikit-learn's tags
        return False


def named_as(columns: Sequence[str], there: Iterable[str]) -> list[str]:
    """Return the table's names for an estimator's columns, because LightGBM replaces spaces with underscores."""
    names = list(map(str, there))
    known = {name.replace(" ", "_"): name for name in names if name not in columns}
    return [name if name in names else known.get(name, name) for name in columns]


def taken_columns(features: Sequence[str], label: str | None, source: Source, model: Model) -> tuple[str, ...]:
    """Return the ``features``, or without any the columns but the ``label``, on which an estimator was fitted by name.

    Features that it does not take cannot change its output. Raises InvalidInput if the table lacks a column.
    """
    named = named_as(model.names_in(source.table), source.table)
    check_columns(source.table, named, "the model was fitted on columns by name: it", source.name)
    if named and not features:
        return tuple(name for name in named if name != label)
    fewer = named and set(named) < set(features)
    return tuple(name for name in features if not fewer or name in named)


def as_the_model_says(
    model: Model,
    source: Source,
    *,
    features: Sequence[str],
    label: str | None,
    positive: str | None,
    classes: Sequence[str] | None,
) -> tuple[tuple[str, ...], str | None, Model]:
    """Return the input columns and the label's value for class 1, as far as the model knows them; and the model of it.

    Raises InvalidInput for options that contradict the model's classes, and for labels that are not among them.
    """
    known = [level_name(value) for value in model.classes]
    order = [level_name(name) for name in classes or ()]
    values: list[Any] = [] if label not in source.columns else source.table[label].dropna().unique().tolist()
    held = {level_name(value) for value in values}
    contradicts = {
        "classes": sorted(order) == sorted(known) and order != known,
        "positive": positive is not None and (len(known) > 2 or [level_name(positive)] == known[:-1]),
    }
    taken = taken_columns(features, label, source, model)
    if option := next((name for name, wrong in contradicts.items() if wrong), None):
        problem = f"{option} does not match the model, whose classes are {listed(list(map(repr, known)))} in this order"
        raise InvalidInput(problem, option=option, remedy="Leave it out, because the model knows its classes")
    unnamed = positive is None and classes is None
    if unnamed and held & set(known) and (strange := in_order(held - set(known))):
        problem = f"{source.name}: column {label!r} (label) holds {listed(strange, SHOWN)}"
        problem += f", but the model's classes are {listed(known)}"
        raise InvalidInput(problem, source=source.name, option="label", column=label, remedy="Drop these rows")
    if unnamed and len(known) == 2 and held == set(known) and held != {"0", "1"}:
        positive = known[1]
    return taken, positive, model.of_labels(values)


OTHER_AUDITS = "use an audit that needs no gradient: fliptest (decisions) or permutation (predictions)"


def no_gradient(model: Model, instead: str = OTHER_AUDITS) -> InvalidInput:
    """Return the error for a model without gradients, with an alternative ``instead``."""
    problem = f"{model.name} is {WHAT[model.kind]}, which has no gradient, but this audit follows gradients"
    return InvalidInput(problem, source=model.name, option="model", remedy=f"Pass a torch network, or {instead}")
