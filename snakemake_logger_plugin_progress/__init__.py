"""Progress of a Snakemake run: what runs now, how much is done, about how long the rest takes, and why jobs failed.

Snakemake finds this package by its name; ``--logger progress`` (set in the profiles) selects it. The package does not
depend on the pipeline. The published ``snakemake-logger-plugin-rich`` 0.5 shows neither the time left nor which jobs of
a rule run, and no progress outside a terminal.
"""

import logging
import sys
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_progress.logs import command_ending, killed, last_lines, warnings
from snakemake_logger_plugin_progress.run import Job, Run, duration

REDUNDANT = (
    "Assuming unrestricted", "Building DAG", "Cleaning up SLURM", "Complete log", "Conda environments", "Elapsed time",
    "Exiting because a job", "Group jobs", "Job stats", "Removing output files", "Select jobs", "Shutting down",
    "Singularity containers", "Using shell", "Will exit after", "WorkflowError:\nAt least one job did not complete",
)  # fmt: skip
"""How messages of Snakemake begin that add nothing to the progress and the failures."""


class LogHandler(LogHandlerBase):
    """Handler that prints the progress of a run to standard error, on a terminal above a live display of running jobs.

    ``--quiet`` does not hide errors and warnings.
    """

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self.run, self.quiet, self.active = Run(time.monotonic()), bool(common.quiet), True
        self.ending, self.submission = "", list[str]()
        self.detailed = _snakemake_handler(common) if common.dryrun or common.verbose or common.debug_dag else None
        self.console = Console(stderr=True, no_color=common.nocolor or None, highlight=False, markup=False)
        self.live: Live | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record. A dry run and ``--verbose`` use Snakemake's own output."""
        try:
            if self.detailed is not None:
                self.detailed.handle(record)
            elif self.active:
                self.take(record, time.monotonic())
        except BrokenPipeError:
            self.active = False
        except Exception:  # An error here must not stop the thread that prints the errors of the run.
            self.handleError(record)

    def take(self, record: logging.LogRecord, now: float) -> None:
        """Update the state with one event and print the result."""
        event, fields, text = getattr(record, "event", None), record.__dict__, record.getMessage()
        if event == LogEvent.RUN_INFO:
            self.run.plan(fields["stats"])
            self.say(self.run.planned())
            self.show()
        elif event == LogEvent.RESOURCES_INFO:
            self.run.at_once(fields.get("cores"), fields.get("nodes"))
        elif event == LogEvent.JOB_INFO and fields["output"]:
            rule, values = fields["rule_name"], map(str, (fields["wildcards"] or {}).values())
            job = Job(fields["rule_msg"] or " ".join([rule, *values]), rule, now, tuple(fields["log"]))
            self.run.start(fields["jobid"], job)
            if not self.live:
                self.say(f"start   {job.title}")
        elif event == LogEvent.JOB_FINISHED:
            if done := self.run.finish(fields["job_id"], now):
                took = f"{done.title:<52} {duration(now - done.began):>12}"
                self.say(f"done    {took}   {self.run.progress(now)}", "green")
                for line in warnings(done.log):
                    self.print(line, "yellow")
        elif event == LogEvent.GROUP_ERROR:
            self.submission = [path for path in fields["aux_logs"] if path]
        elif event == LogEvent.JOB_ERROR:
            self.failed(fields, now)
        elif record.levelno >= logging.ERROR and (ending := command_ending(text)):
            self.ending = ending
        elif record.levelno >= logging.WARNING and not (self.run.failed and text.startswith(REDUNDANT)):
            self.print(text, "red" if record.levelno >= logging.ERROR else "yellow")
        elif event is None and record.levelno == logging.INFO and not text.startswith(REDUNDANT):
            self.say(text)

    def failed(self, fields: dict[str, Any], now: float) -> None:
        """Record and print a failure: how the job ended, and the ends of its logs, or its command if they are empty."""
        logs = [*fields["log"], *self.submission * bool(fields["indent"])]
        job = self.run.fail(fields["jobid"], fields["rule_name"], tuple(logs))
        said = (" ".join((fields["rule_msg"] or "").split()), killed(logs))
        why = self.ending or "; ".join(filter(None, said))
        lines = [f"FAILED  {job.title} after {duration(now - job.began)}" + f": {why}" * bool(why)]
        contents = {path: last_lines(path)[-12:] for path in logs}
        for path, content in contents.items():
            lines.append(f"        log {path}{':' if content else ' is empty or does not exist'}")
            lines += [f"        | {line}" for line in content]
        if fields["shellcmd"] and not any(contents.values()):
            lines.append(f"        command: {fields['shellcmd']}")
        self.print("\n".join(lines), "red")
        self.ending = ""

    def say(self, text: str, style: str = "") -> None:
        """Print lines, unless the user asked for quiet."""
        if not self.quiet:
            self.print(text, style)

    def print(self, text: str, style: str = "") -> None:
        """Print lines, in colour on a terminal."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    def show(self) -> None:
        """Start the live display, which is at the bottom of a terminal."""
        if not self.quiet and self.console.is_terminal and not self.console.is_dumb_terminal:
            self.live = Live(get_renderable=lambda: picture(self.run), console=self.console, refresh_per_second=2,
                             transient=True, redirect_stdout=False, redirect_stderr=False)  # fmt: skip
            self.live.start()

    def close(self) -> None:
        """Print how the run ended, with the failed jobs."""
        if self.live:
            self.live.stop()
        if self.active:
            self.active = False
            if self.ending:
                self.print(f"A job failed: {self.ending}", "red")
            if self.detailed is None and self.run.total:
                whole = self.run.done == self.run.total and not self.run.failed
                (self.say if whole else self.print)(self.run.end(time.monotonic()), "green" if whole else "red")
        super().close()


def picture(run: Run) -> Group:
    """Render each running job with its time and the last line of its log, and the overall progress."""
    now, rows = time.monotonic(), []
    for job in list(run.running.values()):
        last = next((lines[-1] for path in job.log if (lines := last_lines(path))), "")
        line = "   ".join(filter(None, (job.title, duration(now - job.began), last)))
        rows.append(Text(f"  {line}", no_wrap=True, overflow="ellipsis", style="cyan"))
    overall = Table.grid(padding=(0, 2))
    overall.add_row(ProgressBar(max(run.total, 1), run.done, width=24), run.progress(now))
    return Group(*rows, overall)


def _snakemake_handler(common: Any) -> logging.Handler:
    """Return Snakemake's own handler, for output in Snakemake's documented form."""
    from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

    handler: logging.Handler = ColorizingTextHandler(common.nocolor, sys.stdout if common.stdout else sys.stderr)
    handler.setFormatter(DefaultFormatter(common.quiet, common.show_failed_logs))
    shown = (common.debug_dag, common.verbose, common.dryrun, common.printshellcmds)
    handler.addFilter(DefaultFilter(common.quiet, *shown))
    return handler
