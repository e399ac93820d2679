"""The comparison with the published numbers of Maity et al. (2021), and the settings as configured here."""

import pandas as pd

from pipeline.report.comparison_table import as_table
from pipeline.report.individual_fairness.facts import measurements as measurements
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.settings_table import settings_table
from pipeline.report.table import StampedTable


@artefact("Each published number beside ours. Numbers with matching settings have a verdict.")
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    return as_table(found, inputs.stamp(("audit", "heatmaps")))


@artefact(
    "The paper states all settings for Adult and the simulation. For COMPAS, it states features, tolerance, level, "
    "repetitions, networks and violation tolerance, and we take penalty and step size from the released code. The "
    "tables show the statistics after the number of steps that the paper states for Adult. For Figure 2, "
    "the attack takes more steps.",
)
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, inputs.stamp())
