"""The comparison with the published numbers of Black et al. (2020), and the settings as configured here."""

import pandas as pd

from pipeline.report.comparison_table import as_table
from pipeline.report.fliptest.facts import measurements as measurements
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.settings_table import settings_table
from pipeline.report.table import StampedTable


@artefact(
    "Each published number beside ours. Numbers with matching settings have a verdict. Most published numbers are from "
    "one map and have no spread. We compare them with the spread of our trials.",
)
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    return as_table(
        found,
        inputs.stamp(),
        notes=(
            "The paper's flipsets, distances and shifts are from one map each. Ours are from one map per trial. The "
            "size of a flipset depends on when the training of the map stops, so single sizes can agree only within "
            "this spread.",
            "The hiring data, the arrests and the identical distributions are drawn again in every repetition, so "
            "these trials are independent.",
        ),
    )


@artefact(
    "We assume the settings that the paper does not state, and the settings in its appendices, which we do not have."
)
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, inputs.stamp())
