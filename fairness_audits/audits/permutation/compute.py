"""Run the audit: read the data of each metric, test it between groups, and correct for multiple tests."""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, logit, ndtri

from fairness_audits.audits.inference import adjusted_p, wilson_interval
from fairness_audits.audits.permutation import metrics as known_metrics
from fairness_audits.audits.permutation import monte_carlo
from fairness_audits.audits.permutation.correlation import correlation_test
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.metrics import ALIASES, METRICS, Auc, Mean, Metric, Rate, UserMetric
from fairness_audits.audits.permutation.monte_carlo import SIDED, Alternative, tails
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, near_zero
from fairness_audits.audits.permutation.pairs import largest_t
from fairness_audits.audits.permutation.permutation_test import PermutationTest, independent, tested
from fairness_audits.audits.permutation.resamplers import countable, resampler
from fairness_audits.audits.permutation.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model import named_object
from fairness_audits.inputs.table import Attribute, attribute
from fairness_audits.messages import advised, listed, reason
from fairness_audits.progress import track
from fairness_audits.results.formats import plural
from fairness_audits.results.sentences import caveats
from fairness_audits.seeds import generators
from fairness_audits.tables import contingency, numbers, predictions
from fairness_audits.tables.groupings import Constant
from fairness_audits.tables.groupings import grouping as grouping_of
from fairness_audits.tables.levels import level_name, rest_of
from fairness_audits.tables.table import Table

CORRELATION = "correlation"
SEVERAL = {"equalized_odds": ("tpr", "fpr")}
"""Fairness notions that concern more than one metric."""
KNOWN = (*METRICS, *ALIASES, *SEVERAL, CORRELATION)
BASE_RATE = "base_rate"
NO_LABEL, NO_DECISION = Constant("no label"), Constant("no decision")
DRAWS = 10_000
FOUR_FIFTHS = 0.8
WIDTH = 0.2
"""If the interval of a difference of rates is wider, a test without rejection is inconclusive."""
UNIT = (0.0, 1.0)
ROUNDING = 1e-9
ROWS = 100_000
"""Largest number of rows read row by row. In larger data each distinct score is counted if there are few."""
DISTINCT = 2_000
"""Largest number of distinct scores that counts as few."""
IN_MEMORY = 20_000_000
"""Largest number of rows held in memory. In larger data scores are counted in bins, unless the user objects."""
BINS = 10_000
REFUSED = """
nothing: nothing to audit: give scores (--score) or decisions (--prediction)
labels: metric {metric} needs the true class of each row: give it by --label
threshold: --threshold cuts scores, but --score is not given
both: --threshold makes decisions of scores, and --prediction gives them: leave one of them out
no_group: metric {metric} is compared between groups: give them by --group
no_attribute: metric correlation needs a number of each row, such as age: give it by --attribute
attribute: --attribute goes with --metric=correlation: add it
group: --group goes with metrics that groups can be compared by, such as --metric=auc: add one
rows_alone: metric correlation takes rows as they are: leave --cluster out
regression: metric {metric} is of two classes: with --regression take mean_score, mean_error, absolute_error,
  squared_error, or a metric of your own
weighted: --weight is of rates, the AUC and means, which metric {metric} is not: leave one of them out
weighted_ratio: --ratio takes rows as they are: leave --weight out
decisions: metric {metric} needs decisions: give them by --prediction, or cut the scores by --threshold
scores: metric {metric} needs scores: give them by --score
margin: --margin is of differences and --ratio of ratios: leave one of them out
ratio: --at-least goes with --ratio: add it
early: --resampling-risk stops when the decision about equality is safe, not that about a margin: leave it out
unstudentized: a margin is shown by exact or studentised tests: leave --method=unstudentized out
sampled: ratios are tested exactly: leave --method=studentized out
ratios: --ratio is of rates, which metric {metric} is not: leave it out
clustered: --ratio takes rows as they are: leave --cluster out
correlated: --margin and --ratio compare groups: leave the metric correlation out
max_t: --correct=max-t is a two-sided test: leave --alternative out, or take another correction
"""

