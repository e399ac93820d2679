"""What the settings ask for: which metrics are compared, by which tests, and whether the settings agree."""

import inspect
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.audits.permutation import metrics as known_metrics
from fairness_audits.audits.permutation import monte_carlo
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.metrics import ALIASES, METRICS, Auc, Mean, Metric, Rate, UserMetric
from fairness_audits.audits.permutation.monte_carlo import Alternative
from fairness_audits.audits.permutation.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model_files import named_object
from fairness_audits.messages import advised, reason
from fairness_audits.results.sentences import caveats
from fairness_audits.seeds import generators

CORRELATION = "correlation"
SEVERAL = {"equalized_odds": ("tpr", "fpr")}
"""Fairness notions that concern more than one metric."""
KNOWN = (*METRICS, *ALIASES, *SEVERAL, CORRELATION)
BASE_RATE = "base_rate"
DRAWS = 10_000
FOUR_FIFTHS = 0.8
UNIT = (0.0, 1.0)
REFUSED = """
.nothing: there is nothing to audit: pass scores (--score) or decisions (--prediction)
label: metric {metric} needs the true class of each row: pass --label
threshold: --threshold turns scores into decisions, but there is no --score
threshold.both: --threshold turns scores into decisions, but --prediction already gives decisions: drop one of them
group.none: metric {metric} compares groups: pass --group
attribute.none: metric correlation needs a numeric column, such as age: pass --attribute
attribute: --attribute needs --metric=correlation: add it
group: --group needs a metric that compares groups, such as --metric=auc: add one
cluster: metric correlation cannot use clusters: drop --cluster
metric.regression: metric {metric} needs two classes: with --regression, use mean_score, mean_error, absolute_error,
  squared_error, or your own metric
weight: metric {metric} cannot use weights: drop one of them
prediction: metric {metric} needs decisions: pass --prediction, or a --threshold for the scores
score: metric {metric} needs scores: pass --score
margin: --margin bounds a difference and --ratio a ratio: drop one of them
margin.wide: --margin={margin:g} allows every difference of {metric}: use a margin below 1
positive: --positive names a value of the label, but there is no --label: code the decisions as 0 and 1
ratio: --at-least needs --ratio: add it
resampling_risk: --resampling-risk controls the decision about equality, not about a margin: drop it
method.unstudentized: a margin needs exact or studentised tests: drop --method=unstudentized
ratio.metric: --ratio compares rates, and metric {metric} is not a rate: drop it
metric.correlated: --margin and --ratio compare groups: drop the metric correlation
pairs: --pairs compares all pairs of groups and --reference only the pairs with one group: drop one of them
alternative: --correct=max-t is a two-sided test: drop --alternative, or use another correction
"""
"""A refusal's name begins with the option to change; nothing to audit has none."""


