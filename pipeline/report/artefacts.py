"""A table or figure of a study, made by its name."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TypeAlias

import pandas as pd

from pipeline.report import registry
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.style import paper
from pipeline.report.table import Table

Artefact: TypeAlias = Table | Picture


def build(name: str, inputs: Inputs, published: pd.DataFrame) -> Artefact:
    """Make one artefact, with its caption. Only a function with a parameter ``published`` is given those numbers."""
    make = registry.find(inputs.study, name)
    seen = {"published": published} if "published" in inspect.signature(make).parameters else {}
    with paper():
        made: Artefact = make(inputs, **seen)
    return replace(made, caption=registry.one(inputs.study, name).caption)
