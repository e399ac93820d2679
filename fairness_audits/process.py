"""Identify the process that owns something, and find out whether it has ended.

A process number alone is ambiguous: other machines, other containers of this machine, and this machine at a later time
can have a process with the same number. The name of a process therefore also contains its machine, its boot, its PID
namespace and its start time.
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
"""Regular expression of the name of a process."""
WHOLE_MACHINE = 0xEFFFFFFC
"""Linux's PID namespace outside any container."""
ENDED = ("Z", "X")
"""States of a process that has ended but whose status has not been collected yet."""


@dataclass(frozen=True)
class Process:
    """A process of some machine.

    ``machine`` and ``boot`` are digests of the machine and of its boot. ``namespace``, ``number`` and ``started`` are 0
    if unknown.
    """

    machine: str
    boot: str
    namespace: int
    number: int
    started: int

    @classmethod
    def this(cls) -> Process:
        """Return the current process."""
        return cls(*_here(), os.getpid(), _state(os.getpid())[1])

    @classmethod
    def named(cls, name: str) -> Process | None:
        """Return the process with this name; None if the text is not a name."""
        match = re.fullmatch(NAME, name)
        return cls(match[1], match[2], *map(int, match.groups()[2:])) if match else None

    @property
    def name(self) -> str:
        """The name, without spaces, dots or slashes."""
        return f"{self.machine}-{self.boot}-{self.namespace}-{self.number}-{self.started}"

    @property
    def state(self) -> Literal["at work", "ended", "unknown"]:
        """Whether the process is at work or has ended; unknown if this cannot be determined from here."""
        machine, boot, namespace = _here()
        if self.machine != machine:
            return "unknown"
        if self.boot != boot:
            # Containers on several machines may share a name and id. Outside a container the machine was rebooted.
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
    """Return digests of this machine and of its boot, and the PID namespace of this process."""
    machine = f"{socket.gethostname()} {_text('/etc/machine-id')}"
    boot = _text("/proc/sys/kernel/random/boot_id")
    try:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        namespace = 0
    digests = (hashlib.sha256(text.encode()).hexdigest()[:8] for text in (machine, boot))
    return *digests, namespace  # type: ignore[return-value]


def _state(number: int) -> tuple[str, int]:
    """Return the state and the start of a process of this machine, in ticks since boot; "" and 0 if unknown."""
    # The name of a process, in brackets, may contain spaces and brackets.
    _, _, rest = _text(f"/proc/{number}/stat").rpartition(") ")
    words = rest.split()
    return (words[0], int(words[19])) if len(words) > 19 else ("", 0)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
