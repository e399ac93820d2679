"""Progress of a Snakemake run that a person can follow: which job, how far, what failed and why.

Snakemake finds this package by its name; ``--logger progress`` (set in the profiles) selects it. It knows nothing of
the pipeline: names come from rules and wildcards, details from the jobs' own logs.
"""

from snakemake_logger_plugin_progress.handler import LogHandler
from snakemake_logger_plugin_progress.settings import LogHandlerSettings

__all__ = ["LogHandler", "LogHandlerSettings"]
