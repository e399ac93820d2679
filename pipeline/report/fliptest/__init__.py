"""Black, Yeom and Fredrikson (FAT* 2020): one function for each artefact, by its name."""

from pipeline.report.fliptest.comparison import compared, comparison, table_flipsets
from pipeline.report.fliptest.flipset_tables import table_law, table_methods, table_null
from pipeline.report.fliptest.hiring_figures import figure_1, figure_5, figure_5_opposite
from pipeline.report.fliptest.law_figures import figure_6, figure_7, figure_12
from pipeline.report.fliptest.map_tables import table_1
from pipeline.report.fliptest.maps_figure import figure_maps
from pipeline.report.fliptest.methods_figure import figure_methods
from pipeline.report.fliptest.report_tables import table_ssl_weights, table_transparency_hiring
from pipeline.report.fliptest.settings_table import table_settings
from pipeline.report.fliptest.ssl_figures import figure_3, figure_4, figure_8, figure_9, figure_10, figure_11
from pipeline.report.fliptest.stability_figures import figure_2, figure_2_mean
from pipeline.report.fliptest.subgroups_table import table_subgroups
from pipeline.report.fliptest.training import table_training
from pipeline.report.fliptest.training_figure import figure_training
from pipeline.report.fliptest.which_map import table_maps

__all__ = [
    "compared",
    "comparison",
    "figure_1",
    "figure_2",
    "figure_2_mean",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_5_opposite",
    "figure_6",
    "figure_7",
    "figure_8",
    "figure_9",
    "figure_10",
    "figure_11",
    "figure_12",
    "figure_maps",
    "figure_methods",
    "figure_training",
    "table_1",
    "table_flipsets",
    "table_law",
    "table_maps",
    "table_methods",
    "table_null",
    "table_settings",
    "table_ssl_weights",
    "table_subgroups",
    "table_training",
    "table_transparency_hiring",
]
