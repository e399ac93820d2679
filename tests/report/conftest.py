"""The study whose folder a test lies in, else that of individual fairness, drawn from its reference."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.report.artefacts import Artefact
from pipeline.report.inputs import Inputs
from pipeline.types import Dataset
from tests.report import studies


@pytest.fixture(scope="module")
def study_name(request: pytest.FixtureRequest) -> str:
    """Its name."""
    folder = request.path.parent.name
    return folder if folder in studies.REFERENCES else studies.REFERENCES[0]


@pytest.fixture(scope="module")
def inputs(study_name: str) -> Inputs:
    """The study at paper scale, official data."""
    return studies.usual(study_name)


@pytest.fixture(scope="module")
def published(study_name: str) -> pd.DataFrame:
    """The study's list of published numbers."""
    return studies.published(study_name)


@pytest.fixture(scope="module")
def made(study_name: str) -> Mapping[str, Artefact]:
    """The study's artefacts, each made once."""
    return studies.made(study_name)


@pytest.fixture(scope="session")
def prepared() -> Callable[..., dict[str, Dataset]]:
    """Prepared data that are described as the study's are, of an origin, for so many repetitions."""

    def made(origin: Any, repetitions: int) -> dict[str, Dataset]:
        found = {}
        one: Any
        for key, one in studies.inputs_of(studies.REFERENCES[0], origin=origin).datasets.items():
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
