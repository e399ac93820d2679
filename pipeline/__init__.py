"""A reproducible pipeline that regenerates studies of unfairness in machine-learned models."""

__version__ = "0.1.0"
