"""Tables and figures of Maity, Xue, Yurochkin and Sun (ICLR 2021)."""

COLUMNS = (
    "steps metric metric_split regularization step_size delta alpha class_balance difference_bound angle theta_1 "
    "theta_2 intercept labels power schedule points test n_sample delta_over_truth draws high low n "
    "points_per_axis first_repetition"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
