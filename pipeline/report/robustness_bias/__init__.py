"""Tables and figures of Nanda, Dooley, Singla, Feizi and Dickerson (FAccT 2021)."""

COLUMNS = (
    "attack denominator epoch fold level model partition reason alpha penalised_level training pretrained width "
    "distance second_order"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
