"""What the user asks for, checked as far as it can be without the data."""

from __future__ import annotations

import inspect
import math
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal

import numpy as np

from pipeline.audits.permutation.metrics import ALIASES, METRICS, Mean, Metric, Rate, UserMetric, metric_named
from pipeline.audits.permutation.result import Settings
from pipeline.cli.user_code import named_object
from pipeline.cli.words import refuse
from pipeline.messages import reason
from pipeline.types import Array

CORRELATIONS: Mapping[str, str] = {
    "correlation": "correlation of the score",
    "error_correlation": "correlation of the error (score - label)",
}
DRAWS, OWN_DRAWS = 10_000, 1_000
UNIT = (0.0, 1.0)
REFUSED = """
nothing: nothing to audit: name the column of scores (--score) or of decisions (--prediction)
threshold: --threshold cuts scores, but there is no --score column
no_group: metric {metric} is compared between groups: name their column with --group
no_attribute: metric {metric} needs a column of numbers, such as age: name it with --attribute
attribute: --attribute goes with --metric correlation or error_correlation: add one
group: --group goes with metrics that groups can be compared by, such as --metric auc: add one
rows_alone: metric {metric} takes rows as they are: leave --cluster and --weight out
decisions: metric {metric} needs decisions: name their column with --prediction, or cut the scores with --threshold
scores: metric {metric} needs scores: name their column with --score
real_label: --real-label is for mean errors and correlations: other metrics need a label of two classes
between: --between takes two names, A,B, and goes with one --group column
max_t: --correct max-t is a two-sided test: leave --alternative out, or take another correction
"""
AS_GIVEN = (
    *("label", "score", "prediction", "threshold", "cluster", "weight", "positive", "real_label", "between"),
    *("seed", "bins", "score_range", "pairs"),
)
"""What an argument says under its own name."""


@dataclass(frozen=True)
class Asked:
    """The columns and what to test of them. ``metrics`` compare groups, ``correlations`` go with attributes."""

    label: str
    score: str | None
    prediction: str | None
    threshold: float | None
    cluster: str | None
    weight: str | None
    positive: str | None
    real_label: bool
    groups: tuple[str, ...]
    between: tuple[str, str] | None
    pairs: bool
    attributes: tuple[str, ...]
    metrics: tuple[Metric, ...]
    correlations: tuple[str, ...]
    settings: Settings
    own_draws: int
    draws_given: bool
    correction: str
    seed: int
    bins: int | Literal["auto", "none"]
    score_range: tuple[float, float] | None

    @property
    def weighted(self) -> bool:
        """Whether rows are not alike, so that counts of them say too little."""
        return self.cluster is not None or self.weight is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """Which scores are allowed where they are not counted in bins."""
        if self.score_range is not None:
            return self.score_range
        probability = any(isinstance(metric, Mean) and metric.probability for metric in self.metrics)
        return UNIT if probability else (-math.inf, math.inf)


def asked(arguments: Namespace) -> Asked:
    """The request in the arguments. Raises ValueError where they do not fit together."""
    named = list(dict.fromkeys(ALIASES.get(name, name) for name in arguments.metric))
    correlations = tuple(name for name in named if name in CORRELATIONS)
    metrics = tuple(_metric(name) for name in named if name not in CORRELATIONS)
    _check_columns(arguments, metrics, correlations)
    own = {name: getattr(arguments, name) for name in ("method", "alternative", "alpha", "resampling_risk")}
    return Asked(
        **{name: getattr(arguments, name) for name in AS_GIVEN},
        groups=tuple(dict.fromkeys(arguments.group)),
        attributes=tuple(dict.fromkeys(arguments.attribute)),
        metrics=metrics,
        correlations=correlations,
        settings=Settings(**own, draws=arguments.draws or DRAWS),
        own_draws=arguments.draws or OWN_DRAWS,
        draws_given=arguments.draws is not None,
        correction=arguments.correct.replace("-", "_"),
    )


def _metric(name: str) -> Metric:
    if ":" in name:
        return own_metric(name)
    if name not in METRICS:
        known = ", ".join([*METRICS, *ALIASES, *CORRELATIONS])
        raise ValueError(f"--metric {name}: expected one of {known}; or path/to/file.py:name for one of your own")
    return metric_named(name)


def _check_columns(arguments: Namespace, metrics: tuple[Metric, ...], correlations: tuple[str, ...]) -> None:
    """ValueError for a metric without the columns that it is computed of, for columns without a metric, and for tests
    that are not made together."""
    rates = [metric.name for metric in metrics if isinstance(metric, Rate)]
    others = [metric.name for metric in metrics if not isinstance(metric, Rate | UserMetric)] + list(correlations)
    score, decided = arguments.score is not None, arguments.prediction is not None
    real = rates or {"auc", "log_loss"} & {metric.name for metric in metrics}
    pair = arguments.between is None or (len(arguments.between) == 2 and len(arguments.group) == 1)
    found = {
        "nothing": not score and not decided,
        "threshold": arguments.threshold is not None and not score,
        "no_group": not arguments.group and [{"metric": metric.name} for metric in metrics],
        "no_attribute": not arguments.attribute and [{"metric": name} for name in correlations],
        "attribute": arguments.attribute and not correlations,
        "group": arguments.group and not metrics,
        "rows_alone": (arguments.cluster or arguments.weight) and [{"metric": name} for name in correlations],
        "decisions": not decided and arguments.threshold is None and [{"metric": name} for name in rates],
        "scores": not score and [{"metric": name} for name in others],
        "real_label": arguments.real_label and real,
        "between": not pair,
        "max_t": arguments.correct == "max-t" and arguments.alternative != "two-sided",
    }
    refuse(REFUSED, found)


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