TO_CHANGE = {
    **{"labels": "label", "threshold": "threshold", "both": "threshold", "no_group": "group", "group": "group"},
    **{"no_attribute": "attribute", "attribute": "attribute", "decisions": "prediction", "scores": "score"},
    **{"margin": "margin", "ratio": "ratio", "ratios": "ratio", "early": "resampling_risk", "correlated": "metric"},
    **{"unstudentized": "method", "sampled": "method", "clustered": "cluster", "rows_alone": "cluster"},
    **{"weighted": "weight", "weighted_ratio": "weight", "regression": "metric", "max_t": "alternative"},
}
"""The option to change for each refusal, by the refusal's name."""


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
            return Bounds.at_least(self.settings.at_least or FOUR_FIFTHS, one_sided=bool(self.settings.reference))
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
            f"{advised('metric', ','.join(unknown))}: expected some of {', '.join(KNOWN)}; or path/to/file.py:name for "
            "one of your own",
            option="metric",
        )
    correlated, others = CORRELATION in named, [name for name in named if name != CORRELATION]
    metrics = tuple(known_metrics.metric_named(name) if name in METRICS else own_metric(name) for name in others)
    # Refuse metrics without their columns, columns without a metric, and tests that cannot be combined.
    rates = [metric.name for metric in metrics if _of_decisions(metric) and metric.name != BASE_RATE]
    scored = [metric.name for metric in metrics if not (_of_decisions(metric) or isinstance(metric, UserMetric))]
    score, decided = settings.score is not None, settings.prediction is not None
    found = {
        "nothing": not score and not decided and [one.name for one in metrics] != [BASE_RATE],
        "labels": settings.label is None
        and [{"metric": one.name} for one in metrics if one.name not in known_metrics.WITHOUT_LABEL],
        "threshold": settings.threshold is not None and not score,
        "both": settings.threshold is not None and decided,
        "no_group": not settings.group and [{"metric": metric.name} for metric in metrics],
        "no_attribute": correlated and not settings.attribute,
        "attribute": settings.attribute and not correlated,
        "group": settings.group and not metrics,
        "rows_alone": correlated and settings.cluster,
        "regression": settings.regression and [{"metric": one.name} for one in metrics if _of_classes(one)],
        "weighted": settings.weight is not None
        and [{"metric": one} for one in named if one == CORRELATION or not isinstance(one, str) or ":" in one],
        "weighted_ratio": settings.ratio and settings.weight is not None,
        "decisions": not decided and settings.threshold is None and [{"metric": name} for name in rates],
        "scores": not score and [{"metric": name} for name in [*scored, *[CORRELATION] * correlated]],
        "margin": settings.margin is not None and settings.ratio,
        "ratio": settings.at_least is not None and not settings.ratio,
        "ratios": settings.ratio and [{"metric": one.name} for one in metrics if not isinstance(one, Rate)],
        "clustered": settings.ratio and settings.cluster is not None,
        "early": settings.resampling_risk is not None and (settings.ratio or settings.margin is not None),
        "unstudentized": settings.method == "unstudentized" and (settings.ratio or settings.margin is not None),
        "sampled": settings.method == "studentized" and settings.ratio,
        "correlated": correlated and (settings.ratio or settings.margin is not None),
        "max_t": settings.correct == "max-t" and settings.alternative not in (None, "two-sided"),
    }
    if refused := next(caveats(REFUSED, found), None):
        raise InvalidInput(refused.text, option=TO_CHANGE.get(refused.condition))
    return Plan(settings, metrics, settings.draws or DRAWS, settings.correct.replace("-", "_"))


def _of_classes(metric: Metric) -> bool:
    return isinstance(metric, Rate | Auc) or (isinstance(metric, Mean) and (metric.binary or metric.decisions))


