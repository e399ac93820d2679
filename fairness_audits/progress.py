"""Progress on stderr: a line with the time of the audit, and a bar for each of its long steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

Part = TypeVar("Part")
_display: ContextVar[Progress | None] = ContextVar("display", default=None)


@contextmanager
def progress_bar(title: str, steps: int | None = None) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step (None: unknown number); it advances a bar if somebody watches.

    Bars inside others are drawn below them.
    """
    if not _watched():
        yield lambda: None
    elif (display := _display.get()) is None:
        with _opened(), progress_bar(title, steps) as step:
            yield step
    else:
        task = display.add_task(title, total=steps)
        try:
            yield partial(display.advance, task)
        finally:
            display.remove_task(task)


def track(title: str, parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts in order and show a :func:`progress_bar`."""
    with progress_bar(title, len(parts)) as step:
        for part in parts:
            yield part
            step()


def _watched() -> bool:
    """Return whether stderr is a terminal, or this is a notebook that can show rich's widget."""
    notebook = "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
    return notebook or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def _opened() -> Iterator[None]:
    """Open the display of the bars, which disappears at the end."""
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    columns = *Progress.get_default_columns(), TimeElapsedColumn()
    # What a model prints goes where it would go without bars.
    printed = sys.stdout is not None and sys.stdout.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=printed) as display:
        token = _display.set(display)
        try:
            yield
        finally:
            _display.reset(token)
