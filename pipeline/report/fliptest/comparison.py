"""The comparison with the published numbers of Black et al. (2020), and the settings as configured here."""

import pandas as pd

from pipeline.report.comparison_table import as_table
from pipeline.report.fliptest.facts import measurements as measurements
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.settings_table import settings_table
from pipeline.report.table import StampedTable


@artefact(
    "Each number that the paper prints beside ours, with a verdict where the settings match. Most are of one map, "
    "printed without a spread, and are held against the spread of our trials.",
)
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    return as_table(
        found,
        inputs.stamp(),
        notes=(
            "The paper's flipsets, distances and shifts come from one map each; ours from as many maps as there are "
            "trials. A map's flipset sizes change with the moment at which its training is stopped, so single sizes "
            "can agree only as far as that spread allows.",
            "The hiring data, the arrests and the identical distributions are drawn anew in every repetition: those "
            "trials are independent.",
        ),
    )


@artefact("As this run used them. What the paper leaves out, or says in appendices that are lost, is assumed here.")
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, inputs.stamp())
