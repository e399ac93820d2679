"""The comparison with the published numbers of Maity et al. (2021), and the settings as configured here."""

import pandas as pd

from pipeline.report.comparison_table import as_table
from pipeline.report.individual_fairness.facts import measurements as measurements
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.settings_table import settings_table
from pipeline.report.table import StampedTable


@artefact("Each number that the paper prints beside ours, with a verdict where the settings match.")
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    return as_table(found, inputs.stamp(("audit", "heatmaps")))


@artefact(
    "As this run used them. The paper states them for Adult and the simulation; for COMPAS it states features, "
    "tolerance, level, repetitions, networks and violation tolerance. Penalty and step size for COMPAS are those of"
    " the released code. The tables show the statistics after the number of steps stated for Adult; the attack goes"
    " on for figure 2.",
)
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, inputs.stamp())
