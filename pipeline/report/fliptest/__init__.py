"""Tables and figures of Black, Yeom and Fredrikson (FAT* 2020)."""

COLUMNS = (
    "direction source target flipset feature alpha attribute transport both split given_label point correlation "
    "dimension context depth part"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
