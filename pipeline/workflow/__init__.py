"""What serves Snakemake and Hydra: configuration, plug-ins, the plan of jobs, resuming, failures, tracking."""
