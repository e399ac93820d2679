"""Human-readable progress of a Snakemake run: running jobs, overall progress, failures and their reasons.

Snakemake finds this package by its name; ``--logger progress`` (set in the profiles) selects it. The package does not
depend on the pipeline: names come from rules and wildcards, details from the logs of the jobs.
"""

from snakemake_logger_plugin_progress.handler import LogHandler
from snakemake_logger_plugin_progress.settings import LogHandlerSettings

__all__ = ["LogHandler", "LogHandlerSettings"]
