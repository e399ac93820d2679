"""Tables and figures of Black, Yeom and Fredrikson (FAT* 2020)."""

ARTEFACTS = (
    ("validation", "table_1"),
    ("which_map", "table_maps"),
    ("flipset_tables", "table_flipsets table_null table_subgroups"),
    ("methods", "table_methods"),
    ("comparison", "table_settings comparison"),
    ("flipset_figures", "figure_1"),
    ("which_map", "figure_2"),
    ("flipset_figures", "figure_3 figure_4 figure_5"),
    ("law", "figure_6 figure_7"),
    ("flipset_figures", "figure_8 figure_9 figure_10 figure_11"),
    ("law", "figure_12"),
    ("which_map", "figure_2_mean"),
    ("flipset_figures", "figure_5_opposite"),
    ("methods", "figure_methods"),
)
"""Tables and figures in the order of the page, by the module that makes them."""
COLUMNS = (
    "direction source target flipset feature alpha attribute transport both split given_label point correlation "
    "dimension context depth part"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