def _of_decisions(metric: Metric) -> bool:
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
            f"{advised('metric', metric if isinstance(metric, str) else name)}: expected a function of three arrays, "
            f"(y, score, weight), that gives a number: "
            f"{reason(error)}",
            option="metric",
        ) from error
    return UserMetric(name, found, batched=bool(getattr(found, "batched", False)))


Data: TypeAlias = tuple[Counts | Predictions, str]
"""The data of a metric's tests, and a description of how they were read."""


def read(table: Table, plan: Plan, grouping: Attribute) -> Iterator[tuple[Metric, Data]]:
    """Yield each metric with its data: counts of decisions, counts of scores, or rows. Each kind is read once."""
    settings = plan.settings
    undecided = settings.prediction is None and settings.threshold is None and settings.score is None
    base_rate = any(metric.name == BASE_RATE for metric in plan.metrics)
    for constant, needed in ((NO_LABEL, settings.label is None), (NO_DECISION, undecided or base_rate)):
        if needed and constant.name not in table.columns:
            table.add(constant)
    columns = {"group": grouping.column, "against": grouping.level, **settings.some("positive", "score")}
    columns["label"] = settings.label or NO_LABEL.name
    found: dict[Callable[..., Data], Data] = {}
    for metric in plan.metrics:
        alone = settings.cluster or settings.weight or settings.regression or isinstance(metric, UserMetric)
        reader = rows if alone else decisions if _of_decisions(metric) else scores
        if reader not in found:
            found[reader] = reader(table, plan, columns)
        yield metric, found[reader]


def decisions(table: Table, plan: Plan, columns: dict[str, Any]) -> Data:
    """Count rows by group x label x decision."""
    settings = plan.settings
    if settings.prediction is None and settings.threshold is None:
        made = contingency(table, **{**columns, "score": None}, prediction=NO_DECISION.name)
        return made, "counts of labels"
    score = None if settings.prediction else settings.score
    counted = contingency(table, **{**columns, **settings.some("prediction", "threshold"), "score": score})
    return counted, f"counts of decisions ({settings.prediction or f'{settings.score} >= {settings.threshold:g}'})"


def scores(table: Table, plan: Plan, columns: dict[str, Any]) -> Data:
    """Count rows by group x label x score if few scores are distinct, else read the rows, or bin them if too many."""
    bins, score = plan.settings.bins, str(plan.settings.score)
    if bins == "auto" and table.size() > ROWS and table.distinct((score,))[score] <= DISTINCT:
        exact = contingency(table, **columns, bounds=plan.bounds)
        return exact, f"counts of {len(exact.lower):,} distinct scores"
    if bins == "none" or (bins == "auto" and table.size() <= IN_MEMORY):
        return rows(table, plan, columns)
    number = BINS if bins == "auto" else bins
    counted = contingency(table, **columns, bounds=plan.bounds, bins=number)
    if (counted.lower == counted.upper).all():
        return counted, f"counts of {len(counted.lower):,} distinct scores"
    return counted, f"counts of scores in {len(counted.lower):,} bins by rank"


def rows(table: Table, plan: Plan, columns: dict[str, Any]) -> Data:
    """Read all rows."""
    others = plan.settings.some("prediction", "threshold", "cluster", "weight", "regression")
    if plan.settings.prediction is None and plan.settings.score is None:
        others["prediction"] = NO_DECISION.name
    content = predictions(table, **columns, **others, bounds=plan.bounds)
    weighted = f", weighted by {plan.settings.weight}" if plan.settings.weight else ""
    told = f"rows, together by {plan.settings.cluster}" if plan.settings.cluster else "every row"
    return content, told + weighted


def varies(content: Counts | Predictions, metric: Metric) -> bool:
    """Return whether a metric's decisions or scores, or the labels of a base rate, vary."""
    of_label = metric.name == BASE_RATE
    if isinstance(content, Counts):
        return int((content.table.sum(axis=(0, 2 if of_label else 1)) > 0).sum()) > 1
    if of_label:
        return bool(np.ptp(content.label) > 0)
    values = content.prediction if _of_decisions(metric) else content.score
    return values is not None and bool(np.ptp(values) > 0)


