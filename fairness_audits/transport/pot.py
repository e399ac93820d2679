"""Import of POT without its optional array libraries, which take seconds to import; JAX also prints warnings.

POT uses torch, which the regularised duals need, if torch is already imported; otherwise :func:`with_torch` adds it.
Environment variables that are already set, even to the empty string, are not changed.
"""

import importlib
import os
import sys
from typing import Any

DISABLED = "POT_BACKEND_DISABLE_"
OURS = {
    library
    for library in ("JAX", "TENSORFLOW", "CUPY", *(() if "torch" in sys.modules else ("PYTORCH",)))
    if os.environ.setdefault(f"{DISABLED}{library}", "ours") == "ours"
}
"""The libraries that this module has disabled."""

import ot  # noqa: E402

__all__ = ["ot", "with_torch"]


def with_torch() -> Any:
    """Return POT with its support of tensors. Raises ValueError if an environment variable disables it."""
    if "TorchBackend" not in [one.__name__ for one in ot.backend.get_available_backend_implementations()]:
        if "PYTORCH" not in OURS:
            raise ValueError(f"POT cannot use torch: set the environment variable {DISABLED}PYTORCH to an empty string")
        del os.environ[f"{DISABLED}PYTORCH"]
        importlib.reload(ot.backend)
    return ot
