"""What ``--logger-progress-...`` sets. Snakemake reads the types at run time, so they are not postponed here."""

from dataclasses import dataclass, field

from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Paths relative to the working directory; empty for none."""

    summary: str = field(default="", metadata={"help": "Text file to print at the end of a run that went well."})
    failures: str = field(default="", metadata={"help": "File for what failed and why, a line of JSON for each."})
