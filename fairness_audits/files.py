"""Write files completely or not at all.

Each file is written under a temporary name beside its destination and renamed when it is complete. A reader never sees
a partial file, and a killed process leaves no file under the final name. A process that is asked to end (SIGTERM)
removes its temporary files first.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairness_audits.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNFINISHED = re.compile(r"\..*\.[0-9a-f]{8}\.part(\.\w+)?")
"""Names of temporary files."""


@contextmanager
def written(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` if the block succeeds, remove it otherwise."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Keep the suffix last: writers such as matplotlib and pandas choose the format by it.
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.part{path.suffix}")
    with _removed_at_the_end(temporary):
        yield temporary
        temporary.replace(path)


def save_text(text: str, path: Path | str) -> None:
    """Write ``text`` as UTF-8."""
    with written(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def save_json(value: Any, path: Path | str) -> None:
    """Write ``value`` as indented JSON; NaN and infinities are refused, because JSON has none."""
    save_text(json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n", path)


def load_json(path: Path | str) -> Any:
    """Read a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def save_figure(figure: Figure, stem: Path | str) -> tuple[Path, ...]:
    """Write a figure as ``stem``.pdf and .png, without dates, so that the same figure gives the same bytes."""
    paths = Path(f"{stem}.pdf"), Path(f"{stem}.png")
    for path, metadata in zip(paths, ({"CreationDate": None, "ModDate": None}, {"Software": None}), strict=True):
        with written(path) as temporary:
            figure.savefig(temporary, metadata=metadata)
    return paths


def check_destination(path: Path, folder: bool) -> None:
    """Raise InvalidInput if ``path`` cannot become an output folder (or file). Call this before the work."""
    if folder and path.exists() and not path.is_dir():
        raise InvalidInput(f"{path} must be a folder, but is a file", source=path, remedy="Name a folder")
    if not folder and path.is_dir():
        problem = f"{path} must be a file, but is a folder"
        raise InvalidInput(problem, source=path, remedy="Name a file in it")
    home = path if folder and path.is_dir() else _existing_parent(path)
    if not (home.is_dir() and os.access(home, os.W_OK | os.X_OK)):
        problem = f"the folder {home} is not writable"
        raise InvalidInput(problem, source=path, remedy=f"Choose another folder for {path.name}")


@contextmanager
def folder_written(path: Path) -> Iterator[Path]:
    """Yield a temporary folder; its files move to ``path`` if the block succeeds, and are removed otherwise.

    A new folder appears with all its files at once. In an existing folder, files of the same name are replaced.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=_existing_parent(path)))
    with _removed_at_the_end(temporary):
        yield temporary
        if path.is_dir():
            for file in sorted(temporary.iterdir()):
                file.replace(path / file.name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o777 & ~mask)
            temporary.rename(path)


@contextmanager
def _removed_at_the_end(temporary: Path) -> Iterator[None]:
    """Remove a file or folder at the end of the block, or before SIGTERM ends the process."""

    def remove() -> None:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)

    def ended(number: int, _: object) -> None:
        remove()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # A handler of the caller, or of the folder that this file is in, stays. Only the main thread can have one.
    unhandled = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours := unhandled and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ended)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        remove()


def _existing_parent(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())
