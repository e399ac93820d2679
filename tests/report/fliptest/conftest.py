"""The study of FlipTest, drawn from its reference."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace

import pandas as pd
import pytest

from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from tests.report import studies

STUDY = "fliptest"
TRIALS = 3


def fewer_steps(inputs: Inputs, steps: int) -> Inputs:
    """The same, its WGAN trained for fewer steps than published."""
    sections = copy.deepcopy(inputs.config["sections"])
    for section in sections.values():
        if section.get("transport", {}).get("name") == "wgan":
            section["transport"]["steps"] = steps
    return replace(inputs, config={**inputs.config, "sections": sections})


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """Three trials of the study at paper scale, as if of official data alone."""
    return studies.inputs_of(STUDY, repetitions=TRIALS)


@pytest.fixture(scope="session")
def of_a_twin(inputs: Inputs) -> Inputs:
    """The same, the Strategic Subject List being a twin."""
    rows = inputs.rows.assign(origin=inputs.rows["origin"].astype(object).mask(inputs.rows["dataset"] == "ssl", "twin"))
    datasets = {**inputs.datasets, "ssl": replace(inputs.datasets["ssl"], origin="twin")}
    return replace(inputs, rows=rows, datasets=datasets)


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return studies.published(STUDY)


@pytest.fixture(scope="session")
def made(inputs: Inputs, build: Callable[[str, Inputs], Artefact]) -> Mapping[str, Artefact]:
    """The study's artefacts, each made once."""
    return studies.Made(lambda name: build(name, inputs))


@pytest.fixture(scope="session")
def shorter() -> Callable[[Inputs, int], Inputs]:
    """The same run with fewer steps of the WGAN."""
    return fewer_steps
