"""DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal (KDD 2020): one function for each artefact, by its name."""

from pipeline.report.permutation_tests.comparison import compared, comparison
from pipeline.report.permutation_tests.data_figures import figure_2, figure_2_race, figure_3, figure_3_race
from pipeline.report.permutation_tests.data_tables import table_auc, table_sample_size
from pipeline.report.permutation_tests.levels_table import table_levels
from pipeline.report.permutation_tests.methods_table import table_methods
from pipeline.report.permutation_tests.settings_table import table_settings
from pipeline.report.permutation_tests.simulation_figures import figure_1, figure_levels, figure_power
from pipeline.report.permutation_tests.simulation_tables import table_1

__all__ = [
    "compared",
    "comparison",
    "figure_1",
    "figure_2",
    "figure_2_race",
    "figure_3",
    "figure_3_race",
    "figure_levels",
    "figure_power",
    "table_1",
    "table_auc",
    "table_levels",
    "table_methods",
    "table_sample_size",
    "table_settings",
]
