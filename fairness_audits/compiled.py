"""Numba's ``njit``, whose machine code is kept on disk wherever there is a place for it.

``NUMBA_CACHE_DIR`` names the place. Without it, Numba takes the folder of the source file or the user's cache. Where
neither can be written, we take a folder of the user's own below the temporary one (``TMPDIR``); where that fails too,
every process compiles for itself. The numbers are the same.
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
    """Return Numba's decorator with these options; with ``cache``, one that does without where it has to."""

    def compiled(function: Any) -> Any:
        with suppress(RuntimeError):  # Numba's of a function that it has no place for.
            return numba.njit(**options)(function)
        given, CONFIG.CACHE_DIR = CONFIG.CACHE_DIR, _own_folder()
        try:
            return numba.njit(**options | {"cache": bool(CONFIG.CACHE_DIR)})(function)
        finally:
            CONFIG.CACHE_DIR = given

    return compiled


def _own_folder() -> str:
    """A folder that nobody else can write to; "" where there is none."""
    with suppress(OSError, AttributeError):  # A system without users has no getuid.
        folder = f"{tempfile.gettempdir()}/fairness-audits-{os.getuid()}"
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102, numerical code knows no paths
        found = os.lstat(folder)
        # Whoever can write there can run programs as this user: Numba opens pickles.
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
            return folder
    return ""
