"""How far a long audit is: a bar on stderr where a person watches, silence where none does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Value = TypeVar("Value")
Result = TypeVar("Result")


@contextmanager
def followed(function: Callable[[Value], Result], calls: int, title: str) -> Iterator[Callable[[Value], Result]]:
    """Yield the function, its ``calls`` expected calls drawn as a bar with the time that is left."""
    if not sys.stderr.isatty():
        yield function
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=calls)

        def counted(value: Value) -> Result:
            progress.advance(task)
            return function(value)

        yield counted


@contextmanager
def narrated(logger: str, title: str) -> Iterator[None]:
    """Show the title, and beside it the last thing that the named logger says: a fit that reports its own progress."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title) as status:
        handler = _Shown(lambda text: status.update(f"{title}: {text}"))
        source = logging.getLogger(logger)
        level = source.level
        source.addHandler(handler)
        source.setLevel(logging.INFO)
        try:
            yield
        finally:
            source.removeHandler(handler)
            source.setLevel(level)


class _Shown(logging.Handler):
    """Hands each message to a function."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self.show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Show the message."""
        self.show(record.getMessage())
