"""What a caller hands over, of whatever make, as columns of pandas."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_distinct, reason
from fairness_audits.tables.rows import VALUES

NUMPY_MISSING = ("nan", "None", "<NA>", "NaT")
"""What NumPy writes for a missing value in an array of text."""
IN_ORDER = ("polars", "duckdb", "dask")
"""The lazy frames whose rows have an order."""
Table: TypeAlias = pd.Series | pd.DataFrame


@dataclass(frozen=True)
class Given:
    """The value of an ``argument`` as ``columns`` of pandas; a column that the caller did not name is called None.

    ``shape`` is (n,) or (n, k). ``labels`` are the caller's index, None for arrays. ``header`` are the column names of
    a data frame, None for anything else.
    """

    argument: str
    columns: tuple[pd.Series, ...]
    shape: tuple[int, ...]
    labels: pd.Index | None = None
    header: pd.Index | None = None

    def __len__(self) -> int:
        return self.shape[0]


def given(argument: str, values: Any, expected: str = "to be one value a row") -> Given:
    """Read an argument, which is ``expected`` to be what an error then says.

    Raises InvalidInput for what has not one or two axes, or no columns, and for columns of the same name.
    """
    labelled = framed = isinstance(values, pd.Series | pd.DataFrame)
    table: Table | None = values if labelled else None
    if table is None and (found := _of_another_make(argument, values)) is not None:
        (table, labelled), framed = found, True
    if table is None:
        array = array_of(argument, values)
        if _axes(array) not in (1, 2):
            raise InvalidInput(f"expected {argument} {expected}, found {shown(values)}", option=argument)
        table, framed = _of_array(array), getattr(array, "dtype", np.dtype(object)).names is not None
    labels = table.index if labelled else None
    if isinstance(table, pd.DataFrame) and any(isinstance(kind, pd.SparseDtype) for kind in table.dtypes):
        _check_size(argument, table.shape)
    if isinstance(table, pd.Series):
        return Given(argument, (_plain(argument, table),), table.shape, labels)
    if framed:
        check_distinct([str(name) for name in table.columns], argument)
    names = table.columns.tolist() if framed else [None] * table.shape[1]
    columns = [_plain(argument, table.iloc[:, place]).rename(name) for place, name in enumerate(names)]
    return Given(argument, tuple(columns), table.shape, labels, table.columns if framed else None)


def array_of(argument: str, values: Any) -> Any:
    """An array of any number of axes as NumPy has it; a sequence of values stays one.

    Raises InvalidInput for what is no array, and for a sparse one that is too large to be dense.
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


def shown(values: Any) -> str:
    """What was found in place of an array, in words."""
    axes = _axes(values)
    if axes is None:
        return f"a {type(values).__name__} of parts that differ in length"
    found = f"an array of shape {np.shape(values)}" if axes else f"{values!r:.40}"
    return f"{found}: make a list of it" if hasattr(values, "__next__") else found


def _axes(values: Any) -> int | None:
    """The number of axes, 0 of what is no array; None where parts differ in length."""
    if isinstance(values, type):
        return 0
    try:
        return np.ndim(values)
    except ValueError:
        return None


def _of_another_make(argument: str, values: Any) -> tuple[Table, bool] | None:
    """A frame or series of any make but pandas' as one of pandas, and whether it has an index; None for an array."""
    if isinstance(values, np.ndarray | list | tuple) or hasattr(values, "detach"):
        return None
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(values, pyarrow.Array | pyarrow.RecordBatch):
        return values.to_pandas(), False
    import narwhals.stable.v2 as nw

    try:
        frame: Any = nw.from_native(values, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        problem = f"{argument}: more than one column has the same name"
        raise InvalidInput(problem, option=argument, remedy="Give each its own name") from error
    if isinstance(frame, nw.LazyFrame):
        if frame.implementation.value not in IN_ORDER:
            raise InvalidInput(
                f"the rows of {argument}, a {type(values).__name__}, have no order, so other arguments cannot be "
                "matched to them",
                option=argument,
                remedy=f"Make it a data frame in memory, {argument}.toPandas() for example",
            )
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame | nw.Series):
        return frame.to_pandas(), frame.implementation.is_pandas_like()
    return None


def _of_tensor(argument: str, tensor: Any) -> Any:
    """The values of a torch tensor on whatever device, with a gradient or not; bfloat16 and narrower as float32."""
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


def _of_array(array: Any) -> Table:
    """An array (n,) or (n, k) as a series or a frame, in which what is missing has no value."""
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


def _plain(argument: str, column: pd.Series) -> pd.Series:
    """A column that is neither sparse nor in another machine's order of bytes."""
    if isinstance(column.dtype, pd.SparseDtype):
        return column.astype(column.dtype.subtype)
    if isinstance(column.dtype, np.dtype) and not column.dtype.isnative:
        return column.astype(column.dtype.newbyteorder("="))
    return column


def _check_size(argument: str, shape: Sequence[int]) -> None:
    """Raise InvalidInput for a sparse array of too many values, all of which an audit needs."""
    count = int(np.prod([int(length) for length in shape], dtype=object))
    if count > VALUES:
        raise InvalidInput(
            f"{argument} is sparse. As a dense array of shape {tuple(shape)} it has {count:,} values, more than the "
            f"{VALUES:,} that an audit takes",
            option=argument,
            remedy="Give fewer rows or fewer columns",
        )
