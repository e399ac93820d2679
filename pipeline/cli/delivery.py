"""What an audit leaves on disk: whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
