"""Numbers for JSON, which has neither NaN nor infinity."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> float | None:
    """The number, or None (null) where there is none: it is NaN, infinite or None itself."""
    return None if value is None or not math.isfinite(value) else float(value)
