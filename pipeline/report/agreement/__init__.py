"""The fifth study: whether the audits of the four papers agree on the same models."""

ARTEFACTS = (
    ("tables", "table_adult table_compas table_law table_concordance table_pairs table_flipsets"),
    ("figures", "figure_agreement"),
)
"""Tables and figures in the order of the page, by the module that makes them."""
