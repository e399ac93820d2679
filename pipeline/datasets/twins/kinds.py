"""The kinds of twins, by the word ``kind`` in a file of ``data/twins``: which module reads it and samples its rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from pipeline.datasets.twins import copula, model, subjects

LEVELS = "levels"
"""The kind of a file that names none."""
KINDS: Mapping[str, ModuleType] = {LEVELS: model, "copula": copula, "subjects": subjects}


def sampled(content: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """As many rows as the official data keep, drawn from the twin that a file holds; ValueError for an unknown kind."""
    kind = content.get("kind", LEVELS)
    if kind not in KINDS:
        raise ValueError(f"the twin's file is of kind {kind!r}, expected one of {', '.join(KINDS)}: restore the file")
    module = KINDS[kind]
    twin = module.from_json(content)
    rows: pd.DataFrame = module.sample(twin, twin.rows, rng)
    return rows
