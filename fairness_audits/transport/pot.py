"""Import of POT without its optional array libraries, which take seconds to import; JAX also prints warnings.

POT may use torch, which the regularised duals need, if torch is already imported. Environment variables that are
already set, even to the empty string, are not changed.
"""

import os
import sys

for backend in ("JAX", "TENSORFLOW", "CUPY", *(() if "torch" in sys.modules else ("PYTORCH",))):
    os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")

import ot  # noqa: E402

__all__ = ["ot"]
