"""POT, told not to import every library that is installed: they cost seconds, and JAX complains.

torch, which regularised duals need, is left to it where it is imported already. A variable that is set, if only to
nothing, stays as it is. Of scikit-learn and networkx it takes clusterings for solvers that nothing here asks for, and
does without them where they are not installed: to it they are not, unless they are imported already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OPTIONAL = ("sklearn", "networkx")


@contextmanager
def _without(libraries: tuple[str, ...]) -> Iterator[None]:
    """Importing one of these raises ImportError, unless it is imported already."""
    hidden = [library for library in libraries if library not in sys.modules]
    # None in the place of a module is how the import system is told that there is none.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for library in hidden:
            del sys.modules[library]


for backend in ("JAX", "TENSORFLOW", "CUPY", *(() if "torch" in sys.modules else ("PYTORCH",))):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")

with _without(OPTIONAL):
    import ot

__all__ = ["ot"]
