"""Log handler that turns Snakemake's events into changes of the run's state and printed lines."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_progress import lines
from snakemake_logger_plugin_progress.journal import Journal
from snakemake_logger_plugin_progress.run import Job, Run
from snakemake_logger_plugin_progress.screen import WHOLE, Screen, end_of, last_lines


class LogHandler(LogHandlerBase):
    """Handler that prints the progress of a run to standard error. ``--quiet`` does not hide errors and warnings."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        common = self.common_settings
        self.run = Run(began=time.monotonic())
        self.nothing_to_do = False
        self.made: list[tuple[str, ...]] = []
        self.ending = ""
        self.journal = Journal(getattr(self.settings, "failures", None) or "")
        self.detailed = _snakemake_handler(common) if common.dryrun or common.verbose or common.debug_dag else None
        self.quiet = bool(common.quiet)
        self.screen = Screen(lambda: self.run, colour=not common.nocolor, quiet=self.quiet)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record. A dry run and ``--verbose`` use Snakemake's own output."""
        try:
            if not self.screen.open_for_lines:
                return
            if self.detailed is not None:
                self.detailed.handle(record)
            else:
                self.take(record, time.monotonic())
        except BrokenPipeError:
            self.screen.close()
        except Exception:  # An error here must not stop the thread that prints the errors of the run.
            self.handleError(record)

    def take(self, record: logging.LogRecord, now: float) -> None:
        """Update the state with one event and print the result."""
        event, fields = getattr(record, "event", None), record.__dict__
        if event == LogEvent.RUN_INFO:
            self.run = self.run.plan(fields["stats"])
            self.journal.begin()
            self.say(lines.plan(self.run))
            self.screen.open()
        elif event == LogEvent.RESOURCES_INFO:
            self.run = _with_cores(self.run, fields)
        elif event == LogEvent.JOB_INFO:
            self.started(fields, now)
        elif event == LogEvent.JOB_FINISHED:
            job = self.run.running.get(fields["job_id"])
            self.run = self.run.finish(fields["job_id"])
            if job is not None and job.makes_files:
                self.made.append(job.output)
                self.say(lines.done(self.run, job, now), "done")
                for line in lines.warnings({path: end_of(Path(path)) for path in job.log}):
                    self.screen.print(line, "warning")
        elif event == LogEvent.JOB_ERROR:
            self.failed(fields, now)
        elif event == LogEvent.GROUP_ERROR:
            self.group_failed(fields, now)
        elif event == LogEvent.SHELLCMD:
            if self.common_settings.printshellcmds and fields["shellcmd"]:
                self.say(f"        {fields['shellcmd']}")
        elif record.levelno >= logging.ERROR:
            self.error(record.getMessage())
        elif record.levelno >= logging.WARNING:
            self.screen.print(record.getMessage(), "warning")
        elif event is None and record.levelno >= logging.INFO:
            message = record.getMessage()
            self.nothing_to_do |= message.startswith("Nothing to be done")
            if not message.startswith(lines.CHATTER):
                self.say(message)

    def started(self, fields: dict[str, Any], now: float) -> None:
        """Record and print the start of a job."""
        job = Job(
            title=lines.title(fields["rule_name"], fields["rule_msg"], fields["wildcards"]),
            began=now,
            log=tuple(fields["log"]),
            makes_files=bool(fields["output"]),
            output=tuple(map(str, fields["output"] or ())),
        )
        self.run = self.run.start(fields["jobid"], job)
        if job.makes_files and not self.screen.live:
            self.say(lines.start(job))

    def failed(self, fields: dict[str, Any], now: float) -> None:
        """Record and print the failure of a job."""
        number = fields["jobid"]
        job = self.run.running.get(number)
        if job is None and fields["indent"]:
            return  # Reported with its group.
        self.run = self.run.fail(number)
        own = list(job.log) if job else []
        aux = [path for path in fields["log"] if path not in own]
        logs = {path: last_lines(Path(path)) for path in own}
        if not any(logs.values()):
            logs |= {path: last_lines(Path(path)) for path in aux}
        title = job.title if job else lines.title(fields["rule_name"], None, None)
        seconds = now - job.began if job else None
        said = (lines.of_scheduler(fields["rule_msg"] or ""), lines.killed(_whole(aux)))
        why = self.ending or "; ".join(filter(None, said))
        for line in lines.failure(title, seconds, logs, fields["shellcmd"] or "", why):
            self.screen.print(line, "error")
        self.journal.add(fields["output"], title, why, list(logs))
        self.ending = ""

    def group_failed(self, fields: dict[str, Any], now: float) -> None:
        """Report a failed group: first the jobs that failed themselves, then the other jobs in one line."""
        aux = [path for path in fields["aux_logs"] if path]
        wrong = lines.in_error(_whole(aux))
        along = []
        for error in fields["job_error_info"]:
            if not wrong or wrong & set(error["output"]):
                self.failed({**error, "log": [*error["log"], *aux], "indent": False}, now)
                continue
            job = self.run.running.get(error["jobid"])
            self.run = self.run.fail(error["jobid"])
            along.append(job.title if job else error["rule_name"])
            self.journal.add(error["output"], along[-1], "another job of its submission failed", [])
        if along:
            self.screen.print(lines.taken_along(along), "error")

    def error(self, message: str) -> None:
        """Print an error, but keep the exit status of a command for the report on its job, which follows."""
        ending = lines.command_ending(message)
        if ending:
            self.ending = ending
        elif not (self.run.failed and message.startswith(lines.AFTERMATH)):
            self.screen.print(message, "error")

    def say(self, text: str, style: str = "") -> None:
        """Print a line, unless the user asked for quiet."""
        if not self.quiet:
            self.screen.print(text, style)

    def close(self) -> None:
        """Remove the live display and print how the run ended."""
        if self.screen.open_for_lines:
            self.screen.close()
            if self.ending:
                self.screen.print(f"A job failed: {self.ending}", "error")
            if self.detailed is None and self.run.total:
                self.ended(lines.end(self.run, time.monotonic()))
            elif self.nothing_to_do:
                self.summary()
        super().close()

    def ended(self, text: str) -> None:
        """Print the last lines of a run: the summary after a success, an error even with ``--quiet`` otherwise."""
        if self.run.failed or self.run.done < self.run.total:
            self.screen.print(text, "error")
        else:
            self.say(text, "done")
            self.summary()

    def summary(self) -> None:
        """Print the summary of this run, or the outputs of its last job, or the path of an earlier summary."""
        path = str(getattr(self.settings, "summary", None) or "")
        there = bool(path) and Path(path).is_file()
        if there and any(path in output for output in self.made):
            self.say(Path(path).read_text(encoding="utf-8").rstrip())
        elif self.made:
            self.say(lines.made(self.made[-1]))
        elif there:
            self.say(f"Summary of the last complete run: {path}")


def _whole(logs: list[str]) -> str:
    return "".join(end_of(Path(path), WHOLE) or "" for path in logs)


def _with_cores(run: Run, fields: dict[str, Any]) -> Run:
    """Set the number of jobs that can run at once: local cores, or nodes of a cluster."""
    count = fields.get("cores") or fields.get("nodes")
    return replace(run, cores=int(count), nodes=bool(fields.get("nodes"))) if count else run


def _snakemake_handler(common: Any) -> logging.Handler | None:
    """Make Snakemake's own handler, for output in Snakemake's documented form."""
    with suppress(ImportError):
        from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

        handler = ColorizingTextHandler(nocolor=common.nocolor, stream=sys.stdout if common.stdout else sys.stderr)
        handler.setFormatter(DefaultFormatter(common.quiet, common.show_failed_logs))
        handler.addFilter(
            DefaultFilter(common.quiet, common.debug_dag, common.verbose, common.dryrun, common.printshellcmds)
        )
        return handler
    return None
