"""Tables and figures of Maity, Xue, Yurochkin and Sun (ICLR 2021)."""

ARTEFACTS = (
    ("tables", "table_1 table_2 table_3 table_4 table_1_steps table_confidence"),
    (
        "tables",
        "table_error_ratio_compas table_group_metrics table_angles table_counts",
    ),
    ("validity", "table_validity"),
    ("comparison", "table_settings comparison"),
    ("figures", "figure_1 figure_2 figure_3 figure_tolerance figure_sensitivity"),
)
"""Tables and figures in the order of the page, by the module that makes them."""
COLUMNS = (
    "steps metric metric_split regularization step_size delta alpha class_balance difference_bound angle theta_1 "
    "theta_2 intercept labels power schedule points test n_sample delta_over_truth draws high low n "
    "points_per_axis"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
