"""Numba's ``njit`` with a disk cache wherever one can be written.

``NUMBA_CACHE_DIR`` sets the cache folder. Without it, Numba uses the folder of the source file or the user's cache. If
neither is writable, we use the user's own folder below the temporary folder (``TMPDIR``); if this fails too, every
process compiles for itself. The numbers are the same.
"""

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba

CONFIG: Any = numba.config


def njit(**options: Any) -> Callable[[Any], Any]:
    """Return Numba's decorator with these options. With ``cache``, it falls back to no cache if necessary."""

    def compiled(function: Any) -> Any:
        with suppress(RuntimeError):  # Numba's of a function that it has no place for.
            return numba.njit(**options)(function)
        before, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, _own_folder()
        try:
            return numba.njit(**options | {"cache": bool(CONFIG.CACHE_DIR)})(function)
        finally:
            CONFIG.CACHE_DIR = before

    return compiled


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
