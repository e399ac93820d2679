"""POT, told not to import every array library that is installed: they cost seconds, and JAX complains.

torch, which regularised duals need, is left to it where it is imported already. A variable that is set, if only to
nothing, stays as it is.
"""

import os
import sys

for backend in ("JAX", "TENSORFLOW", "CUPY", *(() if "torch" in sys.modules else ("PYTORCH",))):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")

import ot  # noqa: E402

__all__ = ["ot"]
