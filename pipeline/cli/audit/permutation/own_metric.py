"""A metric of the user's own: a function(y, score, weight) in a file or a module."""

from __future__ import annotations

import inspect
from pathlib import Path

from pipeline.cli.network import _import_module, _run_file
from pipeline.cli.table import reason
from pipeline.permutation.metrics import UserMetric


def own_metric(text: str) -> UserMetric:
    """The metric that ``path/to/file.py:name`` or ``package.module:name`` names.

    It is a function of y, score and weight, arrays (n,), or an instance of ``UserMetric``. A function with the
    attribute ``batched = True`` also takes weights (T, n) and then gives (T,). Raises ValueError where there is none.
    """
    where, _, name = text.rpartition(":")
    try:
        module = _run_file(Path(where)) if where.endswith(".py") else _import_module(where)
    except Exception as error:
        raise ValueError(f"--metric {text}: importing {where!r} failed with {reason(error)}") from error
    if not hasattr(module, name):
        public = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        raise ValueError(f"--metric {text}: {where!r} has no {name!r}. It has: {', '.join(public) or 'nothing'}")
    found = getattr(module, name)
    if isinstance(found, UserMetric):
        return found
    try:
        inspect.signature(found).bind("y", "score", "weight")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"--metric {text}: expected a function of three arrays, (y, score, weight), that gives a number: "
            f"{reason(error)}"
        ) from error
    return UserMetric(name, found, batched=bool(getattr(found, "batched", False)))
