"""A user's model as a function of the audit's rows, and the check that the model gets the rows that it knows.

The model is called with rows that are equal, in names, order, types and values, to those that the caller's own
``model.predict(X)`` sees.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import array_of, classes_by, row_form, tolerance, unusable
from fairness_audits.inputs.encoding import MOST_LEVELS
from fairness_audits.inputs.model import BLOCK_ROWS, Model, in_calls, named_as
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.native import Native
from fairness_audits.inputs.table import Source
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

TORCH = ("network", "quantised")
TRIED, VALUES = 30, 6
"""Number of rows, and largest number of values, with which a model is tried for codes."""
BETWEEN, SAME = 0.37, 1e-6
"""Distance of the numbers between from whole numbers, and the change of an output that rounding explains."""


@dataclass(frozen=True)
class Predictor:
    """A ``model`` of rows in the audit's form; ``inputs`` converts these, restored, to what the model takes."""

    model: Model
    native: Native
    inputs: Callable[[pd.DataFrame], Any] = field(repr=False)

    @property
    def categories(self) -> dict[str, tuple[Any, ...] | None]:
        """Return the table's columns that the model treats as categories, with the values that it knows."""
        return categories_in(self.model, list(self.native.working))

    def outputs(self, rows: pd.DataFrame, unit: str = "row") -> Array:
        """Return the model's numbers (n,) or (n, K) for rows, in its own precision."""
        return array_of(self._each(self.model.evaluate), rows, row_form(rows.columns, unit))

    def classes(self, rows: pd.DataFrame, unit: str = "row") -> Array:
        """Return the classes (n,) of the model's own predict, or numbers (n, K) that are not classes."""
        assert self.model.predict is not None
        return classes_by(self._each(self.model.predict), rows, row_form(rows.columns, unit))

    def margins(self, rows: pd.DataFrame) -> Array:
        """Return the decision function of rows, (n,) or (n, K)."""
        assert self.model.margins is not None
        return array_of(self._each(self.model.margins), rows, row_form(rows.columns))

    def _each(self, function: Callable[[Any], Any]) -> Callable[[pd.DataFrame], Any]:
        return lambda rows: in_calls(lambda some: function(self.inputs(self.native.restored(some))), BLOCK_ROWS, rows)


def categories_in(model: Model, names: Sequence[str]) -> dict[str, tuple[Any, ...] | None]:
    """Return the model's categories by the table's ``names``; a model that was fitted on an array has positions."""
    own: dict[Any, str] = dict(zip(model.columns, named_as(model.columns, names), strict=True))
    own = own or dict(enumerate(model.names_in(names) or names))
    return {own[key]: known for key, known in model.categories.items() if own.get(key) in names}