def fewest(content: Counts | Predictions, metric: Metric) -> int | None:
    """Return the smallest number of units of one kind in a group; None for metrics with a single kind of unit.

    The kinds are positives and negatives for the AUC, and the rows in the denominator of a rate.
    """
    return int(independent(content, metric).min()) if isinstance(metric, Auc | Rate) else None


class Support(NamedTuple):
    """Number of rows ``n`` of a group behind a metric, and of ``events`` among them; None without events.

    Events are the numerator of a rate, and the positives of an AUC.
    """

    n: int
    events: int | None


def support(content: Counts | Predictions, metric: Metric) -> tuple[Support, ...]:
    """Return the number of rows and events behind the metric of each group."""
    if isinstance(metric, Rate):
        table = content.table if isinstance(content, Counts) else content.decision_table()
        return tuple(Support(int(x + z), int(x)) for x, z, _ in metric.split(table))
    events: Sequence[int | None] = [None] * len(content.groups)
    if isinstance(metric, Auc):
        events = (content.table[:, 1].sum(axis=1) if isinstance(content, Counts) else content.positives()).tolist()
    return tuple(Support(int(n), x) for n, x in zip(content.sizes, events, strict=True))


@dataclass(frozen=True)
class Finding:
    """One test of the run.

    ``fewest`` is the smallest number of units of one kind (such as positives) in a group. ``varied`` says whether the
    model's outputs differ. ``rests_on`` holds the rows and events behind each group's metric. Tests of one
    ``hypothesis``, such as equal TPR and equal FNR, count once. ``adjusted`` is the corrected p-value, None if the test
    is undefined. ``least`` is the corrected value of the smallest p-values that bins of scores allow. ``beyond`` is the
    corrected p-value of the hypothesis "within the bounds".
    """

    grouping: str
    title: str
    test: PermutationTest
    basis: str
    fewest: int
    hypothesis: tuple[str, ...]
    varied: bool = True
    adjusted: float | None = None
    least: float | None = None
    rests_on: tuple[Support, ...] = ()
    beyond: float | None = None

    @property
    def bounds(self) -> Literal["shown", "not shown", "exceeded"] | None:
        """Return the conclusion about the bounds; None without bounds, or if the test is undefined."""
        found, alpha = self.test.equivalence, self.test.alpha
        if found is None:
            return None
        if found.p_within <= alpha:
            return "shown"
        return "exceeded" if self.beyond is not None and self.beyond <= alpha else "not shown"

    def wide(self, width: float | None) -> bool:
        """Return whether equality is not rejected but the interval is wider than ``width``; the default is for rates.

        For a one-sided test, the width is twice the distance to the finite end.
        """
        test = self.test
        limit = width or (WIDTH if test.metric in known_metrics.RATES else math.inf)
        if self.rejected or test.undefined or test.metric == CORRELATION:
            return False
        assert test.difference is not None
        assert test.ci_low is not None
        assert test.ci_high is not None
        sides = {"greater": (test.ci_low,) * 2, "less": (test.ci_high,) * 2}
        ends = sides.get(test.alternative, (test.ci_low, test.ci_high))
        return sum(abs(end - test.difference) for end in ends) > limit

    @property
    def turned(self) -> bool:
        """Return whether the rejection of equality may depend on the order of scores within bins."""
        return bool(self.test.hidden) and not self.rejected and self.least is not None and self.least <= self.test.alpha

    @property
    def rejected(self) -> bool:
        """Return whether equality is rejected after the correction."""
        return self.adjusted is not None and self.adjusted <= self.test.alpha


@dataclass(frozen=True)
class GroupEstimate:
    """The metric of one group, with its interval at level 1 - alpha; None if it does not exist.

    The interval is Wilson's for rates of unclustered rows, normal on the log-odds scale for the AUC, else normal.
    """

    grouping: str
    metric: str
    title: str
    name: str
    rows: int
    rests_on: Support
    estimate: float | None
    low: float | None
    high: float | None


