"""Datasets, one module each: where its files come from, how they are parsed, and how they become arrays.

A module ``pipeline/datasets/<name>.py`` offers

    Config        a frozen dataclass, one field for each key of ``conf/dataset/<name>.yaml``
    prepare       rows -> :class:`fairness_audits.values.Dataset` or ``ImageDataset``; pure

and, where it is made of files,

    SOURCES       the official raw files
    parse         folder of raw files -> rows; the only function that reads files

What is drawn has neither, and gets None for rows (:mod:`pipeline.raw_data.tabular`); what comes with a dependency has
``ORIGIN`` and a ``parse`` without a folder. Besides, a module may have

    ALTERNATIVES  files of the same content under other names and checksums
    recognised    archive or folder -> origin and digests of the images in it, or None where it has others. With either
                  of the two ``parse`` also takes the name of what was found in the folder
    TWINS         the files in ``data/twins/`` with the rows of its synthetic twins: of one for each value of the
                  setting ``rows``, or of one under ``""``

Where nobody has the files of a dataset without a twin, it is absent, which is no error.
"""
