"""Numba's ``njit`` with a disk cache wherever one can be written.

``NUMBA_CACHE_DIR`` sets the cache folder. Without it, Numba uses the folder of the source file or the user's cache. If
neither is writable, we use the user's own folder below the temporary folder (``TMPDIR``); if this fails too, every
process compiles for itself. The numbers are the same.

Numba compiles again if the file of a cached function changes, but not if the function calls others from another file
that changes. ``sources`` names such files. The cache is then in a folder named after their content.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numba

CONFIG: Any = numba.config


def njit(*, sources: Sequence[str] = (), **options: Any) -> Callable[[Any], Any]:
    """Return Numba's decorator with these options. With ``cache``, it falls back to no cache if necessary."""

    def compiled(function: Any) -> Any:
        if not sources:
            with suppress(RuntimeError):  # Numba's of a function that it has no place for.
                return numba.njit(**options)(function)
        with _cached_in(_folder_of(function, sources) if sources else _own_folder()) as folder:
            return numba.njit(**options | {"cache": bool(folder)})(function)

    return compiled


@contextmanager
def _cached_in(folder: str) -> Iterator[str]:
    """Let Numba cache in ``folder``."""
    before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, folder
    try:
        yield folder
    finally:
        CONFIG.CACHE_DIR = before


def _folder_of(function: Any, sources: Sequence[str]) -> str:
    """Return a folder named after the content of ``sources``, in the first place that is writable; "" without one."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sources:
        with open(path, "rb") as file:  # noqa: PTH123, numerical code knows no paths
            digest.update(file.read())
    in_tree = f"{os.path.dirname(function.__code__.co_filename)}/__pycache__"  # noqa: PTH120
    places = (place for place in (CONFIG.CACHE_DIR, in_tree, _own_folder()) if place and os.access(place, os.W_OK))
    return next((f"{place}/{digest.hexdigest()}" for place in places), "")


def _own_folder() -> str:
    """Return a folder that nobody else can write to; "" if there is none."""
    with suppress(OSError, AttributeError):  # A system without users has no getuid.
        folder = f"{tempfile.gettempdir()}/fairness-audits-{os.getuid()}"
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102, numerical code knows no paths
        found = os.lstat(folder)
        # Anyone who can write to this folder can run programs as this user, because Numba unpickles its files.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return folder
    return ""
