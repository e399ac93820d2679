"""A share of simulations, with its own Monte-Carlo error, as tidy rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.types import Array


def share(statistic: str, happened: Array) -> list[dict[str, Any]]:
    r"""The mean f of S booleans (S,) and its standard error, :math:`\sqrt{f (1 - f) / S}`, as two rows."""
    value = float(np.mean(happened))
    error = float(np.sqrt(value * (1 - value) / len(happened)))
    return [{"statistic": statistic, "value": value}, {"statistic": f"{statistic}_std_error", "value": error}]
