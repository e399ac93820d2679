"""What failed, as it happens, for those who account for it afterwards: one line of JSON for each failure."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


class Journal:
    """A file that begins anew with each run; without a path nothing is written."""

    def __init__(self, path: str) -> None:
        self.path = Path(path) if path else None

    def begin(self) -> None:
        """Forget an earlier run."""
        if self.path is not None:
            with suppress(OSError):  # A folder that takes nothing is told of by the jobs that meet it.
                self.path.unlink(missing_ok=True)

    def add(self, outputs: Sequence[str], title: str, why: str, logs: Sequence[str]) -> None:
        """A job that was to make ``outputs`` has failed; of several attempts each has its line."""
        if self.path is None:
            return
        line: dict[str, Any] = {"outputs": list(outputs), "title": title, "why": why, "logs": list(logs)}
        with suppress(OSError):  # And so is a full disk.
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                # A line that a kill or a full disk has cut short ends here.
                file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
                torn = file.read(1) not in (b"", b"\n")
                file.write(b"\n" * torn + json.dumps(line).encode() + b"\n")
