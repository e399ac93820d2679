"""What is measured of a classifier on a dataset: one module an audit, each with ``Config`` and ``run``."""
