"""Datasets, one module each: where its files come from, how they are parsed, and how they become arrays.

A module ``pipeline/datasets/<name>.py`` offers

    SOURCES   the official raw files (``()`` when the data are simulated)
    TWIN      the file in ``data/twins/`` that holds the fitted model of its synthetic twin, or None
    Config    a frozen dataclass, one field for each key of ``conf/dataset/<name>.yaml``
    parse     folder of raw files -> data frame; the only function that reads files
    prepare   data frame -> :class:`pipeline.types.Dataset`; pure

and, where there is a twin, ``filtered`` (the rows that the dataset keeps) and ``TWIN_ROOT`` (the columns whose joint
distribution the twin holds as a table). ``TWIN_KIND`` names a twin's model, where it is none by levels. A dataset that
can be made of several selections of its rows has a key ``rows`` in its Config, and a twin for each: ``TWINS``, file by
selection. Datasets that are drawn from an equation share :mod:`pipeline.datasets.drawn`.
"""
