"""Prepare the working directory for a run after a killed run, or after the clock was set back.

Snakemake locks its working directory and cannot unlock it after ``kill -9`` or a power cut. The lock does not name its
owner, so each run records its user, host, process and start time (:func:`record`). ``python -m
pipeline.workflow.resume`` removes a lock whose owner has ended, and otherwise names the owner. With ``--unlock`` it
also removes a lock whose owner cannot be checked. A lock of the kernel (``flock``) cannot replace the records: it does
not name its owner, and some cluster file systems restrict it to one machine.

If the clock was set back, existing files have dates in the future, and Snakemake considers all files made from them
outdated. Such files get the present time, in the same order. Temporary files of processes that have ended
(:func:`fairness_audits.files.written`) are deleted.
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
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import psutil

from fairness_audits.files import load_json, save_json
from fairness_audits.process import NAME, Process

JOB = "pipeline.workflow.launch"
"""The module that runs a job. A job of a killed run goes on and would write its output later."""
AHEAD = 60.0
"""Tolerance in seconds for the clocks of other machines."""
HALF = re.compile(rf"\..*\.({NAME})\.part(\.\w+)?")
"""Temporary file names, which contain the name of the writing process."""
DATED = ("conf", "data", "pipeline", "results")
"""Folders with files whose times Snakemake compares."""
OWNERS, LOCKS = Path(".snakemake", "owners"), Path(".snakemake", "locks")
"""Folders of the records of runs, one file per process, and of Snakemake's locks."""


def record(folder: Path) -> Path:
    """Record this process as a run in ``folder``. The record is deleted when the process ends, unless it is killed.

    Folders without write access get no record, because no run can lock them.
    """
    path = folder / OWNERS / f"{Process.this().name}.json"
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    if not any((folder / LOCKS).glob("*")):
        # Without a lock, the records of ended runs are not needed.
        for one, process in recorded(folder).items():
            if process.state != "at work":
                with suppress(OSError):
                    one.unlink()
    with suppress(OSError):
        save_json({"user": _user(), "host": socket.gethostname(), "since": since}, path)
        atexit.register(_forget, path)
    return path


def _forget(path: Path) -> None:
    if path.stem == Process.this().name:  # Not a forked process.
        with suppress(OSError):
            path.unlink()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # A container may have no user name.
        return f"user {os.getuid()}"


def recorded(folder: Path) -> dict[Path, Process]:
    """Return the process of each recorded run in ``folder``, by the file of its record."""
    found = {path: Process.named(path.stem) for path in sorted((folder / OWNERS).glob("*.json"))}
    return {path: process for path, process in found.items() if process}


def described(path: Path, process: Process) -> str:
    """Return who runs a process, by its record."""
    try:
        entry = load_json(path)
        return f"{entry['user']} on {entry['host']}, process {process.number}, since {entry['since']}"
    except (OSError, ValueError, KeyError):
        return f"process {process.number} (its record {path} cannot be read)"


def at_work(folder: Path) -> list[int]:
    """Return the process numbers of the Snakemake runs in ``folder``, otherwise of jobs that a killed run left."""
    runs, jobs = [], []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if Path(process.cwd()).resolve() == folder.resolve():
                runs += [process.pid] if is_snakemake(command) else []
                jobs += [process.pid] if command[1:3] == ["-m", JOB] else []
        except (psutil.Error, OSError):  # The process has ended or belongs to another user.
            continue
    return runs or jobs


def is_snakemake(command: list[str]) -> bool:
    """Return whether a command runs Snakemake: ``snakemake``, ``python .../snakemake`` or ``python -m snakemake``."""
    program = command[:2] if command[1:2] != ["-m"] else command[2:3]
    return any(Path(word).name == "snakemake" for word in program)


def dated_ahead(folder: Path) -> list[Path]:
    """Return the files with dates in the future, earliest first."""
    present, ahead = time.time() + AHEAD, []
    for path in (path for name in DATED for path in (folder / name).rglob("*")):
        with suppress(FileNotFoundError):  # A running job has renamed it.
            if (when := path.stat().st_mtime) > present and path.is_file():
                ahead.append((when, path))
    return [path for _, path in sorted(ahead)]


def half_written(folder: Path) -> list[Path]:
    """Return the temporary files of processes that have ended."""
    found = [(path, HALF.fullmatch(path.name)) for name in DATED for path in (folder / name).rglob(".*.part*")]
    of = [(path, Process.named(match[1])) for path, match in found if match]
    return [path for path, process in of if process and process.state == "ended"]


def holders(folder: Path, owners: Mapping[Path, Process], unlock: bool = False) -> list[str]:
    """Return a line for each possible owner of the lock of ``folder``, or no line if all ``owners`` have ended.

    With ``unlock``, owners that cannot be checked do not count.
    """
    advice = "wait until it ends, or stop it"
    elsewhere = "cannot be checked from here. If it is not running, run `make unlock`"
    states = [(described(*one), one[1].state) for one in owners.items()]
    known = {process.number for process in owners.values() if process.state == "at work"}
    found = [f"{who}: {advice}" for who, state in states if state == "at work"]
    found += [
        f"Snakemake or a job, process {number} on this machine: {advice}"
        for number in sorted({*at_work(folder)} - known - {os.getpid()})
    ]
    if not unlock:
        found += [f"{who}: {elsewhere}" for who, state in states if state == "unknown"]
        if not owners and not found:
            found.append("a run without a record. If no run is active here, on any machine, run `make unlock`")
    return found


def main(folder: Path, unlock: bool = False) -> int:
    """Unlock ``folder`` and repair its files. Return 1 if another run may own the lock."""
    locked, ahead, halves = any((folder / LOCKS).glob("*")), dated_ahead(folder), half_written(folder)
    owners = recorded(folder)
    if locked:
        busy = holders(folder, owners, unlock)
    else:  # Do not change the times of files while another run works.
        busy = [f"Snakemake or a job, process {number} on this machine" for number in at_work(folder)] if ahead else []
    if busy:
        print(f"Another run may still be active in {folder}:", *busy, sep="\n  ", file=sys.stderr)
        return 1
    try:
        if locked:
            take_over(folder, owners)
        for path in halves:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return main(folder, unlock)
    except OSError as error:
        print(f"Cannot remove a file of an interrupted run: {error}. Remove it before the next run.", file=sys.stderr)
        return 1
    if ahead:
        print(
            f"{len(ahead)} files have dates in the future (first: {ahead[0]}). The clock may have been set back. "
            "The files get the present time.",
            file=sys.stderr,
        )
    for path in ahead:
        with suppress(FileNotFoundError):
            os.utime(path)
    return 0


def take_over(folder: Path, owners: Iterable[Path]) -> None:
    """Remove the records ``owners`` and the lock. Raises FileNotFoundError if another process did it first.

    Only the process that removes the first record removes the lock. This protects the lock of a newer run.
    """
    own = record(folder)
    try:
        for place, path in enumerate(owners):
            path.unlink(missing_ok=place > 0)
        print("The last run was interrupted. Removing its lock and resuming.", file=sys.stderr)
        # `snakemake --unlock` does the same, but plans the whole run first. Another run could start meanwhile.
        shutil.rmtree(folder / LOCKS)
    finally:
        _forget(own)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unlock", action="store_true", help="also remove a lock whose owner cannot be checked")
    sys.exit(main(Path.cwd(), parser.parse_args().unlock))
