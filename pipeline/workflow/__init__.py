"""Configuration, plug-ins, job plan, resuming, failures and tracking, for Snakemake and Hydra."""
