"""Progress bars on stderr."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

Part = TypeVar("Part")


@contextmanager
def progress_bar(title: str, steps: int | None = None) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step (None: unknown number); it advances a bar if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        yield partial(bar.advance, bar.add_task(title, total=steps))


def track(title: str, parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts in order and show a :func:`progress_bar`."""
    with progress_bar(title, len(parts)) as step:
        for part in parts:
            yield part
            step()
