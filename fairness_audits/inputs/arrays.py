"""Conversion of a caller's arrays and data frames, of any library, to pandas columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_distinct, reason
from fairness_audits.tables.groupings import CROSS
from fairness_audits.tables.rows import VALUES

NUMPY_MISSING = ("nan", "None", "<NA>", "NaT")
"""NumPy's text for a missing value in an array of strings."""
IN_ORDER = ("polars", "duckdb", "dask")
"""Lazy frames with ordered rows."""
PandasTable: TypeAlias = pd.Series | pd.DataFrame


@dataclass(frozen=True)
class Argument:
    """The value of an ``argument`` as pandas ``columns``; unnamed columns have the name None.

    ``shape`` is (n,) or (n, k). ``labels`` are the caller's index, None for arrays. ``header`` holds the column names
    of a data frame, None for anything else.
    """

    argument: str
    columns: tuple[pd.Series, ...]
    shape: tuple[int, ...]
    labels: pd.Index | None = None
    header: pd.Index | None = None

    def __len__(self) -> int:
        return self.shape[0]


def read_argument(argument: str, values: Any, expected: str = "to have one value per row") -> Argument:
    """Read an argument; ``expected`` describes the expected value in errors.

    Raises InvalidInput unless the value has one or two axes and at least one column, with distinct names.
    """
    labelled = framed = isinstance(values, pd.Series | pd.DataFrame)
    table: PandasTable | None = values if labelled else None
    if table is None and (found := _of_another_make(argument, values)) is not None:
        (table, labelled), framed = found, True
    if table is None:
        array = array_of(argument, values)
        if _axes(array) not in (1, 2):
            problem = f"expected {argument} {expected}, found {shown(values)}"
            remedy = in_python(argument, values) if isinstance(values, str) else ""
            raise InvalidInput(problem, option=argument, remedy=remedy)
        table, framed = _of_array(array), getattr(array, "dtype", np.dtype(object)).names is not None
    labels = table.index if labelled else None
    if isinstance(table, pd.DataFrame) and any(isinstance(kind, pd.SparseDtype) for kind in table.dtypes):
        _check_size(argument, table.shape)
    if isinstance(table, pd.Series):
        return Argument(argument, (_plain(table),), table.shape, labels)
    if framed:
        check_distinct([str(name) for name in table.columns], argument)
    names = table.columns.tolist() if framed else [None] * table.shape[1]
    columns = [_plain(table.iloc[:, place]).rename(name) for place, name in enumerate(names)]
    return Argument(argument, tuple(columns), table.shape, labels, table.columns if framed else None)


def array_of(argument: str, values: Any) -> Any:
    """Return an array with any number of axes as a NumPy array; a sequence of values stays a sequence.

    Raises InvalidInput if the value is not an array, or is a sparse array too large to be dense.
    """
    if hasattr(values, "detach"):
        return _of_tensor(argument, values)
    if hasattr(values, "toarray") or hasattr(values, "todense"):
        _check_size(argument, values.shape)
        return np.asarray(values.toarray() if hasattr(values, "toarray") else values.todense())
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):
        return values.get()
    if isinstance(values, np.ma.MaskedArray | pd.Index | pd.api.extensions.ExtensionArray):
        return values
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | memoryview | range):
        return [_of_tensor(argument, one)[()] if hasattr(one, "detach") else one for one in values]
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{argument} cannot be read as an array: {reason(error)}", option=argument) from error


def in_python(argument: str, text: str) -> str:
    """Return how Python spells the text with which the command describes an argument: ``age>=40``, ``sex*race``."""
    *before, last = text.split(CROSS)
    if before:
        return f"Pass the columns: {argument}=frame[{[one.strip() for one in (*before, last)]}], cross=True"
    column, relation, value = ([one.strip() for one in re.split(r"(>=|<=|>|<|=)", text, maxsplit=1)] + ["", ""])[:3]
    values = f"frame[{column!r}]"
    if relation == "=":
        values = f"({values} == {value!r}).rename({text!r})"
    elif relation:
        values = f"({values} {relation} {value}).rename({text!r})"
    return f"Pass its values: {argument}={values}"


def is_table(argument: str, values: Any) -> bool:
    """Return whether a value is a data frame of any make or an array of two axes."""
    return hasattr(values, "columns") or _axes(array_of(argument, values)) == 2


