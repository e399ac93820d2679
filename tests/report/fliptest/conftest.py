"""The study of FlipTest with a twin, and with maps that were trained for less long."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.report.inputs import Inputs
from tests.report import studies


@pytest.fixture(scope="module")
def of_a_twin(inputs: Inputs) -> Inputs:
    """The study, the Strategic Subject List being a twin."""
    rows = inputs.rows.assign(origin=inputs.rows["origin"].astype(object).mask(inputs.rows["dataset"] == "ssl", "twin"))
    datasets = {**inputs.datasets, "ssl": replace(inputs.datasets["ssl"], origin="twin")}
    return replace(inputs, rows=rows, datasets=datasets)


@pytest.fixture(scope="session")
def shorter() -> Callable[[Inputs, int], Inputs]:
    """The same run with fewer steps of the WGAN."""
    return lambda inputs, steps: studies.configured(inputs, "transport", "steps", steps, name="wgan")
