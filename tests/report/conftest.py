"""The study of individual fairness, whose reference the tests of the report draw from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from pipeline.types import Dataset
from tests.report import studies

STUDY = "individual_fairness"
STEPS = (5, 10, 20, 50, 100, 200, 500, 1000)


def smaller(
    scale: str = "paper", origin: str = "official", repetitions: int = 10, steps: Sequence[int] = STEPS
) -> Inputs:
    """The study at a scale, of an origin, with so many repetitions and these recorded steps of the attack."""
    inputs = studies.inputs_of(STUDY, scale, origin, repetitions)
    rows = inputs.rows
    attacked = rows["block"].isin(["audit", "as_coded"])
    return replace(inputs, rows=rows[~attacked | rows["steps"].isna() | rows["steps"].isin(steps)])


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """The study at paper scale, official data."""
    return smaller()


@pytest.fixture(scope="session")
def inputs_of() -> Callable[..., Inputs]:
    """The study at a scale, origin and number of repetitions of one's choice."""
    return smaller


@pytest.fixture(scope="session")
def prepared() -> Callable[..., dict[str, Dataset]]:
    """Prepared data that are described as the study's are, of an origin, for so many repetitions."""

    def made(origin: Any, repetitions: int) -> dict[str, Dataset]:
        found = {}
        one: Any
        for key, one in smaller(origin=origin).datasets.items():
            order = np.tile(np.arange(one.rows), (repetitions, 1))
            zeros = np.zeros(one.rows, int)
            points = {"features": np.zeros((one.rows, len(one.feature_names))), "label": zeros, "group": zeros}
            points |= one.points
            found[key] = Dataset(
                one.name, one.origin, points["features"], one.feature_names, (), points["label"], one.label_name,
                dict.fromkeys(one.levels, points["group"]), one.levels, order[:, : one.train_rows],
                order[:, -one.test_rows :], dropped=one.dropped, checksums=one.checksums,
            )  # type: ignore[arg-type]  # fmt: skip
        return found

    return made


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return studies.published(STUDY)


@pytest.fixture(scope="session")
def build() -> Callable[[str, Inputs], Artefact]:
    """Make one artefact of any study by its name."""
    return studies.build
