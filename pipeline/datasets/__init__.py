"""Data sets, one module each: the sources of the raw files, the parser, and the preparation of arrays.

A module ``pipeline/datasets/<name>.py`` offers

    Config        a frozen dataclass, one field for each key of ``conf/dataset/<name>.yaml``
    prepare       rows -> :class:`fairness_audits.values.Dataset` or ``ImageDataset``; pure

A data set that is read from files also has

    SOURCES       the official raw files
    parse         folder of raw files -> rows; the only function that reads files

A simulated data set has neither; its ``prepare`` gets None for the rows (:mod:`pipeline.raw_data.tabular`). A data set
that comes with a dependency has ``ORIGIN`` and a ``parse`` without a folder. Optional names:

    ALTERNATIVES  files with the same content under other names and checksums
    recognised    archive or folder -> origin and digests of its images, or None for other images. With ALTERNATIVES or
                  ``recognised``, ``parse`` also takes the name of the file found in the folder
    TWINS         files in ``data/twins/`` with the rows of the synthetic twins, by the value of the setting ``rows``
                  (``""`` if there is no such setting)

If the files of a data set cannot be obtained and it has no twin, the data set is missing. This is not an error.
"""
