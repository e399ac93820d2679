"""Wait for another process."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], what: str = "", seconds: float = 60.0) -> None:
    """Wait for ``condition``; AssertionError where it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not in {seconds:.0f} s"
        time.sleep(0.05)
