"""What the options ask for: which metrics are compared, by which tests, and whether the options agree."""

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.arguments import Given
from fairness_audits.audits.permutation import monte_carlo
from fairness_audits.audits.permutation.equivalence import Bounds, check_margin
from fairness_audits.audits.permutation.metrics import (
    CALIBRATION,
    EQUALIZED_ODDS,
    EVERYTHING,
    EXPOSURE,
    METRICS,
    NEGATIVE,
    POSITIVE,
    RATES,
    WITHOUT_LABEL,
    Auc,
    Mean,
    Metric,
    Rate,
    UserMetric,
    our_name,
    suggestion,
)
from fairness_audits.audits.permutation.monte_carlo import Alternative
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model_files import named_object
from fairness_audits.messages import advised, listed, reason
from fairness_audits.seeds import generators

CORRELATION = "correlation"
SEVERAL = {EQUALIZED_ODDS: ("tpr", "fpr")}
"""Fairness notions that concern more than one metric."""
OWN = {metric.name: metric for metric in (CALIBRATION, EXPOSURE)}
"""Metrics that only an audit of one ranking or score has."""
KNOWN = (*METRICS, *SEVERAL, *OWN, CORRELATION)
ACCURACY, BASE_RATE = "accuracy", "base_rate"
OF_LABELS = (BASE_RATE, CALIBRATION.name)
"""Rates that do not use decisions."""
DRAWS = 10_000
FOUR_FIFTHS = 0.8
UNIT = (0.0, 1.0)


