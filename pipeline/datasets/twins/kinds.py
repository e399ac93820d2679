"""The kinds of twins, by the word ``kind`` in a file of ``data/twins``: what holds its content and samples its rows.

A file has the fields of a twin's dataclasses as JSON; a row of numbers is one string, so that files stay small.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from pipeline.datasets.twins import copula, model, subjects
from pipeline.types import Array

FORMAT = 1
"""Version of the JSON layout."""
LEVELS = "levels"
"""The kind of a file that names none."""
KINDS: Mapping[str, tuple[type[Any], Callable[..., pd.DataFrame]]] = {
    LEVELS: (model.Twin, model.sample),
    "copula": (copula.CopulaTwin, copula.sample),
    "subjects": (subjects.SubjectTwin, subjects.sample),
}


def written(twin: Any) -> dict[str, Any]:
    """The content of a twin's file, plain JSON values."""
    (kind,) = (name for name, (holder, _) in KINDS.items() if isinstance(twin, holder))
    return {"format": FORMAT, **({} if kind == LEVELS else {"kind": kind}), **encoded(twin)}


def read(content: Mapping[str, Any]) -> Any:
    """The twin that :func:`written` wrote; ValueError for another layout or an unknown kind."""
    kind = content.get("kind", LEVELS)
    if content.get("format") != FORMAT or kind not in KINDS:
        raise ValueError(
            f"the twin's file has format {content.get('format')!r} and is of kind {kind!r}, expected {FORMAT} and one "
            f"of {', '.join(KINDS)}: restore the one that comes with the project, or fit it again with python -m "
            "pipeline.datasets.twins.fit"
        )
    return decoded(KINDS[kind][0], content)


def sampled(content: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """As many rows as the official data keep, drawn from the twin that a file holds."""
    twin = read(content)
    return KINDS[content.get("kind", LEVELS)][1](twin, twin.rows, rng)


def encoded(value: Any) -> Any:
    """Plain JSON values of a dataclass and all that it holds."""
    if is_dataclass(value):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return model.as_text(value) if value.ndim == 1 else [model.as_text(row) for row in value]
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    return [encoded(item) for item in value] if isinstance(value, tuple) else value


def decoded(kind: Any, content: Any) -> Any:
    """The value of type ``kind`` that :func:`encoded` wrote."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: decoded(hint, content[name]) for name, hint in hints.items()})  # type: ignore[operator]
    if kind is Array:
        rows = [model.as_numbers(row) for row in ([content] if isinstance(content, str) else content)]
        return rows[0] if isinstance(content, str) else np.stack(rows)
    inside = get_args(kind)
    if get_origin(kind) is tuple:
        return tuple(decoded(inside[0], item) for item in content)
    if inside and not isinstance(kind, UnionType):
        return {key: decoded(inside[1], item) for key, item in content.items()}
    return content
