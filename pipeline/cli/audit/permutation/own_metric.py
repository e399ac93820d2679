"""A metric of the user's own: a function(y, score, weight) in a file or a module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from pipeline.audits.permutation.metrics import UserMetric
from pipeline.cli.user_code import named_object
from pipeline.messages import reason
from pipeline.types import Array


class FailedMetric(Exception):
    """The user's function failed in a way that is no undefined metric, which it says by a ValueError."""


def own_metric(text: str) -> UserMetric:
    """The metric that ``path/to/file.py:name`` or ``package.module:name`` names.

    It is a function of y, score and weight, arrays (n,), or an instance of ``UserMetric``. A function with the
    attribute ``batched = True`` also takes weights (T, n) and then gives (T,). Raises ValueError where there is none.
    """
    named = named_object("--metric", text)
    found = named.value
    if isinstance(found, UserMetric):
        return replace(found, function=_watched(text, found.function))
    try:
        inspect.signature(found).bind("y", "score", "weight")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"--metric {text}: expected a function of three arrays, (y, score, weight), that gives a number: "
            f"{reason(error)}"
        ) from error
    return UserMetric(named.name, _watched(text, found), batched=bool(getattr(found, "batched", False)))


def _watched(text: str, function: Callable[..., Any]) -> Callable[[Array, Array, Array], float | Array]:
    """The function, with errors that name the metric and where it comes from.

    Raises FailedMetric where it fails or gives something that is no number. Its own ValueError stays one: on permuted
    rows that means an undefined metric.
    """

    @wraps(function)
    def watched(y: Array, score: Array, weight: Array) -> float | Array:
        try:
            value = function(y, score, weight)
        except ValueError as error:
            raise ValueError(f"--metric {text}: the function failed with {reason(error)}") from error
        except Exception as error:
            raise FailedMetric(f"--metric {text}: the function failed with {reason(error)}") from error
        try:
            return np.asarray(value, dtype=float)[()]
        except (TypeError, ValueError) as error:
            raise FailedMetric(
                f"--metric {text}: expected the function to give a number, found {type(value).__name__} {value!r:.40}"
            ) from error

    return watched
