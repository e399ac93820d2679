"""Progress of a Snakemake run: what runs now, how much is done, about how long the rest takes, and why jobs failed.

Snakemake finds this package by its name; ``--logger progress`` (set in the profiles) selects it. The package does not
depend on the pipeline. The published ``snakemake-logger-plugin-rich`` 0.5 shows neither the time left nor which jobs of
a rule run, and no progress outside a terminal.
"""

import logging
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_progress.run import Job, Run, duration
from snakemake_logger_plugin_progress.screen import Screen, last_lines, warnings

REDUNDANT = (
    "Assuming unrestricted", "Building DAG", "Cleaning up SLURM", "Complete log", "Conda environments", "Elapsed time",
    "Exiting because a job", "Group jobs", "Job stats", "Removing output files", "Select jobs", "Shutting down",
    "Singularity containers", "Using shell", "Will exit after", "WorkflowError:\nAt least one job did not complete",
)  # fmt: skip
"""How messages of Snakemake begin that add nothing to the progress and the failures."""


class LogHandler(LogHandlerBase):
    """Handler that prints the progress of a run to standard error. ``--quiet`` does not hide errors and warnings."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self.run = Run(time.monotonic())
        self.ending, self.submission = "", list[str]()
        self.detailed = _snakemake_handler(common) if common.dryrun or common.verbose or common.debug_dag else None
        self.screen = Screen(self.run, colour=not common.nocolor, quiet=bool(common.quiet))

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record. A dry run and ``--verbose`` use Snakemake's own output."""
        try:
            if self.detailed is not None:
                self.detailed.handle(record)
            elif self.screen.active:
                self.take(record, time.monotonic())
        except BrokenPipeError:
            self.screen.close()
        except Exception:  # An error here must not stop the thread that prints the errors of the run.
            self.handleError(record)

    def take(self, record: logging.LogRecord, now: float) -> None:
        """Update the state with one event and print the result."""
        event, fields, text = getattr(record, "event", None), record.__dict__, record.getMessage()
        if event == LogEvent.RUN_INFO:
            self.run.plan(fields["stats"])
            self.screen.say(self.run.planned())
            self.screen.open()
        elif event == LogEvent.RESOURCES_INFO:
            self.run.at_once(fields.get("cores"), fields.get("nodes"))
        elif event == LogEvent.JOB_INFO and fields["output"]:
            rule, values = fields["rule_name"], map(str, (fields["wildcards"] or {}).values())
            job = Job(fields["rule_msg"] or " ".join([rule, *values]), rule, now, tuple(fields["log"]))
            self.run.start(fields["jobid"], job)
            if not self.screen.live:
                self.screen.say(f"start   {job.title}")
        elif event == LogEvent.JOB_FINISHED:
            if done := self.run.finish(fields["job_id"], now):
                took = f"{done.title:<52} {duration(now - done.began):>12}"
                self.screen.say(f"done    {took}   {self.run.progress(now)}", "green")
                for line in warnings(done.log):
                    self.screen.print(line, "yellow")
        elif event == LogEvent.GROUP_ERROR:
            self.submission = [path for path in fields["aux_logs"] if path]
        elif event == LogEvent.JOB_ERROR:
            self.failed(fields, now)
        elif record.levelno >= logging.ERROR and (ending := command_ending(text)):
            self.ending = ending
        elif record.levelno >= logging.WARNING and not (self.run.failed and text.startswith(REDUNDANT)):
            self.screen.print(text, "red" if record.levelno >= logging.ERROR else "yellow")
        elif event is None and record.levelno == logging.INFO and not text.startswith(REDUNDANT):
            self.screen.say(text)

    def failed(self, fields: dict[str, Any], now: float) -> None:
        """Record and print a failure: how the job ended, and the ends of its logs, or its command if they are empty."""
        logs = [*fields["log"], *self.submission * bool(fields["indent"])]
        job = self.run.fail(fields["jobid"], fields["rule_name"], tuple(logs))
        said = (" ".join((fields["rule_msg"] or "").split()), killed(logs))
        why = self.ending or "; ".join(filter(None, said))
        lines = [f"FAILED  {job.title} after {duration(now - job.began)}" + f": {why}" * bool(why)]
        contents = {path: last_lines(Path(path)) for path in logs}
        for path, content in contents.items():
            lines.append(
                f"        log {path}" + (":" if content else " is empty" if content == [] else " does not exist")
            )
            lines += [f"        | {line}" for line in (content or ())[-12:]]
        if fields["shellcmd"] and not any(contents.values()):
            lines.append(f"        command: {fields['shellcmd']}")
        self.screen.print("\n".join(lines), "red")
        self.ending = ""

    def close(self) -> None:
        """Print how the run ended, with the failed jobs."""
        if self.screen.active:
            self.screen.close()
            if self.ending:
                self.screen.print(f"A job failed: {self.ending}", "red")
            if self.detailed is None and self.run.total:
                whole = self.run.done == self.run.total and not self.run.failed
                say = self.screen.say if whole else self.screen.print
                say(self.run.end(time.monotonic()), "green" if whole else "red")
        super().close()


def killed(logs: Iterable[str]) -> str:
    """Return why Slurm ended a job, such as by its use of memory, from the logs; "" if they do not say it."""
    texts = [Path(path).read_text(encoding="utf-8", errors="replace") for path in logs if Path(path).is_file()]
    found = re.findall(r"^slurm(?:step)?d(?:-\S+)?: error: (.+)$", "\n".join(texts), re.MULTILINE)
    return "; ".join(dict.fromkeys(line.strip("* ") for line in found))


def command_ending(message: str) -> str:
    """Extract how a command ended (``returned non-zero exit status 1``) from Snakemake's report, or return ""."""
    ended = re.fullmatch(r"RuleException:\nCalledProcessError .*\nCommand '.*' ((?:returned|died) .*)", message, re.S)
    return f"the command {ended[1].rstrip('.')}" if ended else ""


def _snakemake_handler(common: Any) -> logging.Handler:
    """Return Snakemake's own handler, for output in Snakemake's documented form."""
    from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

    handler: logging.Handler = ColorizingTextHandler(common.nocolor, sys.stdout if common.stdout else sys.stderr)
    handler.setFormatter(DefaultFormatter(common.quiet, common.show_failed_logs))
    shown = (common.debug_dag, common.verbose, common.dryrun, common.printshellcmds)
    handler.addFilter(DefaultFilter(common.quiet, *shown))
    return handler