@dataclass(frozen=True)
class Plan:
    """The ``metrics`` to compare, the number of ``draws``, and the name of the ``correction`` in ``inference``."""

    settings: Settings
    metrics: tuple[Metric, ...]
    draws: int
    correction: str

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest score allowed."""
        probability = any(isinstance(metric, Mean) and metric.probability for metric in self.metrics)
        return UNIT if probability else (-math.inf, math.inf)

    def testing(self, metric: Metric | None = None) -> monte_carlo.Settings:
        """Return the test settings of a metric, or of a correlation."""
        same = self.settings.some("method", "alpha", "resampling_risk")
        return monte_carlo.Settings(**same, alternative=self.alternative(metric), draws=self.draws)

    def drawn(self, metric: Metric) -> bool:
        """Return whether random permutations test the metric: it is not a rate, or the rows or the method need them."""
        clustered = self.settings.cluster is not None or self.settings.weight is not None
        return not isinstance(metric, Rate) or clustered or self.settings.method not in ("auto", "exact")

    def alternative(self, metric: Metric | None = None) -> Alternative:
        """Return the alternative of the settings; the default is two-sided, with equal tails if T is permuted."""
        equal = metric is not None and self.drawn(metric) and self.correction != "max_t"
        return self.settings.alternative or ("equal-tailed" if equal else "two-sided")

    @property
    def shown(self) -> Bounds | None:
        """Return the bounds to test; None if only equality is tested."""
        if self.settings.margin is not None:
            return Bounds.margin(self.settings.margin)
        if self.settings.ratio:
            return Bounds.at_least(self.settings.at_least or FOUR_FIFTHS, lowest_first=not self.settings.reference)
        return None

    def rng(self, *what: str) -> np.random.Generator:
        """Return the generator of a test, independent of the other tests of the run."""
        (rng,) = generators("audit", "permutation", str(self.settings.seed), *what, repetitions=1)
        return rng


def planned(settings: Settings) -> Plan:
    """Return the plan of the settings. Raises ValueError if settings conflict."""
    parts: list[Any] = [part for one in settings.metric for part in SEVERAL.get(one, (one,))]  # type: ignore[arg-type]
    named = list(dict.fromkeys(ALIASES.get(one, one) for one in parts))
    if unknown := [name for name in named if isinstance(name, str) and ":" not in name and name not in KNOWN]:
        raise InvalidInput(
            f"{advised('metric', ','.join(unknown))}: expected metrics among {', '.join(KNOWN)}, or "
            "your own function (path/to/file.py:name)",
            option="metric",
        )
    correlated, others = CORRELATION in named, [name for name in named if name != CORRELATION]
    metrics = tuple(known_metrics.metric_named(name) if name in METRICS else own_metric(name) for name in others)
    rates = [metric.name for metric in metrics if of_decisions(metric) and metric.name != BASE_RATE]
    scored = [metric.name for metric in metrics if not (of_decisions(metric) or isinstance(metric, UserMetric))]
    score, decided = settings.score is not None, settings.prediction is not None
    bounded = settings.ratio or settings.margin is not None
    found = {
        ".nothing": not score and not decided and [one.name for one in metrics] != [BASE_RATE],
        "label": settings.label is None
        and [{"metric": one.name} for one in metrics if one.name not in known_metrics.WITHOUT_LABEL],
        "threshold": settings.threshold is not None and not score,
        "threshold.both": settings.threshold is not None and decided,
        "group.none": not settings.group and [{"metric": metric.name} for metric in metrics],
        "attribute.none": correlated and not settings.attribute,
        "attribute": settings.attribute and not correlated,
        "group": settings.group and not metrics,
        "cluster": correlated and settings.cluster,
        "metric.regression": settings.regression and [{"metric": one.name} for one in metrics if _of_classes(one)],
        "weight": settings.weight is not None
        and [
            {"metric": getattr(one, "__name__", getattr(one, "name", one))}
            for one in named
            if one == CORRELATION or not isinstance(one, str) or ":" in one
        ],
        "prediction": not decided and settings.threshold is None and [{"metric": name} for name in rates],
        "score": not score and [{"metric": name} for name in [*scored, *[CORRELATION] * correlated]],
        "margin": settings.margin is not None and settings.ratio,
        "margin.wide": settings.margin is not None
        and settings.margin >= 1
        and [{"metric": one.name, "margin": settings.margin} for one in metrics if isinstance(one, Rate | Auc)],
        "positive": settings.positive is not None and settings.label is None,
        "ratio": settings.at_least is not None and not settings.ratio,
        "ratio.metric": settings.ratio and [{"metric": one.name} for one in metrics if not isinstance(one, Rate)],
        "resampling_risk": settings.resampling_risk is not None and bounded,
        "method.unstudentized": settings.method == "unstudentized" and bounded,
        "metric.correlated": correlated and bounded,
        "pairs": settings.pairs and settings.reference,
        "alternative": settings.correct == "max-t" and settings.alternative not in (None, "two-sided"),
    }
    if refused := next(caveats(REFUSED, found), None):
        raise InvalidInput(refused.text, option=refused.condition.partition(".")[0] or None)
    return Plan(settings, metrics, settings.draws or DRAWS, settings.correct.replace("-", "_"))


def _of_classes(metric: Metric) -> bool:
    return isinstance(metric, Rate | Auc) or (isinstance(metric, Mean) and (metric.binary or metric.decisions))


def of_decisions(metric: Metric) -> bool:
    return isinstance(metric, Rate) or (isinstance(metric, Mean) and metric.decisions)


def own_metric(metric: Any) -> UserMetric:
    """Return the user's metric, or load it from ``path/to/file.py:name`` or ``package.module:name``.

    A metric is a function of y, score and weight, arrays (n,), or an instance of ``UserMetric``. A function with the
    attribute ``batched = True`` also accepts weights (T, n) and then returns (T,). Raises ValueError if there is no
    such metric.
    """
    found, name = metric, getattr(metric, "__name__", type(metric).__name__)
    if isinstance(metric, str):
        found, name, _ = named_object("--metric", metric)
    if isinstance(found, UserMetric):
        return found
    try:
        inspect.signature(found).bind("y", "score", "weight")
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{advised('metric', metric if isinstance(metric, str) else name)}: expected a function (y, score, "
            f"weight) of three arrays that returns a number, but it failed with {reason(error)}",
            option="metric",
        ) from error
    return UserMetric(name, found, batched=bool(getattr(found, "batched", False)))
