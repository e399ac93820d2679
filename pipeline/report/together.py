"""The same function of many names, worked out by several processes that share what it knows."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Made = TypeVar("Made")
_held: list[Callable[[str], Any]] = []


def together(make: Callable[[str], Made], names: Sequence[str], processes: int) -> Iterator[Made]:
    """``make(name)`` of every name, in their order, ``processes`` of them at once.

    The processes begin as copies of this one, so that ``make`` may hold anything; what it returns has to be picklable.
    Where copies are not to be had, or not safe (macOS), the names are worked out one by one. The first error is raised.
    """
    if processes < 1:
        raise ValueError(f"expected at least one process, found {processes}")
    if processes == 1 or len(names) < 2 or sys.platform != "linux":
        yield from map(make, names)
        return
    from concurrent.futures import ProcessPoolExecutor

    # What has been printed so far would be printed by every copy again.
    sys.stdout.flush()
    copies = multiprocessing.get_context("fork")
    # An initializer's arguments are not sent to a copy: it has them.
    with ProcessPoolExecutor(min(processes, len(names)), copies, _hold, (make,)) as pool:
        yield from pool.map(_made, names)


def _hold(make: Callable[[str], Any]) -> None:
    _held[:] = [make]


def _made(name: str) -> Any:
    return _held[0](name)
