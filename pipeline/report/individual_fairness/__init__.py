"""Maity, Xue, Yurochkin and Sun (ICLR 2021): one function for each artefact, by the name that the study lists."""

from pipeline.report.individual_fairness.comparison import compared, comparison, table_1_steps
from pipeline.report.individual_fairness.further_figures import figure_angles, figure_sensitivity, figure_tolerance
from pipeline.report.individual_fairness.further_tables import (
    table_angles,
    table_confidence,
    table_counts,
    table_error_ratio_compas,
    table_group_metrics,
)
from pipeline.report.individual_fairness.overview_tables import table_settings, table_unfair_examples
from pipeline.report.individual_fairness.published_figures import figure_1, figure_1_diagonal, figure_2, figure_3
from pipeline.report.individual_fairness.published_tables import table_1, table_2, table_3, table_4
from pipeline.report.individual_fairness.validity import figure_validity, table_validity

__all__ = [
    "compared",
    "comparison",
    "figure_1",
    "figure_1_diagonal",
    "figure_2",
    "figure_3",
    "figure_angles",
    "figure_sensitivity",
    "figure_tolerance",
    "figure_validity",
    "table_1",
    "table_1_steps",
    "table_2",
    "table_3",
    "table_4",
    "table_angles",
    "table_confidence",
    "table_counts",
    "table_error_ratio_compas",
    "table_group_metrics",
    "table_settings",
    "table_unfair_examples",
    "table_validity",
]
