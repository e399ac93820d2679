"""Nanda et al. (FAccT 2021): one function for each artefact, by its name."""

from pipeline.report.robustness_bias.agreement_tables import table_1, table_agreement, table_sigma_differences
from pipeline.report.robustness_bias.comparison import compared, comparison
from pipeline.report.robustness_bias.data_table import table_partitions
from pipeline.report.robustness_bias.distance_figures import figure_6, figure_bias, figure_digits_curves
from pipeline.report.robustness_bias.example_figure import figure_3
from pipeline.report.robustness_bias.group_tables import table_findings, table_sigma
from pipeline.report.robustness_bias.heat_maps import (
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
    figure_15,
    figure_16,
    figure_digits,
    figure_digits_smoothing,
)
from pipeline.report.robustness_bias.linear_figures import figure_4, figure_5
from pipeline.report.robustness_bias.network_tables import table_2, table_bounds, table_medians
from pipeline.report.robustness_bias.regularizer_figures import (
    figure_17,
    figure_18,
    figure_19,
    figure_20,
    figure_21,
    figure_22,
    figure_digits_regularizer,
)
from pipeline.report.robustness_bias.regularizer_table import table_regularizer
from pipeline.report.robustness_bias.settings_table import table_settings
from pipeline.report.robustness_bias.toy_figures import figure_1, figure_2
from pipeline.report.robustness_bias.training_tables import table_pretraining

__all__ = [
    "compared",
    "comparison",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figure_7",
    "figure_8",
    "figure_9",
    "figure_10",
    "figure_11",
    "figure_12",
    "figure_13",
    "figure_14",
    "figure_15",
    "figure_16",
    "figure_17",
    "figure_18",
    "figure_19",
    "figure_20",
    "figure_21",
    "figure_22",
    "figure_bias",
    "figure_digits",
    "figure_digits_curves",
    "figure_digits_regularizer",
    "figure_digits_smoothing",
    "table_1",
    "table_2",
    "table_agreement",
    "table_bounds",
    "table_findings",
    "table_medians",
    "table_partitions",
    "table_pretraining",
    "table_regularizer",
    "table_settings",
    "table_sigma",
    "table_sigma_differences",
]
