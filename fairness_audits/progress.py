"""The audits that the command line offers: each module here is one, ``loss_ratio`` being ``audit loss-ratio``.

A module offers ``Settings`` (its options), ``EXAMPLES`` (the end of its help), ``PAGE`` (where more is said), ``FILES``
(what it writes), and ``from_files(settings) -> Result``, itself or in its module ``document``; where it needs it,
``COMMAND`` (its name). Its docstring is its description, the first line its line in the list. What the
user can correct is an InvalidInput or OSError, which the entry turns into one message and status 2. Every ``--help``
imports all of the modules, so importing one must be cheap.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

Part = TypeVar("Part")


@contextmanager
def progress_bar(title: str, steps: int | None = None) -> Iterator[Callable[[], None]]:
    """Yield what is called after each of so many steps (None: unknown): it moves a bar on stderr, where one watches."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        yield partial(bar.advance, bar.add_task(title, total=steps))


def track(title: str, parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts one after the other, :func:`progress_bar` by a bar."""
    with progress_bar(title, len(parts)) as step:
        for part in parts:
            yield part
            step()
