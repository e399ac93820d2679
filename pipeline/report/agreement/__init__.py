"""The fifth study: whether the audits of the four papers agree on the same models."""

ARTEFACTS = (
    ("tables", "table_adult table_compas table_law table_concordance table_pairs table_flipsets"),
    ("figures", "figure_agreement"),
)
"""Tables and figures in the order of the page, by the module that makes them."""
COLUMNS = (
    "alpha delta metric metric_split regularization step_size steps attribute bootstraps direction feature "
    "flipset permutations source target transport split draws test threshold distance level"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
