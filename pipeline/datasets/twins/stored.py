"""A twin's file: its dataclasses as JSON, field by field; a row of numbers is one string, so that files stay small."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from pipeline.types import Array


@dataclass(frozen=True)
class Root:
    """Columns that are drawn together: their names, the tuples of values that occur, and how often, (C,)."""

    columns: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]
    counts: Array


def encoded(value: Any) -> Any:
    """Plain JSON values of a dataclass and all that it holds."""
    if is_dataclass(value):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return as_text(value) if value.ndim == 1 else [as_text(row) for row in value]
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    return [encoded(item) for item in value] if isinstance(value, tuple) else value


def decoded(kind: Any, content: Any) -> Any:
    """The value of type ``kind`` that :func:`encoded` wrote."""
    if is_dataclass(kind):
        return kind(**{name: decoded(hint, content[name]) for name, hint in get_type_hints(kind).items()})  # type: ignore[operator]
    if kind is Array:
        return as_numbers(content) if isinstance(content, str) else np.stack([as_numbers(row) for row in content])
    inside = get_args(kind)
    if get_origin(kind) is tuple:
        return tuple(decoded(inside[0], item) for item in content)
    if inside and not isinstance(kind, UnionType):
        return {key: decoded(inside[1], item) for key, item in content.items()}
    return content


def as_text(numbers: Array) -> str:
    """A row of numbers as one string."""
    return " ".join(f"{number + 0.0:.10g}" for number in numbers)


def as_numbers(text: str) -> Array:
    """The numbers that :func:`as_text` wrote."""
    return np.array(text.split(), dtype=float)