def by_group(content: Counts | Predictions, metric: Metric, grouping: str, plan: Plan) -> list[GroupEstimate]:
    """Estimate a metric in each group, sorted with the worst first: the lowest value, or the highest error or loss."""
    rests_on, settings = support(content, metric), plan.testing(metric)
    if isinstance(metric, Rate) and countable(content):
        ends = [wilson_interval(x or 0, n, 1 - settings.alpha) if n else (math.nan, math.nan) for n, x in rests_on]
        values = [(x or 0) / n if n else math.nan for n, x in rests_on]
    else:
        content, moved = near_zero(content) if isinstance(metric, Mean) and metric.moves else (content, 0.0)
        observed = resampler(content, metric, 0, settings.smoothing, settings.bootstraps).observed
        values = (observed.value + moved).tolist()
        reach = float(ndtri(1 - settings.alpha / 2)) * np.sqrt(
            np.where(observed.variance > 0, observed.variance, np.nan)
        )
        low, high = observed.value - reach, observed.value + reach
        if isinstance(metric, Auc):
            with np.errstate(divide="ignore", invalid="ignore"):
                odds, wide = logit(observed.value), reach / (observed.value * (1 - observed.value))
            low, high = expit(odds - wide), expit(odds + wide)
        ends = list(zip((low + moved).tolist(), (high + moved).tolist(), strict=True))

    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    found = [
        GroupEstimate(grouping, metric.name, metric.title, name, int(rows), of, known(value), known(low), known(high))
        for name, rows, of, value, (low, high) in zip(
            content.groups, content.sizes, rests_on, values, ends, strict=True
        )
    ]
    sign = -1 if metric.name in known_metrics.HIGH_IS_WORSE else 1
    return sorted(found, key=lambda one: math.inf if one.estimate is None else sign * one.estimate)


def hypotheses(findings: Sequence[Finding]) -> int:
    """Return the number of hypotheses with a defined test."""
    return len({finding.hypothesis for finding in findings if finding.test.p_value is not None})


@dataclass(frozen=True)
class Job:
    """Tests to run and their ``hypotheses``; ``drawn`` says whether they use random permutations."""

    tests: Callable[[Plan], list[Finding]]
    hypotheses: tuple[tuple[str, ...], ...]
    drawn: bool


def gather(table: Table, plan: Plan) -> tuple[tuple[Finding, ...], tuple[GroupEstimate, ...], Plan]:
    """Read, test and correct; return the tests, the metrics of each group, and the plan with its final number of draws.

    The metrics of each pair of groups are adjacent.

    Raises ValueError for every error that the user can correct.
    """
    jobs: list[Job] = []
    groups: list[GroupEstimate] = []
    references = References(plan.settings.reference, every=plan.settings.ratio)
    for text in dict.fromkeys(plan.settings.group):
        grouping = _grouping(text, table)
        for metric, (content, basis) in read(table, plan, grouping):
            content, reference = references.last(content, grouping.name)
            jobs += _group_jobs(plan, grouping.name, metric, content, basis, reference)
            groups += by_group(content, metric, grouping.name, plan)
    references.check()
    for column in dict.fromkeys(plan.settings.attribute):
        jobs.append(Job(_correlation(table, plan, column), ((column, CORRELATION),), drawn=True))
    several = len(jobs) > 1 and plan.correction != "none" and any(job.drawn for job in jobs)
    if plan.settings.resampling_risk is not None and several:
        raise InvalidInput(
            "--resampling-risk stops when the decision of a test by itself is safe, which is another than that after a "
            f"correction for {len(jobs)} tests: leave it out, or say --correct=none",
            option="resampling_risk",
        )
    plan = with_enough_draws(plan, jobs)
    together: dict[tuple[str, tuple[str, str]], list[Finding]] = {}
    for job in track("permutations", jobs):
        for finding in job.tests(plan):
            together.setdefault((finding.grouping, finding.test.groups), []).append(finding)
    findings = [finding for pair in together.values() for finding in pair]
    return _corrected(findings, plan.correction), tuple(groups), plan


