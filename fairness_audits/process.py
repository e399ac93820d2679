"""Which process something belongs to, and whether that process is known to have ended.

A process number alone says little: another machine, or another container of this one, has a process of the same number,
and so has this machine after a while. The name of a process therefore also holds its machine, the start of its system,
its namespace of process numbers and its own start.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

NAME = r"([0-9a-f]{8})-([0-9a-f]{8})-(\d+)-(\d+)-(\d+)"
"""The name of a process as a regular expression."""
WHOLE_MACHINE = 0xEFFFFFFC
"""Linux's namespace of process numbers outside any container."""
ENDED = ("Z", "X")
"""The states of a process that has ended and that nobody has asked for its status yet."""


@dataclass(frozen=True)
class Process:
    """A process of some machine.

    ``machine`` and ``boot`` are digests of the machine and of the start of its system; ``namespace``, ``number`` and
    ``started`` are 0 where they are unknown.
    """

    machine: str
    boot: str
    namespace: int
    number: int
    started: int

    @classmethod
    def this(cls) -> Process:
        """Return the process that asks."""
        return cls(*_here(), os.getpid(), _state(os.getpid())[1])

    @classmethod
    def named(cls, name: str) -> Process | None:
        """Return the process of this name; None where the text is none."""
        match = re.fullmatch(NAME, name)
        return cls(match[1], match[2], *map(int, match.groups()[2:])) if match else None

    @property
    def name(self) -> str:
        """A name without spaces, dots or slashes."""
        return f"{self.machine}-{self.boot}-{self.namespace}-{self.number}-{self.started}"

    @property
    def state(self) -> Literal["at work", "ended", "unknown"]:
        """Whether it is at work or has ended; unknown where that cannot be seen from here."""
        machine, boot, namespace = _here()
        if self.machine != machine:
            return "unknown"
        if self.boot != boot:
            # Containers on several machines may have one name; a machine of its own has been started again.
            return "ended" if self.namespace == namespace == WHOLE_MACHINE else "unknown"
        if self.namespace != namespace:
            return "unknown"
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return "ended"
        except OSError:
            pass  # Another user's.
        state, started = _state(self.number)
        replaced = bool(started and self.started) and started != self.started
        return "ended" if state in ENDED or replaced else "at work"


@functools.cache
def _here() -> tuple[str, str, int]:
    """Digests of this machine and of the start of its system, and the namespace of this process."""
    machine = f"{socket.gethostname()} {_text('/etc/machine-id')}"
    boot = _text("/proc/sys/kernel/random/boot_id")
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    digests = (hashlib.sha256(text.encode()).hexdigest()[:8] for text in (machine, boot))
    return *digests, namespace  # type: ignore[return-value]


def _state(number: int) -> tuple[str, int]:
    """The state of a process of this machine and its start, in ticks since that of the system; "" and 0 if unknown."""
    # The name of a process, in brackets, may hold spaces and brackets.
    _, _, rest = _text(f"/proc/{number}/stat").rpartition(") ")
    words = rest.split()
    return (words[0], int(words[19])) if len(words) > 19 else ("", 0)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
