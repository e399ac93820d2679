"""The inputs of a study for its tests: its reference in the repository, or what another run would have made of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.io import load_published
from pipeline.report import artefacts
from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from pipeline.workflow import shelf
from pipeline.workflow.config import Workflow

ROOT = Path(__file__).resolve().parents[2]
REAL = ("official", "twin")


@functools.cache
def reference(study: str) -> Inputs:
    """The study's reference, of the published scale; nobody changes it."""
    return shelf.load_reference(ROOT / "data" / "reference" / study)[0]


def inputs_of(study: str, scale: str = "paper", origin: str = "official", repetitions: int | None = None) -> Inputs:
    """The reference as if all real data were of this ``origin``, at a ``scale``, with the first ``repetitions`` alone.

    A grid of classifiers has its classifiers, not repetitions, in that column: it stays whole.
    """
    whole = reference(study)
    rows = whole.rows
    if repetitions is not None:
        grid = rows["theta_1"].notna() if "theta_1" in rows else False
        rows = rows[(rows["repetition"] < repetitions) | grid]
    real = rows["origin"].isin(REAL)
    rows = rows.assign(scale=scale, origin=np.where(real, origin, rows["origin"].astype(object)))

    def of(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: replace(one, origin=origin) if one.origin in REAL else one for key, one in values.items()}

    return replace(
        whole,
        scale=scale,
        rows=rows.reset_index(drop=True),
        config=whole.config if scale == whole.scale else Workflow(scale=scale, studies=[study]).artefacts(study),
        datasets=of(whole.datasets),
        audits=of(whole.audits),
        classifiers=of(whole.classifiers),
        transports=of(whole.transports),
    )


@functools.cache
def published(study: str) -> pd.DataFrame:
    """The study's list of published numbers."""
    return load_published(ROOT / "data" / "published" / f"{study}.csv")


def build(name: str, inputs: Inputs) -> Artefact:
    """Make one artefact of any study by its name."""
    return artefacts.build(name, inputs, published(inputs.study))


def chosen(inputs: Inputs, **setting: str | float) -> np.ndarray:
    """Which rows have these settings."""
    return np.logical_and.reduce([(inputs.rows[key] == value).to_numpy(bool) for key, value in setting.items()])


def with_values(inputs: Inputs, where: np.ndarray, values: Any) -> Inputs:
    """The same with other values in some rows."""
    rows = inputs.rows.copy()
    rows.loc[where, "value"] = values
    return replace(inputs, rows=rows)


class Made(dict[str, Artefact]):
    """Artefacts by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], Artefact]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, name: str) -> Artefact:
        self[name] = self.make(name)
        return self[name]
