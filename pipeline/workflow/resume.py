"""Clear the way for a run after one that was killed.

Snakemake locks its working directory and cannot unlock it when it dies by ``kill -9`` or a power cut. ``python -m
pipeline.workflow.resume`` removes such a lock where no Snakemake works in the directory any more, and refuses where one
does. It looks at this machine alone: unlock by hand (``snakemake --unlock``) where another one may work in the same
directory.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil


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


def main(folder: Path) -> int:
    """Unlock ``folder`` if it is locked and nothing works there; 1 if something does."""
    if not any((folder / ".snakemake" / "locks").glob("*")):
        return 0
    busy = [str(number) for number in at_work(folder)]
    if busy:
        print(
            f"Snakemake already works in {folder} (process {', '.join(busy)}): wait until it is done, or stop it.",
            file=sys.stderr,
        )
        return 1
    print("The last run was interrupted: removing its lock and continuing where it stopped.", file=sys.stderr)
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--unlock", "--quiet"], cwd=folder, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
