"""A metric of the user's own: a function(y, score, weight) in a file or a module."""

from __future__ import annotations

import inspect

from pipeline.cli.user_code import named_object
from pipeline.messages import reason
from pipeline.permutation.metrics import UserMetric


def own_metric(text: str) -> UserMetric:
    """The metric that ``path/to/file.py:name`` or ``package.module:name`` names.

    It is a function of y, score and weight, arrays (n,), or an instance of ``UserMetric``. A function with the
    attribute ``batched = True`` also takes weights (T, n) and then gives (T,). Raises ValueError where there is none.
    """
    named = named_object("--metric", text)
    found = named.value
    if isinstance(found, UserMetric):
        return found
    try:
        inspect.signature(found).bind("y", "score", "weight")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"--metric {text}: expected a function of three arrays, (y, score, weight), that gives a number: "
            f"{reason(error)}"
        ) from error
    return UserMetric(named.name, found, batched=bool(getattr(found, "batched", False)))
