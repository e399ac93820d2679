"""The kinds of twins, by the word ``kind`` in a file of ``data/twins``: what holds its content and samples its rows."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from pipeline.datasets.twins import copula, model, subjects
from pipeline.datasets.twins.stored import decoded, encoded

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
