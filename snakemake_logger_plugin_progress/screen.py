"""Output of the printed lines. On a terminal, a live display below them shows the running jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from snakemake_logger_plugin_progress.run import Run, duration

TAIL = 4096
"""Number of bytes at the end of a log that are read."""


class Screen:
    """Output to a terminal with a live display at the bottom, or to a plain stream."""

    def __init__(self, run: Run, colour: bool, quiet: bool) -> None:
        self.run, self.quiet, self.active = run, quiet, True
        self.console = Console(stderr=True, no_color=not colour or None, highlight=False, markup=False)
        self.live: Live | None = None

    def open(self) -> None:
        """Start the live display."""
        if not self.quiet and self.console.is_terminal and not self.console.is_dumb_terminal:
            self.live = Live(
                get_renderable=self.picture, console=self.console, refresh_per_second=2, transient=True,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self.live.start()

    def say(self, text: str, style: str = "") -> None:
        """Print lines, unless the user asked for quiet."""
        if not self.quiet:
            self.print(text, style)

    def print(self, text: str, style: str = "") -> None:
        """Print lines, in colour on a terminal."""
        if self.console.is_terminal:
            self.console.print(Text(text, style=style), soft_wrap=True)
        else:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def close(self) -> None:
        """Stop the live display."""
        self.active = False
        if self.live:
            self.live.stop()

    def at_work(self) -> Iterator[str]:
        """Yield a line per running job: its title, its time and the last line of its log."""
        for job in list(self.run.running.values()):
            last = next((lines[-1] for path in job.log if (lines := last_lines(Path(path)))), "")
            yield "   ".join(filter(None, (job.title, duration(time.monotonic() - job.began), last)))

    def picture(self) -> Group:
        """Render the running jobs and the overall progress."""
        overall = Table.grid(padding=(0, 2))
        bar = ProgressBar(max(self.run.total, 1), self.run.done, width=24)
        overall.add_row(bar, self.run.progress(time.monotonic()))
        rows = [Text(f"  {line}", no_wrap=True, overflow="ellipsis", style="cyan") for line in self.at_work()]
        return Group(*rows, overall)


def last_lines(path: Path) -> list[str] | None:
    """Return the lines at the end of a log, or None if the file cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, 2) - TAIL, 0))
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    # A progress meter overwrites its line. Keep only the last state.
    return [line.rstrip().rsplit("\r", 1)[-1] for line in text.split("\n") if line.strip()]


def warnings(logs: Iterable[str]) -> Iterator[str]:
    """Yield the paragraphs that start with ``WARNING`` in the logs of a job, each with the path of its log."""
    for path in filter(lambda path: Path(path).is_file(), logs):
        for paragraph in Path(path).read_text(encoding="utf-8", errors="replace").replace("\n=", "\n\n=").split("\n\n"):
            lines = [line for line in paragraph.splitlines() if line.strip("=-* ")]
            if lines and lines[0].startswith("WARNING"):
                yield "\n".join(f"        {line}" for line in (*lines, f"({path})"))
