"""What an audit leaves on disk: whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

Audit = TypeVar("Audit")


def carried_out(
    arguments: Namespace,
    audited: Callable[[Namespace], Audit],
    deliver: Callable[[Audit, Path | None, Path | None], list[Path]],
    page: Callable[[Audit], str],
    kept: Path | None = None,
) -> int:
    """Audit, print the verdict, and write what was asked for; ``kept`` is a file that the audit itself writes."""
    for path, folder in ((arguments.output, True), (arguments.json, False), (kept, False)):
        if path is not None:
            check_destination(path, folder)
    audit = audited(arguments)
    # Written before it is printed: whoever cuts the page short (`| head`) still gets the files.
    written = deliver(audit, arguments.output, arguments.json)
    print(page(audit))
    for path in written:
        print(f"written: {path}")
    return 0


def figure_files(stems: Iterable[str]) -> dict[str, str]:
    """The figures by what they go by in the result, each for the screen and for print."""
    return {
        f"{stem}{key}": f"{stem}{suffix}" for stem in stems for key, suffix in (("", ".png"), ("_for_print", ".pdf"))
    }


def check_destination(path: Path, folder: bool) -> None:
    """ValueError where ``path`` cannot become a folder (or a file) of ours; asked before the work, not after it."""
    if folder and path.exists() and not path.is_dir():
        raise ValueError(f"expected {path} to be a folder, found a file: give another name")
    if not folder and path.is_dir():
        raise ValueError(f"expected {path} to be a file, found a folder: give the name of a file in it")
    home = path if folder and path.is_dir() else _existing_parent(path)
    if not (home.is_dir() and os.access(home, os.W_OK | os.X_OK)):
        raise ValueError(f"nothing can be written to {home}: give another place for {path.name}")


@contextmanager
def folder_written(path: Path) -> Iterator[Path]:
    """Yield a temporary folder; when the block ends well its files are in ``path``, when not nothing is anywhere.

    A new folder appears with all its files at once. In a folder that exists, files of the same name are replaced and
    all others are left alone.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=_existing_parent(path)))
    try:
        yield temporary
        if path.is_dir():
            for file in sorted(temporary.iterdir()):
                file.replace(path / file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.chmod(0o777 & ~_umask())
            temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