def _grouping(text: str, table: Table) -> Attribute:
    """Return the column, or the level of one, to group by. Crossed and cut columns are added to the table."""
    made = grouping_of(text, table.columns)
    if made is None:
        return attribute(text, table.columns)
    table.add(made)
    return Attribute(made.name)


class References:
    """The reference groups, and which of them occur in the data."""

    def __init__(self, names: Sequence[str], every: bool) -> None:
        self._names, self._every = [level_name(name) for name in names], every
        self._seen: dict[str, tuple[str, ...]] = {}
        self._found: set[str] = set()

    def last(self, content: Counts | Predictions, grouping: str) -> tuple[Counts | Predictions, bool]:
        """Return the data with the reference as the last group, and whether there is one.

        Raises InvalidInput if every grouping needs a reference and none of the references is a group.
        """
        self._seen[grouping] = content.groups
        here = [name for name in content.groups if level_name(name) in self._names]
        self._found.update(map(level_name, here))
        if len(here) > 1 or (self._names and self._every and not here):
            raise InvalidInput(
                f"--reference names {len(here)} groups of {grouping!r}, which are {listed(content.groups)}",
                option="reference",
                column=grouping,
                remedy="Name one of them",
            )
        if not here:
            return content, False
        return content.ordered((*(name for name in content.groups if name != here[0]), here[0])), True

    def check(self) -> None:
        """Raise InvalidInput for a reference that is not a group."""
        if lost := [name for name in self._names if name not in self._found]:
            known = "; ".join(f"{grouping}: {listed(groups)}" for grouping, groups in self._seen.items())
            raise InvalidInput(
                f"--reference names {lost[0]!r}, which is no group", option="reference", remedy=f"There are {known}"
            )


def with_enough_draws(plan: Plan, jobs: Sequence[Job]) -> Plan:
    """Return the plan with enough draws for a single rejection to be possible after the correction.

    The smallest p-value of B draws is 1 / (B + 1), or 2 / (B + 1) with equal tails. The correction multiplies it by the
    number m of hypotheses (Holm, Bonferroni, Benjamini-Hochberg), by m (1 + 1/2 + ... + 1/m) (Benjamini-Yekutieli), or
    by 1. Raises ValueError if the user sets fewer draws.
    """
    if not any(job.drawn for job in jobs):
        return plan
    number = len({hypothesis for job in jobs for hypothesis in job.hypotheses})
    times = {"none": 1.0, "max_t": 1.0, "by": float(np.sum(number / np.arange(1, number + 1)))}
    tails_of = [tails(plan.alternative(metric)) for metric in plan.metrics if plan.drawn(metric)]
    times_each = times.get(plan.correction, number) * max(tails_of, default=1)
    least = math.ceil(times_each / plan.settings.alpha - ROUNDING) - 1
    if plan.settings.draws is not None and least > plan.draws:
        raise InvalidInput(
            f"--draws={plan.draws} cannot reject at level {plan.settings.alpha:g} in "
            f"{plural(number, 'test')}, whatever the difference: give at least --draws={least}, or leave it out",
            option="draws",
        )
    return replace(plan, draws=max(plan.draws, least))