@dataclass(frozen=True)
class Asked:
    """The options of a run, the ``metrics`` to compare, the number of ``draws``, and the ``correction``.

    The ``correction`` has its name in ``inference``.
    """

    given: Given
    metrics: tuple[Metric, ...]
    draws: int
    correction: str

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest score allowed."""
        probability = any(isinstance(metric, Mean) and metric.probability for metric in self.metrics)
        return UNIT if probability else (-math.inf, math.inf)

    def testing(self, metric: Metric | None = None) -> monte_carlo.Settings:
        """Return the test settings of a metric, or of a correlation."""
        same = self.given.some("method", "alpha", "resampling_risk")
        return monte_carlo.Settings(**same, alternative=self.alternative(metric), draws=self.draws)

    def drawn(self, metric: Metric) -> bool:
        """Return whether random permutations test the metric: it is not a rate, or the rows or the method need them."""
        clustered = self.given.cluster is not None or self.given.weight is not None
        return not isinstance(metric, Rate) or clustered or self.given.method not in ("auto", "exact")

    def alternative(self, metric: Metric | None = None) -> Alternative:
        """Return the alternative of the options; the default is two-sided, with equal tails if T is permuted."""
        equal = metric is not None and self.drawn(metric) and self.correction != "max_t"
        return self.given.alternative or ("equal-tailed" if equal else "two-sided")

    @property
    def bounds(self) -> Bounds | None:
        """Return the bounds to test; None if only equality is tested."""
        if self.given.margin is not None:
            return Bounds.margin(self.given.margin)
        if self.given.ratio:
            return Bounds.at_least(self.given.at_least or FOUR_FIFTHS, lowest_first=not self.given.reference)
        return None

    @property
    def calibrated(self) -> bool:
        """Whether rates are compared within bins of the score."""
        return CALIBRATION in self.metrics

    @property
    def strata(self) -> tuple[str, ...]:
        """The names of what the strata are levels of; empty if there are none."""
        return (f"bin of {self.given.score}",) if self.calibrated else tuple(self.given.within)

    def rng(self, *what: str) -> np.random.Generator:
        """Return the generator of a test, independent of the other tests of the run."""
        (rng,) = generators("audit", "permutation", str(self.given.seed), *what, repetitions=1)
        return rng


def asked_by(given: Given) -> Asked:
    """Return what the options ask for. Raises InvalidInput if options conflict."""
    named: list[Any] = [our_name(one) if isinstance(one, str) else one for one in given.metric]
    names = list(dict.fromkeys(part for one in named for part in SEVERAL.get(one, (one,))))
    if unknown := [name for name in names if isinstance(name, str) and ":" not in name and name not in KNOWN]:
        raise InvalidInput(
            f"{advised('metric', ','.join(unknown))}: expected metrics among {', '.join(KNOWN)}, or your own function "
            f"(path/to/file.py:name){suggestion(unknown[0], *SEVERAL, CORRELATION)}",
            option="metric",
        )
    known = {**METRICS, **OWN}
    metrics = [known[name] if name in known else own_metric(name) for name in names if name != CORRELATION]
    _check_outputs(given, metrics)
    for metric in metrics:
        _check_metric(metric, given)
    if CORRELATION in names:
        _check_correlation(given)
    elif given.attribute:
        raise InvalidInput("attribute needs the metric correlation", option="attribute", remedy="Add the metric")
    if given.group and not metrics:
        remedy = "Add one, such as metric=auc"
        raise InvalidInput("group needs a metric that compares groups", option="group", remedy=remedy)
    if given.within:
        _check_within(given, metrics)
    if CALIBRATION in metrics:
        _check_calibration(given, names)
    elif given.score_bins is not None:
        raise InvalidInput("score_bins needs the metric calibration", option="score_bins", remedy="Add the metric")
    if given.matched is not None:
        _check_matched(given, metrics)
    _check_comparison(given)
    return Asked(given, tuple(metrics), given.draws or DRAWS, given.correct.replace("-", "_"))


def _check_outputs(given: Given, metrics: list[Metric]) -> None:
    """Raise InvalidInput for outputs of a model that do not fit together."""
    scored, decided = given.score is not None, given.prediction is not None
    if not (scored or decided) and [metric.name for metric in metrics] != [BASE_RATE]:
        raise InvalidInput("there is nothing to audit", remedy="Give the score or the prediction")
    if given.regression:
        given.refuse(("threshold", "positive"), "labels of two classes")
    deciding = [name for name in ("threshold", "top") if getattr(given, name) is not None]
    for name in deciding:
        if not scored:
            problem = f"{name} turns scores into decisions, but there is no score"
            raise InvalidInput(problem, option=name, remedy="Give the score")
        if decided or len(deciding) > 1:
            others = "the threshold" if len(deciding) > 1 else "the prediction"
            problem = f"{deciding[-1]} turns scores into decisions, but {others} already gives decisions"
            raise InvalidInput(problem, option=deciding[-1], remedy="Drop one of them")
    if given.top is not None and given.weight is not None:
        problem = "top counts rows of a ranking, but with weights a row stands for several"
        raise InvalidInput(problem, option="top", remedy="Give the threshold of the cut instead")
    if given.positive is not None and given.label is None:
        problem = "positive names a value of the label, but there is no label"
        raise InvalidInput(problem, option="positive", remedy="Code the decisions as 0 and 1")


def _check_metric(metric: Metric, given: Given) -> None:
    """Raise InvalidInput if a metric lacks its inputs, or does not fit the options."""
    name, rate, own = metric.name, of_decisions(metric), isinstance(metric, UserMetric)
    if given.label is None and name not in WITHOUT_LABEL:
        raise InvalidInput(f"metric {name} needs the true class of each row", option="label", remedy="Give the label")
    if not given.group:
        raise InvalidInput(f"metric {name} compares groups", option="group", remedy="Give the group")
    if given.regression and (isinstance(metric, Rate | Auc) or (isinstance(metric, Mean) and metric.binary) or rate):
        remedy = "With regression, use mean_score, mean_error, absolute_error, squared_error, or your own metric"
        raise InvalidInput(f"metric {name} needs two classes", option="metric", remedy=remedy)
    if given.weight is not None and metric is EXPOSURE:
        problem = "exposure counts the positions of a ranking, but with weights a row stands for several"
        raise InvalidInput(problem, option="weight", remedy="Drop one of them")
    if given.weight is not None and own:
        raise InvalidInput(f"metric {name} cannot use weights", option="weight", remedy="Drop one of them")
    decided = any(value is not None for value in (given.prediction, given.threshold, given.top))
    if rate and name not in OF_LABELS and not decided:
        remedy = "Give the prediction, or a threshold for the scores"
        raise InvalidInput(f"metric {name} needs decisions", option="prediction", remedy=remedy)
    if (not (rate or own) or metric is CALIBRATION) and given.score is None:
        raise InvalidInput(f"metric {name} needs scores", option="score", remedy="Give the score")
    if isinstance(metric, Rate | Auc):
        check_margin(given.margin, name)


def _check_correlation(given: Given) -> None:
    """Raise InvalidInput if the correlation lacks its inputs, or does not fit the options."""
    if not given.attribute:
        problem = "metric correlation needs a numeric column, such as age"
        raise InvalidInput(problem, option="attribute", remedy="Give the attribute")
    if given.cluster:
        raise InvalidInput("metric correlation cannot use clusters", option="cluster", remedy="Drop the cluster")
    if given.weight is not None:
        raise InvalidInput("metric correlation cannot use weights", option="weight", remedy="Drop one of them")
    if given.score is None:
        raise InvalidInput("metric correlation needs scores", option="score", remedy="Give the score")
    if given.ratio or given.margin is not None:
        problem = "margin and ratio compare groups"
        raise InvalidInput(problem, option="metric", remedy="Drop the metric correlation")


def _check_within(given: Given, metrics: Sequence[Metric]) -> None:
    """Raise InvalidInput for options that a comparison within strata cannot have."""
    if given.attribute or (others := [metric.name for metric in metrics if not isinstance(metric, Rate)]):
        name = CORRELATION if given.attribute else others[0]
        remedy = f"Use {listed(list(RATES))}"
        raise InvalidInput(f"within compares rates, and {name} is none", option="metric", remedy=remedy)
    _check_exact("within", given)


def _check_calibration(given: Given, names: Sequence[Any]) -> None:
    """Raise InvalidInput for options that a comparison within bins of the score cannot have."""
    conflicts = [name for name in ("within", "matched", "top") if given.values[name] not in (None, ())]
    conflicts += ["metric"] if len(names) > 1 else []
    if conflicts:
        problem = f"calibration compares labels within bins of the score, without {conflicts[0]}"
        if conflicts[0] == "metric":
            problem = "calibration compares labels within bins of the score, and other metrics do not"
        raise InvalidInput(problem, option=conflicts[0], remedy="Ask for calibration alone")
    _check_exact("calibration", given)


def _check_exact(what: str, given: Given) -> None:
    """Raise InvalidInput for options that the exact test of strata cannot have."""
    of_rows = ("cluster", "weight", "resampling_risk")
    conflicts = [name for name in of_rows if getattr(given, name) is not None]
    conflicts += ["correct"] if given.correct == "max-t" else []
    conflicts += ["method"] if given.method not in ("auto", "exact") else []
    if conflicts:
        value = given.values[conflicts[0]]
        problem = f"{what} has an exact test, which cannot have {advised(conflicts[0], value)}"
        raise InvalidInput(problem, option=conflicts[0], remedy="Drop one of them")


def _check_matched(given: Given, metrics: Sequence[Metric]) -> None:
    """Raise InvalidInput for metrics and options that a comparison within pairs cannot have."""
    for metric in metrics:
        fixed = isinstance(metric, Rate) and metric.among in (EVERYTHING, POSITIVE, NEGATIVE)
        if not fixed and not (isinstance(metric, Mean) and not metric.decisions):
            problem = f"matched compares the rows of a pair, and {metric.name} is no mean over them"
            raise InvalidInput(problem, option="metric", remedy="Use selection_rate, tpr, accuracy or a mean of scores")
    names = ("within", "weight", "attribute", "ratio", "top", "pairs")
    conflicts = [name for name in names if given.values[name] not in (None, (), False)]
    conflicts += ["correct"] if given.correct == "max-t" else []
    conflicts += ["method"] if given.method == "unstudentized" else []
    if conflicts:
        value = given.values[conflicts[0]]
        problem = f"matched compares rows within pairs, which cannot have {advised(conflicts[0], value)}"
        raise InvalidInput(problem, option=conflicts[0], remedy="Drop one of them")


def _check_comparison(given: Given) -> None:
    """Raise InvalidInput for options of which one makes the other meaningless."""
    if given.margin is not None and given.ratio:
        problem = "margin bounds a difference and ratio a ratio"
        raise InvalidInput(problem, option="margin", remedy="Drop one of them")
    if given.at_least is not None and not given.ratio:
        raise InvalidInput("at_least needs ratio", option="ratio", remedy="Add it")
    if given.pairs and given.reference:
        problem = "pairs compares all pairs of groups and reference only the pairs with one group"
        raise InvalidInput(problem, option="pairs", remedy="Drop one of them")
    if given.alternative not in (None, "two-sided") and (given.margin is not None or given.ratio):
        limit = "margin" if given.margin is not None else "ratio"
        remedy = f"Drop the alternative: {limit} has a limit on both sides"
        raise InvalidInput(f"alternative={given.alternative} tests one side", option="alternative", remedy=remedy)
    if given.correct == "max-t" and given.alternative not in (None, "two-sided"):
        remedy = "Drop the alternative, or use another correction"
        raise InvalidInput("correct=max-t is a two-sided test", option="alternative", remedy=remedy)


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
        found, name, _ = named_object("metric", metric)
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
