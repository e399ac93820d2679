"""How far a long audit is: a bar on stderr where a person watches, silence where none does."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Result = TypeVar("Result")


@contextmanager
def followed(
    function: Callable[..., Result], calls: int, title: str, logger: str = ""
) -> Iterator[Callable[..., Result]]:
    """Yield the function, its ``calls`` expected calls drawn as a bar with the time that is left.

    Beside the title stands the last thing that the named ``logger`` says: a fit that reports its own progress.
    """
    if not sys.stderr.isatty():
        yield function
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    percentage = TextColumn("{task.percentage:.0f} %")
    columns = (TextColumn("{task.description}"), BarColumn(), percentage, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=calls)

        def counted(*given: object) -> Result:
            progress.advance(task)
            return function(*given)

        handler, source = logging.Handler(), logging.getLogger(logger or __name__)
        handler.emit = lambda record: progress.update(  # type: ignore[method-assign]
            task, description=f"{title}: {record.getMessage()}", refresh=True
        )
        level = source.level
        source.addHandler(handler)
        source.setLevel(logging.INFO)
        try:
            yield counted
        finally:
            source.removeHandler(handler)
            source.setLevel(level)