def shown(values: Any) -> str:
    """Return a description of a value that is not an array."""
    axes = _axes(values)
    if axes is None:
        return f"a {type(values).__name__} of parts that differ in length"
    if hasattr(values, "__next__"):
        return f"an iterator ({type(values).__name__}): make a list of it"
    return f"an array of shape {np.shape(values)}" if axes else f"{values!r:.40}"


def _axes(values: Any) -> int | None:
    """Return the number of axes: 0 if the value is not an array, None if its parts differ in length."""
    if isinstance(values, type):
        return 0
    try:
        return np.ndim(values)
    except ValueError:
        return None


def _of_another_make(argument: str, values: Any) -> tuple[PandasTable, bool] | None:
    """Convert a frame of another library to pandas; return it and whether it has an index, None for an array."""
    if isinstance(values, np.ndarray | list | tuple) or hasattr(values, "detach"):
        return None
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(values, pyarrow.Array | pyarrow.ChunkedArray | pyarrow.RecordBatch):
        return _to_pandas(argument, values), False
    import narwhals.stable.v2 as nw

    try:
        frame: Any = nw.from_native(values, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        problem = f"{argument} has several columns with the same name"
        raise InvalidInput(problem, option=argument, remedy="Rename them") from error
    if isinstance(frame, nw.LazyFrame):
        if frame.implementation.value not in IN_ORDER:
            raise InvalidInput(
                f"the rows of {argument}, a {type(values).__name__}, have no order, so other arguments cannot be "
                "matched to them",
                option=argument,
                remedy=f"Convert it to a data frame in memory, such as {argument}.toPandas()",
            )
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame | nw.Series):
        return _to_pandas(argument, frame), frame.implementation.is_pandas_like()
    return None


def _to_pandas(argument: str, values: Any) -> PandasTable:
    """Convert Arrow's arrays, or narwhals' frames. Raises InvalidInput for values that pandas cannot hold."""
    try:
        return values.to_pandas()
    except (TypeError, ValueError, NotImplementedError) as error:
        raise InvalidInput(f"{argument} cannot be converted to pandas: {reason(error)}", option=argument) from error


def _of_tensor(argument: str, tensor: Any) -> Any:
    """Return the values of a torch tensor, detached and on the CPU; bfloat16 and narrower as float32."""
    plain = tensor.detach()
    if plain.is_quantized:
        plain = plain.dequantize()
    if "strided" not in str(plain.layout):
        _check_size(argument, plain.shape)
        plain = plain.to_dense()
    plain = plain.cpu().resolve_conj().resolve_neg()
    try:
        return plain.numpy()
    except TypeError:
        return plain.float().numpy()


def _of_array(array: Any) -> PandasTable:
    """Convert an array (n,) or (n, k) to a series or a frame, with missing values as such."""
    if isinstance(array, list):
        return pd.Series(array) if np.ndim(array) == 1 else pd.DataFrame([list(row) for row in array])
    kind = getattr(array, "dtype", np.dtype(object)).kind
    if kind == "S":
        array = np.char.decode(array, "utf-8")
    if kind in "SU" and not isinstance(array, np.ma.MaskedArray):
        missing, array = np.isin(array, NUMPY_MISSING), array.astype(object)
        array[missing] = None
    plain = np.asarray(array) if isinstance(array, np.matrix) else array
    return pd.DataFrame(plain) if np.ndim(plain) == 2 or plain.dtype.names else pd.Series(plain)


def _plain(column: pd.Series) -> pd.Series:
    """Return a dense column in native byte order."""
    if isinstance(column.dtype, pd.SparseDtype):
        return column.astype(column.dtype.subtype)
    if isinstance(column.dtype, np.dtype) and not column.dtype.isnative:
        return column.astype(column.dtype.newbyteorder("="))
    return column


def _check_size(argument: str, shape: Sequence[int]) -> None:
    """Raise InvalidInput for a sparse array with too many values, because an audit needs all of them."""
    count = int(np.prod([int(length) for length in shape], dtype=object))
    if count > VALUES:
        problem = (
            f"{argument} is sparse. As a dense array of shape {tuple(shape)} it has {count:,} values, more than the "
            f"{VALUES:,} that an audit takes"
        )
        raise InvalidInput(problem, option=argument, remedy="Pass fewer rows or fewer columns")
