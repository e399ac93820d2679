"""A study's artefacts, found by name: each is a public function of the study's module in this package."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import pandas as pd

from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.style import paper
from pipeline.report.table import Table

Artefact: TypeAlias = Table | Picture


def find(study: str, name: str) -> Callable[..., Artefact]:
    """The function that makes the artefact ``name``.

    Raises ValueError for a study without a module here, and for a name that it does not have, with the nearest.
    """
    module_name = f"pipeline.report.{study}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        path = module_name.replace(".", "/")
        raise ValueError(f"study {study!r} has no artefacts: write {path}.py or {path}/__init__.py") from error
    known = sorted(key for key in module.__all__ if key.startswith(("table_", "figure_")) or key == "comparison")
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f": did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"study {study!r} has no artefact {name!r}{hint} There are: {', '.join(known)}")
    function: Callable[..., Artefact] = getattr(module, name)
    return function


def build(name: str, inputs: Inputs, published: pd.DataFrame, caption: str = "") -> Artefact:
    """Make one artefact. Only a function with a parameter ``published`` is given the published numbers."""
    function = find(inputs.study, name)
    with paper():
        if "published" in inspect.signature(function).parameters:
            made = function(inputs, published)
        else:
            made = function(inputs)
    return replace(made, caption=caption)


def label(name: str, names: list[str]) -> str:
    """How an artefact is numbered: as published for ``table_3``, else S1, S2, ... in the order of the study's list.

    The comparison has no number.
    """
    kind, _, rest = name.partition("_")
    if not rest:
        return name.capitalize()
    if rest.isdigit():
        return f"{kind.capitalize()} {rest}"
    own = [n for n in names if n.startswith(f"{kind}_") and not n.partition("_")[2].isdigit()]
    return f"{kind.capitalize()} S{own.index(name) + 1}"
