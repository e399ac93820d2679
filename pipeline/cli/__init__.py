"""The command line for auditors: one entry, one set of manners, one module for each audit in ``pipeline.cli.audit``."""
