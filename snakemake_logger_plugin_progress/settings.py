"""Options ``--logger-progress-...``. Snakemake reads the annotations at run time, so they are not postponed."""

from dataclasses import dataclass, field

from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Paths relative to the working directory; empty for none."""

    summary: str = field(default="", metadata={"help": "Text file to print at the end of a successful run."})
    failures: str = field(default="", metadata={"help": "File for failures and their reasons, one line of JSON each."})
