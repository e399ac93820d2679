"""What the user asks for, checked as far as it can be without the data."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pipeline.audits.permutation.metrics import ALIASES, METRICS, Mean, Metric, Rate, UserMetric, metric_named
from pipeline.audits.permutation.settings import Settings
from pipeline.cli.audit.permutation.own_metric import own_metric

CORRELATIONS: Mapping[str, str] = {
    "correlation": "correlation of the score",
    "error_correlation": "correlation of the error (score - label)",
}
DRAWS, OWN_DRAWS = 10_000, 1_000
UNIT = (0.0, 1.0)
AS_GIVEN = (
    *("label", "score", "prediction", "threshold", "cluster", "weight", "positive", "real_label", "between"),
    *("seed", "bins", "score_range"),
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
    attributes: tuple[str, ...]
    metrics: tuple[Metric, ...]
    correlations: tuple[str, ...]
    settings: Settings
    own_draws: int
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
    if arguments.between is not None and (len(arguments.between) != 2 or len(arguments.group) != 1):
        raise ValueError("--between takes two names, A,B, and goes with one --group column")
    if arguments.correct == "max-t" and arguments.alternative != "two-sided":
        raise ValueError("--correct max-t is a two-sided test: leave --alternative out, or take another correction")
    draws = arguments.draws or DRAWS
    settings = Settings(
        method=arguments.method,
        alternative=arguments.alternative,
        alpha=arguments.alpha,
        draws=draws,
        resampling_risk=arguments.resampling_risk,
    )
    return Asked(
        **{name: getattr(arguments, name) for name in AS_GIVEN},
        groups=tuple(dict.fromkeys(arguments.group)),
        attributes=tuple(dict.fromkeys(arguments.attribute)),
        metrics=metrics,
        correlations=correlations,
        settings=settings,
        own_draws=arguments.draws or OWN_DRAWS,
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
    """ValueError for a metric without the columns that it is computed of, and for columns without a metric."""
    if arguments.score is None and arguments.prediction is None:
        raise ValueError("nothing to audit: name the column of scores (--score) or of decisions (--prediction)")
    if arguments.threshold is not None and arguments.score is None:
        raise ValueError("--threshold cuts scores, but there is no --score column")
    if metrics and not arguments.group:
        raise ValueError(f"metric {metrics[0].name} is compared between groups: name their column with --group")
    if correlations and not arguments.attribute:
        raise ValueError(f"metric {correlations[0]} needs a column of numbers, such as age: name it with --attribute")
    if arguments.attribute and not correlations:
        raise ValueError("--attribute goes with --metric correlation or error_correlation: add one")
    if arguments.group and not metrics:
        raise ValueError("--group goes with metrics that groups can be compared by, such as --metric auc: add one")
    if correlations and (arguments.cluster or arguments.weight):
        raise ValueError(f"metric {correlations[0]} takes rows as they are: leave --cluster and --weight out")
    rates = [metric.name for metric in metrics if isinstance(metric, Rate)]
    others = [metric.name for metric in metrics if not isinstance(metric, Rate | UserMetric)] + list(correlations)
    if rates and arguments.prediction is None and arguments.threshold is None:
        raise ValueError(
            f"metric {rates[0]} needs decisions: name their column with --prediction, or cut the scores with "
            "--threshold"
        )
    if others and arguments.score is None:
        raise ValueError(f"metric {others[0]} needs scores: name their column with --score")
    if arguments.real_label and (rates or any(metric.name in ("auc", "log_loss") for metric in metrics)):
        raise ValueError("--real-label is for mean errors and correlations: other metrics need a label of two classes")
