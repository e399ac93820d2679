"""Tables and figures of DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal (KDD 2020)."""

ARTEFACTS = (
    ("simulations", "table_1 table_levels table_directions"),
    ("data", "table_auc"),
    ("methods", "table_methods"),
    ("data", "table_sample_size"),
    ("comparison", "table_settings comparison"),
    ("simulations", "figure_1"),
    ("data", "figure_2 figure_3 figure_2_race figure_3_race"),
    ("simulations", "figure_levels figure_power"),
)
"""Tables and figures in the order of the page, by the module that makes them."""
COLUMNS = (
    "attribute group alpha auc draws n_a n_b positives_a positives_b simulations test difference metric n rate "
    "bin_high bin_low threshold case sample smallest_cell"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
