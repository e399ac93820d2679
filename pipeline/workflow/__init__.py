"""Configuration, plug-ins, points of studies, refusals, the lock of a run and tracking, for Snakemake and Hydra."""
