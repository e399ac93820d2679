"""Tables and figures of Nanda, Dooley, Singla, Feizi and Dickerson (FAccT 2021)."""

ARTEFACTS = (
    ("sign_agreement", "table_1"),
    ("network_tables", "table_2"),
    ("sign_agreement", "table_agreement table_sigma_differences"),
    ("group_tables", "table_sigma"),
    ("network_tables", "table_bounds"),
    ("group_tables", "table_partitions"),
    ("regularizer", "table_regularizer table_penalties"),
    ("comparison", "table_settings"),
    ("network_tables", "table_costs"),
    ("group_tables", "table_trainings table_folds"),
    ("initial_weights", "table_pretrained"),
    ("comparison", "comparison"),
    ("example_figures", "figure_1 figure_2 figure_3"),
    ("curves", "figure_4 figure_5 figure_6"),
    ("heat_maps", "figure_7 figure_8 figure_9 figure_10 figure_11 figure_12 figure_13 figure_14 figure_15 figure_16"),
    ("regularizer", "figure_17 figure_18 figure_19 figure_20 figure_21 figure_22"),
    ("heat_maps", "figure_digits figure_digits_smoothing"),
    ("curves", "figure_digits_curves"),
    ("regularizer", "figure_digits_regularizer"),
    ("curves", "figure_training"),
)
"""Tables and figures in the order of the page, by the module that makes them."""
COLUMNS = (
    "attack denominator epoch fold level model partition reason alpha penalised_level training pretrained width "
    "distance second_order"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
