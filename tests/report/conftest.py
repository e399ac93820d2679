"""The study whose folder a test lies in, else that of individual fairness, drawn from its reference."""

import pandas as pd
import pytest

from pipeline.report.inputs import Inputs
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
