"""The study of permutation tests, drawn from its reference."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from pipeline.report.inputs import Inputs
from tests.report import studies

STUDY = "permutation_tests"


def simulated(scale: str = "paper", simulations: int | None = None, origin: str = "official") -> Inputs:
    """The study with so many simulations of each setting, where that is said."""
    inputs = studies.inputs_of(STUDY, scale, origin)
    if simulations is None:
        return inputs
    sections = copy.deepcopy(inputs.config["sections"])
    for section in sections.values():
        if "simulations" in section["audit"]:
            section["audit"]["simulations"] = simulations
    asked = inputs.rows["simulations"]
    rows = inputs.rows.assign(simulations=asked.where(asked.isna(), simulations))
    return replace(inputs, rows=rows, config={**inputs.config, "sections": sections})


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """The study at paper scale, official data."""
    return simulated()


@pytest.fixture(scope="session")
def inputs_of() -> Callable[..., Inputs]:
    """The study at a scale, a number of simulations and an origin of one's choice."""
    return simulated


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return studies.published(STUDY)
