"""One run at a time in a working folder, and the repair of its files after a killed run or a clock that was set back.

A run holds a lock of the kernel (``flock``) on ``.snakemake/run.json``, which names its user, host and process. The
kernel releases the lock when the process ends, however it ends. Each job holds a second lock, because a job can outlive
a killed run. Some file systems of clusters restrict such locks to
one host. A run therefore also respects the record of a run on another host that did not end by itself, until ``make
unlock`` removes the record.

``python -m pipeline.workflow.lock`` stops if another run is active. Otherwise it repairs the files. Files with dates in
the future get the present time, in the same order: Snakemake considers everything made from them outdated. Temporary
files of killed jobs (:func:`fairness_audits.files.written`) are deleted.
"""

import argparse
import atexit
import fcntl
import getpass
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TextIO

from fairness_audits.errors import InvalidInput
from fairness_audits.files import UNFINISHED

RECORD, JOBS = Path(".snakemake", "run.json"), Path(".snakemake", "jobs.lock")
"""The files that a run and its jobs lock."""
AHEAD = 60.0
"""Tolerance in seconds for the clocks of other machines."""
WRITTEN = ("conf", "data", "pipeline", "results")
"""Folders with files whose times Snakemake compares."""
ELSEWHERE = Path("results", "hydra")
"""The folder of trainings with Hydra, which can work beside a run."""


def take(folder: Path, forget: bool = False) -> TextIO:
    """Lock ``folder`` until the returned file is closed or this process ends.

    Raises InvalidInput if another run is active. With ``forget``, the record of a run on another host does not count.
    """
    (folder / RECORD).parent.mkdir(exist_ok=True)
    file = (folder / RECORD).open("a+", encoding="utf-8")
    sure = True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with (folder / JOBS).open("a") as jobs:
            fcntl.flock(jobs, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = f"A run or a job of it is active in {folder.absolute()}: {_described(_read(file))}"
        file.close()
        raise InvalidInput(problem, source=folder, remedy="Wait until it ends, or stop it") from None
    except OSError:  # The file system has no locks.
        sure = False
    earlier, this = _read(file), _this()
    # Containers of this machine have the same boot, and this host keeps its name when it is restarted.
    same = any(this[key] and this[key] == earlier.get(key) for key in ("host", "boot"))
    if earlier and not forget and not (sure and same):
        file.close()
        problem = f"A run in {folder.absolute()} may still be active: {_described(earlier)}"
        remedy = f"Check this on {earlier.get('host')}. If the run has ended, run `make unlock`"
        raise InvalidInput(problem, source=folder, remedy=remedy)
    file.truncate(0)
    json.dump(this, file)
    file.flush()
    atexit.register(release, file, os.getpid())
    return file


def join() -> None:
    """Hold the lock of jobs until this process ends, if it works for a run."""
    with suppress(OSError):
        _held.append(JOBS.open("a"))
        fcntl.flock(_held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)


_held: list[TextIO] = []


def release(file: TextIO, owner: int = 0) -> None:
    """Delete the record and the lock, unless this process is a fork of its ``owner``."""
    if not file.closed and owner in (0, os.getpid()):
        file.truncate(0)
        file.close()


def _this() -> dict[str, str]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # A container may have no user name.
        user = f"user {os.getuid()}"
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "user": user,
        "host": socket.gethostname(),
        "process": str(os.getpid()),
        "since": datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        "boot": boot.read_text(encoding="utf-8").strip() if boot.is_file() else "",
    }


def _read(file: TextIO) -> dict[str, str]:
    """Return the record of a run; empty if the last run ended by itself."""
    file.seek(0)
    try:
        return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def _described(record: dict[str, str]) -> str:
    known = {**dict.fromkeys(("user", "host", "process", "since"), "unknown"), **record}
    return "{user} on {host}, process {process}, since {since}".format_map(known)


def dated_ahead(folder: Path) -> list[Path]:
    """Return the files with dates in the future, earliest first."""
    present, ahead = time.time() + AHEAD, []
    for path in (path for name in WRITTEN for path in (folder / name).rglob("*")):
        with suppress(FileNotFoundError):
            if (when := path.stat().st_mtime) > present and path.is_file():
                ahead.append((when, path))
    return [path for _, path in sorted(ahead)]


def unfinished(folder: Path) -> Iterator[Path]:
    """Yield the temporary files of jobs."""
    for path in (path for name in WRITTEN for path in (folder / name).rglob(".*.part*")):
        if UNFINISHED.fullmatch(path.name) and not path.is_relative_to(folder / ELSEWHERE):
            yield path


def main(folder: Path, forget: bool = False) -> int:
    """Repair the files of ``folder``. Return 1 if another run is active, or if a file cannot be repaired."""
    try:
        file = take(folder, forget)
    except InvalidInput as error:
        print(error, file=sys.stderr)
        return 1
    try:
        for path in list(unfinished(folder)):
            path.unlink(missing_ok=True)
        if ahead := dated_ahead(folder):
            told = f"{len(ahead)} files have dates in the future (first: {ahead[0]}). The clock may have been set back."
            print(f"{told} The files get the present time.", file=sys.stderr)
        for path in ahead:
            os.utime(path)
    except OSError as error:
        print(f"Cannot repair a file of an interrupted run: {error}", file=sys.stderr)
        return 1
    finally:
        release(file)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unlock", action="store_true", help="remove the record of a run on another host")
    sys.exit(main(Path.cwd(), parser.parse_args().unlock))
