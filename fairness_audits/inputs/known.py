"""What a fitted model says about its inputs: their names, which of them are categories, and the categories it knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

WRAPPERS = ("best_estimator_", "estimator_")
"""Attributes that hold the model inside a tuned or wrapped model."""
MADE_UP = ("", "Column_")
"""Prefixes of the numbered names that CatBoost and LightGBM give to the columns of an array."""


def input_names(fitted: Any) -> tuple[tuple[str, ...], bool]:
    """Return the names of the columns that a model was fitted on, in its own order, and whether they may be made up.

    The names are empty if the model does not know any. CatBoost and LightGBM number the columns of an array.
    """
    count = getattr(fitted, "n_features_in_", 0)
    # The attributes of scikit-learn, CatBoost, XGBoost and LightGBM, in this order.
    for name in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        try:
            found = getattr(fitted, name, None)
            names = tuple(map(str, found() if callable(found) else () if found is None else found))
        except Exception:  # a model that was fitted on an array may refuse to name columns
            continue
        if names and count in (0, len(names)):
            numbered = any(names == tuple(f"{a}{b}" for b in range(len(names))) for a in MADE_UP)
            return names, numbered and (name != "feature_names_in_" or hasattr(fitted, "booster_"))
    return (), False


def categories(fitted: Any, columns: Sequence[Any]) -> dict[Any, tuple[Any, ...] | None]:
    """Return those of its input ``columns`` that a model treats as categories, with the values that it was fitted on.

    The values are None if the model does not tell them.
    """
    found: dict[Any, tuple[Any, ...] | None] = {}
    _encoded(fitted, tuple(columns), found)
    booster = getattr(fitted, "_Booster", None) or fitted
    if (levels := getattr(booster, "pandas_categorical", None)) is not None:  # LightGBM
        places = _places(booster, columns)
        found |= dict.fromkeys((columns[place] for place in places), None)
        if len(levels) == len(places):
            found |= {columns[place]: tuple(own) for place, own in zip(places, levels, strict=True)}
    elif hasattr(fitted, "get_cat_feature_indices"):  # CatBoost
        found |= dict.fromkeys((columns[place] for place in fitted.get_cat_feature_indices()), None)
    elif (kinds := getattr(booster, "feature_types", None)) and len(kinds) == len(columns):  # XGBoost
        found |= {name: None for name, kind in zip(columns, kinds, strict=True) if kind == "c"}
    marked = getattr(fitted, "is_categorical_", None)  # scikit-learn's boosted trees
    if marked is not None and len(marked) == len(columns):
        found |= {name: None for name, one in zip(columns, marked, strict=True) if one and name not in found}
    return found


def pandas_categories(fitted: Any) -> bool:
    """Return whether a model takes text as a pandas category: LightGBM recodes frames by its training categories."""
    return bool(getattr(getattr(fitted, "_Booster", None) or fitted, "pandas_categorical", None))


def _places(booster: Any, columns: Sequence[Any]) -> list[int]:
    """Return the positions of a LightGBM model's categories."""
    stated = booster.params.get("categorical_column", booster.params.get("categorical_feature", ()))
    if isinstance(stated, str):
        stated = [one.removeprefix("name:") for one in stated.split(",") if one and one != "auto"]
    names = list(columns)
    found = (names.index(one) if one in names else int(one) for one in stated)
    return sorted(place for place in found if place < len(names))


def _encoded(model: Any, columns: tuple[Any, ...], found: dict[Any, tuple[Any, ...] | None]) -> None:
    """Add the columns that an encoder of scikit-learn receives unchanged, through pipelines and wrappers."""
    levels = getattr(model, "categories_", None)
    if isinstance(levels, list) and len(levels) == len(columns):
        found |= {name: _plain(own) for name, own in zip(columns, levels, strict=True)}
    elif hasattr(model, "steps"):
        steps = (step for _, step in model.steps if not (step is None or step == "passthrough" or _fills(step)))
        _encoded(next(steps, None), columns, found)
    elif hasattr(model, "transformers_"):
        for _, part, chosen in model.transformers_:
            _encoded(part, _chosen(columns, chosen), found)
    elif calibrated := getattr(model, "calibrated_classifiers_", None):
        _encoded(getattr(calibrated[0], "estimator", None), columns, found)
    else:
        inside = next((one for name in WRAPPERS if (one := getattr(model, name, None)) is not None), None)
        if inside is not None:
            _encoded(inside, columns, found)


def _fills(step: Any) -> bool:
    """Return whether a step of a pipeline only fills in missing values, so that each column keeps its place."""
    return type(step).__name__.endswith("Imputer") and len(step.get_feature_names_out()) == step.n_features_in_


def _plain(levels: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(levels, dtype=object).tolist())


def _chosen(columns: tuple[Any, ...], chosen: Any) -> tuple[Any, ...]:
    """Return the columns that a ColumnTransformer selects: by name, position, slice or mask."""
    named = pd.Series(columns, index=pd.Index(columns, dtype=object))
    if isinstance(chosen, slice):
        by_name = isinstance(chosen.start, str) or isinstance(chosen.stop, str)
    else:
        chosen = [chosen] if np.ndim(chosen) == 0 else list(chosen)
        by_name = any(isinstance(one, str) for one in chosen)
    return tuple((named.loc[chosen] if by_name else named.iloc[chosen]).tolist())
