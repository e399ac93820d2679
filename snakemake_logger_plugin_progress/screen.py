"""Output of the printed lines. On a terminal, a live display below them shows the running jobs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake_logger_plugin_progress import lines
from snakemake_logger_plugin_progress.run import Run

if TYPE_CHECKING:
    from rich.console import RenderableType

HEARTBEAT = 60.0
"""Seconds between two heartbeats if the output is not a terminal."""

STYLES = {"done": "green", "warning": "yellow", "error": "red"}

TAIL = 4096
"""Number of bytes at the end of a log that are read for its last lines."""
WHOLE = 4 * 2**20
"""Number of bytes at the end of a scheduler's log that are read for its errors, which are rare."""


class Screen:
    """Output to a terminal with a live display at the bottom, or to a plain stream with a heartbeat each minute."""

    def __init__(self, run: Callable[[], Run], colour: bool, quiet: bool) -> None:
        from rich.console import Console

        self.run = run
        self.quiet = quiet
        self.stream = sys.stderr
        self.console = Console(file=self.stream, no_color=True if not colour else None, highlight=False, markup=False)
        self.live: Any = None
        self.open_for_lines = True
        self.lock = threading.Lock()
        self.stopped = threading.Event()

    def open(self) -> None:
        """Start the live display or the heartbeat."""
        if self.live is not None or self.quiet or self.stopped.is_set():
            return
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            from rich.live import Live

            self.live = Live(
                get_renderable=self.picture, console=self.console, refresh_per_second=2, transient=True, screen=False,
                redirect_stdout=False, redirect_stderr=False,
            )  # fmt: skip
            self.live.start()
        else:
            threading.Thread(target=self.beat, daemon=True).start()

    def print(self, text: str, style: str = "") -> None:
        """Print a line, in colour on a terminal."""
        from rich.text import Text

        with self.lock:
            if self.console.is_terminal:
                self.console.print(Text(text, style=STYLES.get(style, "")), soft_wrap=True)
                if self.live is not None:
                    self.live.refresh()
            else:
                self.stream.write(text + "\n")
                self.stream.flush()

    def close(self) -> None:
        """Stop the live display or the heartbeat."""
        self.open_for_lines = False
        self.stopped.set()
        if self.live is not None:
            self.live.stop()

    def at_work(self) -> Iterator[str]:
        """Yield a line per running job."""
        now = time.monotonic()
        for job in self.run().running.values():
            if job.makes_files:
                yield lines.still(job, now, last_line(job.log))

    def picture(self) -> RenderableType:
        """Render the running jobs and the overall progress."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        run = self.run()
        overall = Table.grid(padding=(0, 2))
        overall.add_row(ProgressBar(max(run.total, 1), run.done, width=24), lines.progress(run, time.monotonic()))
        rows = [Text(f"  {line}", no_wrap=True, overflow="ellipsis", style="cyan") for line in self.at_work()]
        return Group(*rows, overall)

    def beat(self) -> None:
        """Print the running jobs once a minute."""
        while not self.stopped.wait(HEARTBEAT):
            for line in self.at_work():
                self.print(f"running {line}")


def last_lines(path: Path) -> list[str] | None:
    """Return the lines at the end of a log, or None if the file cannot be read."""
    text = end_of(path)
    if text is None:
        return None
    # A progress meter overwrites its line. Keep only the last state.
    return [line.rstrip().rsplit("\r", 1)[-1] for line in text.split("\n") if line.strip()]


def end_of(path: Path, size: int = TAIL) -> str | None:
    """Return the last ``size`` bytes of a log, or None if the file cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - size, 0))
            return file.read().decode(errors="replace")
    except OSError:
        return None


def last_line(logs: Iterable[str]) -> str:
    """Return the last line of the first log that is not empty."""
    return next((content[-1] for path in logs if (content := last_lines(Path(path)))), "")