def _group_jobs(
    plan: Plan, grouping: str, metric: Metric, content: Counts | Predictions, basis: str, reference: bool
) -> Iterator[Job]:
    """Yield one job per group against the other groups, or per pair of groups; with max-T, one job for all pairs.

    With a ``reference``, the last group, each other group is compared only with the reference.
    """
    settings, known = plan.settings, content.groups
    # The one-sided hypotheses of complementary rates are opposite.
    what = metric.name if settings.alternative in SIDED else known_metrics.hypothesis(metric)
    places = list(combinations(range(len(known)), 2))

    def found(content: Counts | Predictions, test: PermutationTest, adjusted: float | None = None) -> Finding:
        few, of = fewest(content, metric), (grouping, *test.groups, what)
        few, varied = min(test.units) if few is None else few, varies(content, metric)
        every = support(content, metric)
        rests_on = tuple(every[content.groups.index(name)] for name in test.groups)
        return Finding(grouping, metric.title, test, basis, few, of, varied, adjusted, rests_on=rests_on)

    def compared(content: Counts | Predictions, plan: Plan) -> list[Finding]:
        rng = plan.rng(grouping, metric.name, *content.groups)
        return [found(content, tested(content, metric, plan.testing(metric), rng, plan.shown))]

    def all_at_once(plan: Plan) -> list[Finding]:
        rng = plan.rng(grouping, metric.name, "max_t")
        tests, adjusted = largest_t(content, metric, plan.testing(metric), rng, plan.shown)
        return [found(content.pair(*pair), test, p) for pair, test, p in zip(places, tests, adjusted, strict=True)]

    if plan.correction == "max_t":
        yield Job(all_at_once, tuple((grouping, known[a], known[b], what) for a, b in places), drawn=True)
        return
    if reference and not settings.pairs:
        parts = (content.pair(place, len(known) - 1) for place in range(len(known) - 1))
    elif len(known) > 2 and not settings.pairs:
        parts = (against_rest(content, place) for place in range(len(known)))
    else:
        parts = (content.pair(a, b) for a, b in places)
    for two in parts:
        yield Job(partial(compared, two), ((grouping, *two.groups, what),), plan.drawn(metric))


def against_rest(content: Counts | Predictions, place: int) -> Counts | Predictions:
    """Return the data with one group as group 0 and all other groups pooled as group 1."""
    names = (content.groups[place], rest_of(content.groups[place], content.groups))
    if isinstance(content, Predictions):
        return replace(content, group=(content.group != place).astype(np.int64), groups=names)
    own = content.table[place]
    return replace(content, table=np.stack([own, content.table.sum(axis=0) - own]), groups=names)


def _correlation(table: Table, plan: Plan, column: str) -> Callable[[Plan], list[Finding]]:
    """Return the correlation test of the score and an attribute of each row."""
    score = str(plan.settings.score)
    found = numbers(table, [score, column])

    def test(plan: Plan) -> list[Finding]:
        rng, names = plan.rng(column, CORRELATION), (score, column)
        made = correlation_test(found[score], found[column], rng=rng, names=names, **vars(plan.testing()))
        size, of = table.size(), (column, CORRELATION)
        rests_on = (Support(size, None),) * 2
        return [Finding(column, "correlation of the score", made, "every row", size, of, rests_on=rests_on)]

    return test


def _corrected(findings: list[Finding], correction: str) -> tuple[Finding, ...]:
    """Correct over all hypotheses of the run; max-T is already corrected, and a correlation has its own hypothesis."""
    each = [finding.hypothesis for finding in findings]
    # Complementary rates have the same differences but different ratios.
    compared = [(*one.hypothesis, one.test.metric) for one in findings]
    p_beyond = [None if one.test.equivalence is None else one.test.equivalence.p_beyond for one in findings]
    beyond = adjusted_p(p_beyond, compared, "holm" if correction == "max_t" else correction)
    findings = [replace(one, beyond=p) for one, p in zip(findings, beyond, strict=True)]
    if correction == "max_t":
        alone = (replace(one, adjusted=one.test.p_value) if one.test.metric == CORRELATION else one for one in findings)
        return tuple(replace(one, least=one.test.p_least) for one in alone)
    adjusted, least = (
        adjusted_p([getattr(finding.test, p) for finding in findings], each, correction) for p in ("p_value", "p_least")
    )
    return tuple(replace(one, adjusted=p, least=q) for one, p, q in zip(findings, adjusted, least, strict=True))
