"""Journal of failures for the account after the run, one line of JSON per failure."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


class Journal:
    """A file of failures that each run starts anew. Without a path nothing is written."""

    def __init__(self, path: str) -> None:
        self.path = Path(path) if path else None

    def begin(self) -> None:
        """Delete the journal of an earlier run."""
        if self.path is not None:
            with suppress(OSError):  # The jobs report a folder that is not writable.
                self.path.unlink(missing_ok=True)

    def add(self, outputs: Sequence[str], title: str, why: str, logs: Sequence[str]) -> None:
        """Add the failure of a job with these ``outputs``. Each attempt has its own line."""
        if self.path is None:
            return
        line: dict[str, Any] = {"outputs": list(outputs), "title": title, "why": why, "logs": list(logs)}
        with suppress(OSError):  # The jobs report a full disk.
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as file:
                # End a line that was cut short by a kill or a full disk.
                file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
                torn = file.read(1) not in (b"", b"\n")
                file.write(b"\n" * torn + json.dumps(line).encode() + b"\n")