def predictor(model: Model, native: Native, computing: Computing, tensors: bool = False) -> Predictor:
    """Return the model as a function of rows.

    Networks get tensors, ONNX programs arrays, and estimators data frames. A function gets the kind of table that the
    caller passed. If it fails on two rows of this kind, it gets a data frame, an array and, if ``tensors`` is true, a
    tensor.
    """

    def renamed(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[named_as(model.columns, rows.columns)].set_axis(list(model.columns), axis="columns")

    native = native.knowing(categories_in(model, list(native.working)))

    def tensor(rows: pd.DataFrame) -> Any:
        import torch

        return torch.tensor(numbers(rows), dtype=computing.dtype, device=computing.device)

    if model.kind in TORCH:
        return Predictor(model, native, tensor)
    if model.kind == "onnx":
        form = renamed if model.columns else numbers
        with suppress(ValueError, TypeError):  # of text, which the trial refuses
            own = model.fitted.names(form(native.restored(native.working))) if model.predict else ()
            model = replace(model, classes=own)
        return Predictor(model, native, form)
    if model.kind == "estimator":
        return Predictor(model, native, pd.DataFrame.copy)  # the model may change its input
    some = native.working[:2]
    forms = native.forms()
    for inputs in [*forms, *([tensor] if tensors else [])]:
        made = Predictor(model, native, inputs)
        try:
            made.outputs(some)
        except ValueError:
            continue
        return made
    return Predictor(model, native, forms[0])


def numbers(rows: pd.DataFrame) -> Array:
    """Return rows of numbers as (n, d) float64."""
    return rows.to_numpy(dtype=np.float64, na_value=np.nan)


def check_as_handed_over(made: Predictor, rows: pd.DataFrame, outputs: Array, classes: Array | None = None) -> None:
    """Raise InvalidInput if the model answers otherwise to the caller's own rows.

    Parameters
    ----------
    made : Predictor
        The model as the audit calls it.
    rows : data frame (m, d)
        Untouched rows in the audit's form, indexed by their position in the table.
    outputs, classes : arrays (m,) or (m, K)
        The model's answers to these rows. Its own classes are compared if they are known, otherwise its outputs.
    """
    model = made.model
    if model.kind in (*TORCH, "onnx"):
        return  # they take tensors and arrays alone, so the caller's table is not an input of theirs
    compared = outputs if classes is None else classes
    answer = model.evaluate if classes is None else model.predict
    assert answer is not None
    form = row_form(rows.columns)
    try:
        read = array_of if classes is None else classes_by
        own = read(lambda places: answer(made.native.handed_over(places)), rows.index.to_numpy(), form)
    except ValueError:
        return  # the model does not take the caller's own table
    own = own.reshape(compared.shape) if own.size == compared.size else own
    if own.shape == compared.shape and {own.dtype.kind, compared.dtype.kind} <= set("fiu"):
        with np.errstate(invalid="ignore"):
            apart = np.abs(own - compared) > tolerance(compared) * (1 + np.abs(compared))
        apart |= np.isnan(own) != np.isnan(compared)
    else:
        apart = own != compared if own.shape == compared.shape else np.ones(len(rows), dtype=bool)
    places = np.flatnonzero(apart.reshape(len(rows), -1).any(axis=1))
    if len(places):
        raise _answers_otherwise(made, rows, places[np.argsort(rows.index[places])].tolist())


def _answers_otherwise(made: Predictor, rows: pd.DataFrame, places: Sequence[int]) -> InvalidInput:
    found = made.native.difference(rows, places)
    where = f"{len(places):,} of {len(rows):,} rows, the first of them row {int(rows.index[places[0]])}"
    if found is None:
        return unusable(
            f"{made.model.name} answers otherwise if it is called again with the same rows: {where} (counted from 0). "
            "Remove sources of randomness, and anything that it remembers from call to call",
            row=int(rows.index[places[0]]),
        )
    row, column, ours, theirs = found
    return InvalidInput(
        f"{made.model.name} decides otherwise about the rows of the audit than about your own: {where}. In row {row}, "
        f"column {column!r} holds {theirs!r} in your table and {ours!r} in the audit (rows counted from 0)",
        option="model",
        column=column,
        row=row,
        remedy="Store one kind of value in this column, and pass the table that the model was fitted on",
    )


def coded(made: Predictor, chosen: Collection[str]) -> tuple[str, ...]:
    """Return the columns of numbers that are codes of categories, in the order of the table.

    These are the columns that the caller has ``chosen``, those that the model says to treat as categories, and columns
    of whole numbers that behave as such: the model refuses all numbers between them, or treats these numbers alike.
    """
    native = made.native
    check_columns(native.working, chosen, "categorical", "the model's input")
    found = {*chosen, *made.categories}
    if made.model.of_frames:
        found |= {name for name in native.whole if name not in found and _behaves_as_code(made, name)}
    return tuple(name for name in native.working if name in found)


def _behaves_as_code(made: Predictor, name: str) -> bool:
    """Return whether a model treats the whole numbers of a column as names.

    Some rows get a few values of the column in turn, and then numbers between whole numbers. A model of names tells the
    values apart, but refuses the numbers between, or knows none of them.
    """
    rows, levels = made.native.working[:TRIED], np.unique(made.native.working[name].dropna())
    if not 2 < len(levels) <= MOST_LEVELS:
        return False
    values = levels[np.unique(np.linspace(0, len(levels) - 1, VALUES).astype(int))].astype(np.float64)

    def outputs(at: Array) -> Array:
        return np.stack([made.outputs(rows.assign(**{name: value})) for value in at])

    try:
        if _alike(whole := outputs(values), whole[0]):
            return False  # the model ignores the column
    except ValueError:
        return False  # the trial will say why
    try:
        return _alike(between := outputs(values + BETWEEN), between[0])
    except ValueError:
        return True


def _alike(outputs: Array, others: Array) -> bool:
    return bool(np.allclose(outputs, others, rtol=SAME, atol=SAME, equal_nan=True))


def noted(source: Source, made: Predictor, chosen: Collection[str], codes: Sequence[str]) -> Source:
    """Return the table with notes on columns that the model takes as categories and on values that it does not know."""
    numbers = [name for name in codes if name not in chosen and is_numeric_dtype(made.native.working[name].dtype)]
    found = listed([repr(name) for name in numbers], SHOWN)
    return source.noting(codes=found and {"columns": found}, unknown_categories=unknown_categories(made))


def unknown_categories(made: Predictor) -> list[dict[str, Any]]:
    """Return the columns, with the number of rows and examples, of categories that the model was not fitted on."""
    found = []
    for name, known in made.categories.items():
        if known is None:
            continue
        values = made.native.given[name]
        strange = values[values.notna() & ~values.isin(list(known))]
        if len(strange):
            examples = listed([repr(level_name(value)) for value in strange.unique().tolist()], SHOWN)
            found.append({"column": name, "count": len(strange), "examples": examples})
    return found
