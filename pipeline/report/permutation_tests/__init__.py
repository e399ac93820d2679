"""Tables and figures of DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal (KDD 2020)."""

COLUMNS = (
    "attribute group alpha auc draws n_a n_b positives_a positives_b simulations test difference metric n rate "
    "bin_high bin_low threshold case sample smallest_cell first_repetition"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
