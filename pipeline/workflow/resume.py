"""Clear the way for a run after one that was killed, or after the clock went back.

Snakemake locks its working directory and cannot unlock it when it dies by ``kill -9`` or a power cut. ``python -m
pipeline.workflow.resume`` removes such a lock where no Snakemake works in the directory any more, and refuses where one
does. It looks at this machine alone: unlock by hand (``snakemake --unlock``) where another one may work in the same
directory. What was made before the clock went back is dated in the future, and Snakemake takes all that is made of it
for outdated: such files get the present time, one after the other in the order that they had. What a killed process had
half written, under the temporary name of :func:`fairness_audits.files.written`, is removed.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

AHEAD = 60.0
"""Seconds by which another machine's clock may be ahead."""
HALF = re.compile(r"\..*\.(\d+)\.part(\.\w+)?")
"""The temporary name of a file, with the number of the process that writes it."""
DATED = ("conf", "data", "pipeline", "results")
"""Folders whose files' times Snakemake goes by."""


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
    """The files whose writers are gone."""
    found = [(path, HALF.fullmatch(path.name)) for name in DATED for path in (folder / name).rglob(".*.part*")]
    return [path for path, match in found if match and not psutil.pid_exists(int(match[1]))]


def main(folder: Path) -> int:
    """Unlock ``folder`` and put its files in order if they need it and nothing works there; 1 if something does."""
    locks = folder / ".snakemake" / "locks"
    locked, ahead, halves = any(locks.glob("*")), dated_ahead(folder), half_written(folder)
    if not (locked or ahead or halves):
        return 0
    busy = [str(number) for number in at_work(folder)]
    if busy:
        print(
            f"Snakemake already works in {folder} (process {', '.join(busy)}): wait until it is done, or stop it.",
            file=sys.stderr,
        )
        return 1
    if locked:
        print("The last run was interrupted: removing its lock and continuing where it stopped.", file=sys.stderr)
        # As snakemake --unlock does, which plans the whole run before: another one may have begun by then.
        shutil.rmtree(locks, ignore_errors=True)
    if ahead:
        print(
            f"The clock went back: {len(ahead)} files of the future, {ahead[0]} first, are dated now.", file=sys.stderr
        )
    for path in halves:
        path.unlink(missing_ok=True)
    for path in ahead:
        with suppress(FileNotFoundError):
            os.utime(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
