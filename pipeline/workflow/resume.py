"""Clear the way for a run after one that was killed, or after the clock went back.

Snakemake locks its working directory and cannot unlock it when it dies by ``kill -9`` or a power cut. Its lock says
nothing of who has it, so each run leaves a record of itself beside it (:func:`record`): user, host, process and time.
``python -m pipeline.workflow.resume`` removes a lock whose owner is known to have ended, and otherwise says who has it.
With ``--unlock`` it also removes a lock of which nobody can say whether its owner is still at work.

What was made before the clock went back is dated in the future, and Snakemake takes all that is made of it for
outdated: such files get the present time, one after the other in the order that they had. What a process that has ended
had half written, under the temporary name of :func:`fairness_audits.files.written`, is removed.
"""

import argparse
import atexit
import getpass
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from fairness_audits.files import load_json, save_json
from fairness_audits.process import NAME, Process

AHEAD = 60.0
"""Seconds by which another machine's clock may be ahead."""
HALF = re.compile(rf"\..*\.({NAME})\.part(\.\w+)?")
"""The temporary name of a file, with the name of the process that writes it."""
DATED = ("conf", "data", "pipeline", "results")
"""Folders whose files' times Snakemake goes by."""
OWNERS, LOCKS = Path(".snakemake", "owners"), Path(".snakemake", "locks")
"""The records of the runs in a folder, each named by its process, and Snakemake's lock."""


@dataclass(frozen=True)
class Owner:
    """A run in a folder: its process, and its record with what a person wants to know."""

    process: Process
    path: Path

    def __str__(self) -> str:
        try:
            told = load_json(self.path)
            return f"{told['user']} on {told['host']}, process {self.process.number}, since {told['since']}"
        except (OSError, ValueError, KeyError):
            return f"process {self.process.number}; its record {self.path} cannot be read"


def record(folder: Path) -> Owner:
    """Leave a record of this process as a run in ``folder``; it goes when the process ends, unless that is killed.

    A folder that nobody can write to has none: nobody can lock it either.
    """
    process = Process.this()
    owner = Owner(process, folder / OWNERS / f"{process.name}.json")
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    if not any((folder / LOCKS).glob("*")):
        # Without a lock, a run that is not at work has left nothing to say.
        for one in recorded(folder):
            if one.process.state != "at work":
                with suppress(OSError):
                    one.path.unlink()
    with suppress(OSError):
        save_json({"user": _user(), "host": socket.gethostname(), "since": since}, owner.path)
        atexit.register(_forget, owner)
    return owner


def _forget(owner: Owner) -> None:
    if owner.process == Process.this():  # and not a process that it has forked
        with suppress(OSError):
            owner.path.unlink()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # A container may know no name of it.
        return f"user {os.getuid()}"


def recorded(folder: Path) -> list[Owner]:
    """The runs in ``folder`` that have left a record and not taken it away."""
    found = [(Process.named(path.stem), path) for path in sorted((folder / OWNERS).glob("*.json"))]
    return [Owner(process, path) for process, path in found if process]


def at_work(folder: Path) -> Iterator[int]:
    """The process numbers of the Snakemakes whose working directory is ``folder``."""
    for process in psutil.process_iter():
        try:
            if is_snakemake(process.cmdline()) and Path(process.cwd()).resolve() == folder.resolve():
                yield process.pid
        except (psutil.Error, OSError):  # It has ended, or is another user's.
            continue


def is_snakemake(command: list[str]) -> bool:
    """Whether a command line runs Snakemake: ``snakemake``, ``python .../snakemake`` or ``python -m snakemake``."""
    program = command[:2] if command[1:2] != ["-m"] else command[2:3]
    return any(Path(word).name == "snakemake" for word in program)


def dated_ahead(folder: Path) -> list[Path]:
    """The files that Snakemake goes by and that are dated in the future, the earliest first."""
    present, ahead = time.time() + AHEAD, []
    for path in (path for name in DATED for path in (folder / name).rglob("*")):
        with suppress(FileNotFoundError):  # A run that is at work has renamed it.
            if (when := path.stat().st_mtime) > present and path.is_file():
                ahead.append((when, path))
    return [path for _, path in sorted(ahead)]


def half_written(folder: Path) -> list[Path]:
    """The files whose writers are known to have ended."""
    found = [(path, HALF.fullmatch(path.name)) for name in DATED for path in (folder / name).rglob(".*.part*")]
    of = [(path, Process.named(match[1])) for path, match in found if match]
    return [path for path, process in of if process and process.state == "ended"]


def holders(folder: Path, owners: Sequence[Owner], unlock: bool = False) -> list[str]:
    """Say who may have the lock of ``folder`` and what to do; nothing where all ``owners`` are known to have ended.

    With ``unlock``, those do not count of whom nobody can say whether they are at work.
    """
    at_once = "wait until it is done, or stop it"
    states = [(one, one.process.state) for one in owners]
    busy = [one for one, state in states if state == "at work"]
    others = set(at_work(folder)) - {one.process.number for one in busy}
    found = [f"{one}: {at_once}" for one in busy]
    found += [f"Snakemake, process {number} of this machine: {at_once}" for number in sorted(others)]
    if not unlock:
        elsewhere = "it cannot be seen from here whether it is at work. If it is not, run make unlock"
        found += [f"{one}: {elsewhere}" for one, state in states if state == "unknown"]
        if not owners and not found:
            found.append("a run that left no record. If no Snakemake works here, on any machine, run make unlock")
    return found


def main(folder: Path, unlock: bool = False) -> int:
    """Unlock ``folder`` and put its files in order if they need it; 1 if somebody has the lock, or may have it."""
    locked, ahead, halves = any((folder / LOCKS).glob("*")), dated_ahead(folder), half_written(folder)
    owners = recorded(folder)
    if locked:
        busy = holders(folder, owners, unlock)
    else:  # The times of files are no matter for whoever comes beside a run that makes them.
        busy = [f"Snakemake, process {number} of this machine" for number in at_work(folder)] if ahead else []
    if busy:
        print(f"A run in {folder} has not ended, as far as is known:", *busy, sep="\n  ", file=sys.stderr)
        return 1
    try:
        if locked and not _taken_over(folder, owners):
            return main(folder, unlock)
        for path in halves:
            path.unlink(missing_ok=True)
    except OSError as error:
        print(f"{error}: a run that was interrupted left it, and it has to go before the next.", file=sys.stderr)
        return 1
    if ahead:
        print(
            f"The clock went back: {len(ahead)} files of the future, {ahead[0]} first, are dated now.", file=sys.stderr
        )
    for path in ahead:
        with suppress(FileNotFoundError):
            os.utime(path)
    return 0


def _taken_over(folder: Path, owners: Sequence[Owner]) -> bool:
    """Remove the lock and the records of its ``owners``; False where another process was faster."""
    own = record(folder)
    try:
        # Whoever removes the first record removes the lock: that of a run which has begun since is not touched.
        if owners and not _removed(owners[0].path):
            return False
        print("The last run was interrupted: removing its lock and continuing where it stopped.", file=sys.stderr)
        # As snakemake --unlock does, which plans the whole run before: another one may have begun by then.
        shutil.rmtree(folder / LOCKS)
        for one in owners[1:]:
            _removed(one.path)
        return True
    finally:
        _forget(own)


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unlock", action="store_true", help="also a lock that nobody known to be at work has")
    sys.exit(main(Path.cwd(), parser.parse_args().unlock))
