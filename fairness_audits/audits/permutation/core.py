"""The core of the audit: a metric of two groups in, its difference with an interval and a p-value out.

Rates of unclustered rows are tested exactly, other metrics are studentised, and every other test has a name. The
public function and the studies call :func:`tested` and :func:`by_group`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairness_audits.audits.inference import wilson_interval
from fairness_audits.audits.permutation import equivalence, intervals
from fairness_audits.audits.permutation.doubts import NO_DOUBT, Doubt, margins
from fairness_audits.audits.permutation.equivalence import Bounds, Equivalence
from fairness_audits.audits.permutation.exact import Rates, exact_p
from fairness_audits.audits.permutation.exact import statistic as exact_statistic
from fairness_audits.audits.permutation.matched import McNemar, Pairs, SignFlips
from fairness_audits.audits.permutation.metrics import EXPOSURE, Auc, Mean, Metric, Rate, UserMetric, metric_named
from fairness_audits.audits.permutation.monte_carlo import Alternative, Method, MonteCarlo, Settings, monte_carlo
from fairness_audits.audits.permutation.outcomes import Counts, MatchedRows, Predictions, StratifiedCounts, near_zero
from fairness_audits.audits.permutation.reasons import GUARANTEES, missing, stopping, without_variance
from fairness_audits.audits.permutation.resamplers import countable, decisions, resampler
from fairness_audits.audits.permutation.strata import SUMS, Common, Homogeneity, Strata, stratified_p
from fairness_audits.audits.permutation.units import Support, support
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


@dataclass(frozen=True)
class PermutationTest:
    """Test of H0: the metric is equal in groups A = ``groups[0]`` and B = ``groups[1]``.

    ``estimates`` holds the metric in A and in B. ``difference`` is A - B, with the interval [``ci_low``, ``ci_high``]
    of level 1 - alpha. For an ``exact`` test it is the hybrid score interval (Newcombe), extended if needed to agree
    with the test (the exact test rejects less often, so Newcombe's interval may just exclude 0). For other tests it is
    the inversion of the test. The open end of a one-sided alternative is that of the metric's range or infinite.
    ``statistic`` is the studentised difference T. ``p_value`` belongs to ``alternative``; [``p_low``, ``p_high``] is
    the interval for the p-value of infinitely many draws (equal to it for an ``exact`` test). ``rejected`` is p_value
    <= alpha.

    ``direction`` is +1 if the test concludes that A has the larger metric, -1 for B, 0 for no conclusion. It names a
    side only if the one-sided p-value of that side is at most alpha / 2 (alpha for a one-sided alternative). The
    probability of naming the wrong side is at most this number (in finite samples for an exact test, otherwise
    asymptotically; section 2.3).

    ``sizes`` holds the rows of the groups, ``units`` the numbers of permuted units (rows of the label or prediction
    concerned, clusters, rows). ``draws`` is the number of permutations, 0 if the distribution was enumerated. In
    ``undefined_draws`` of them a group lacks the rows that the metric needs; these count as extreme. ``guarantee``
    states in a sentence what the p-value guarantees.

    ``equivalence`` is the result for the requested bounds; None without bounds. ``within`` has the parts of a
    comparison within strata. Its ``estimates`` are averages over strata; its ``units`` are those of strata with both
    groups. ``matched`` has the counts of a comparison within pairs, whose ``units`` are pairs or clusters of pairs.

    ``undefined`` is the reason why there is no test, empty if there is one. Without a test, ``statistic``, p-values and
    interval are None, as is an estimate that does not exist.
    """

    metric: str
    groups: tuple[str, str]
    method: str
    alternative: Alternative
    alpha: float
    estimates: tuple[float | None, float | None]
    sizes: tuple[int, int]
    units: tuple[int, int]
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    rejected: bool = False
    direction: int = 0
    exact: bool = False
    draws: int = 0
    undefined_draws: int = 0
    guarantee: str = ""
    undefined: str = ""
    equivalence: Equivalence | None = None
    within: "Within | None" = None
    matched: "Matched | None" = None

    @property
    def higher(self) -> str | None:
        """The group concluded to have the larger metric; None if the test concludes neither."""
        return None if self.direction == 0 else self.groups[0 if self.direction > 0 else 1]


@dataclass(frozen=True)
class Within:
    """The parts of a comparison within strata.

    ``overall`` compares the same groups without strata. ``strata`` has a test for each stratum with units of both
    groups, by its name. ``alone`` has the units of both groups in each other stratum; they do not contribute.
    """

    overall: PermutationTest
    strata: Mapping[str, PermutationTest]
    alone: Mapping[str, tuple[int, int]]
    homogeneity: Homogeneity | None = None


@dataclass(frozen=True)
class Matched:
    """The number of ``pairs`` of a comparison within pairs, and of those with a ``higher`` value in A, and in B.

    ``events`` counts the events of a rate in both groups.
    """

    pairs: int
    higher: tuple[int, int]
    events: tuple[int | None, ...]


def permutation_test(
    data: Predictions | Counts,
    metric: str | UserMetric | Callable[[Array, Array, Array], float],
    *,
    rng: np.random.Generator,
    groups: tuple[str, str] | None = None,
    bounds: Bounds | None = None,
    **settings: Any,
) -> PermutationTest:
    r"""Test whether a metric is equal in groups A and B.

    Rates of unclustered rows are tested exactly, other metrics by random permutations of

    .. math:: T = (f_A - f_B) / \sqrt{v_A + v_B},

    with the metric f of each group and its variance estimate v, estimated anew in every permutation.

    Parameters
    ----------
    data : Predictions or Counts
        Rows, or their contingency table.
    metric : str, UserMetric or callable
        A name of ``metrics.METRICS``, or a function(y, score, weight) of one group's rows (see ``UserMetric``).
    rng : numpy.random.Generator
        Generates the seed of the draws: same seed, same result, on any number of threads.
    groups : pair of str, optional
        The names of A and B; required if the data have more than two groups.
    bounds : Bounds, optional
        Also test whether the difference, or the ratio of rates, is within these bounds.
    **settings
        The fields of :class:`fairness_audits.audits.permutation.monte_carlo.Settings`.

    Returns
    -------
    PermutationTest
        ``undefined`` is the reason if the metric does not exist in a group.

    Raises
    ------
    InvalidInput
        If the data lack what the metric needs, or a setting is out of range.

    References
    ----------
    DiCiccio et al. 2020, algorithm 1 and section 3.

    Examples
    --------
    >>> rows = Counts.of_decisions(np.array([[[5, 5], [2, 8]], [[5, 5], [8, 2]]]), ("a", "b"))
    >>> test = permutation_test(rows, "tpr", rng=np.random.default_rng(1))
    >>> test.estimates, round(test.p_value, 4), test.higher
    ((0.8, 0.2), 0.023, 'a')
    """
    a, b = _pair(data.groups, groups)
    return tested(data.pair(a, b), resolved(metric), Settings(**settings), rng, bounds)


def resolved(metric: str | UserMetric | Callable[[Array, Array, Array], float]) -> Metric:
    """Return the metric of a name or a function."""
    if isinstance(metric, str):
        return metric_named(metric)
    return metric if isinstance(metric, UserMetric) else UserMetric(getattr(metric, "__name__", "user metric"), metric)


def tested(
    data: Predictions | Counts,
    metric: Metric,
    settings: Settings,
    rng: np.random.Generator,
    bounds: Bounds | None = None,  # noqa: PT028
) -> PermutationTest:
    """Test groups 0 and 1 of data with two groups, and whether the comparison of the metrics is within ``bounds``."""
    exact = isinstance(metric, Rate) and countable(data) and settings.method in ("auto", "exact")
    if bounds is not None and bounds.comparison == "ratio" and not (isinstance(metric, Rate) or metric is EXPOSURE):
        remedy = "Use a rate, or exposure"
        raise InvalidInput(f"Metric {metric.name} has no test of a ratio", option="ratio", remedy=remedy)
    if bounds is not None and settings.resampling_risk is not None:
        raise InvalidInput(
            "resampling_risk controls the decision about equality, not about a margin",
            option="resampling_risk",
            remedy="Leave it out",
        )
    if isinstance(data, StratifiedCounts):
        if not (isinstance(metric, Rate) and exact):
            raise InvalidInput(f"metric {metric.name} has no test within strata", option="within", remedy="Use a rate")
        return _within_strata(data, metric, settings, bounds)
    if settings.method == "exact" and not exact:
        raise InvalidInput(
            f"metric {metric.name} has no exact test on these data: exact tests are for rates without clusters or "
            "weights",
            option="method",
            remedy="Use method=studentized",
        )
    if isinstance(data, MatchedRows):
        if not isinstance(metric, Rate | Mean):
            raise InvalidInput(f"metric {metric.name} has no test within pairs", option="matched", remedy="Use a rate")
        return _within_pairs(data, metric, settings, rng, bounds, exact)
    if isinstance(metric, Rate) and exact:
        return _exact(data, metric, settings, bounds)
    return _resampled(data, metric, settings, rng, bounds)


def _pair(known: tuple[str, ...], groups: tuple[str, str] | None) -> tuple[int, int]:
    if groups is None:
        if len(known) > 2:
            raise InvalidInput(f"the data have {len(known)} groups, {list(known)}: name two of them", option="groups")
        return 0, 1
    if missing := [name for name in groups if name not in known]:
        raise InvalidInput(f"expected groups among {list(known)}, found {missing}", option="groups")
    if groups[0] == groups[1]:
        raise InvalidInput(f"expected two different groups, found {groups[0]!r} twice", option="groups")
    return known.index(groups[0]), known.index(groups[1])


def _exact(data: Predictions | Counts, metric: Rate, settings: Settings, bounds: Bounds | None) -> PermutationTest:
    table = decisions(data)
    (x_a, z_a, _), (x_b, z_b, _) = metric.split(table.table).tolist()
    rates = Rates(x_a, x_a + z_a, x_b, x_b + z_b)
    shares = np.array([x / m if m else np.nan for x, m in ((x_a, rates.m_a), (x_b, rates.m_b))])
    result = _blank(data, metric, settings, "exact", shares, (rates.m_a, rates.m_b))
    if result.undefined:
        return result
    p = exact_p(rates)
    value = p.of(settings.alternative)
    rejected = value <= settings.alpha
    low, high = intervals.of_rates(rates, settings, rejected)
    return replace(
        result,
        ci_low=low,
        ci_high=high,
        statistic=exact_statistic(rates),
        p_value=value,
        p_low=value,
        p_high=value,
        rejected=rejected,
        direction=direction(rates.difference, p.greater, p.less, settings),
        equivalence=None if bounds is None else equivalence.of_rates(rates, bounds, settings.alpha),
    )


def _within_strata(data: StratifiedCounts, metric: Rate, settings: Settings, bounds: Bounds | None) -> PermutationTest:
    """Compare two groups within strata. Each stratum has its own exact test."""
    overall = _exact(data, metric, settings, None)
    events, others, _ = np.moveaxis(metric.split(data.by_stratum), -1, 0)
    units = events + others
    both = (units > 0).all(axis=1)
    alone = {data.strata[s]: (int(units[s, 0]), int(units[s, 1])) for s in np.flatnonzero(~both)}
    parts = {
        data.strata[s]: _exact(Counts.of_decisions(data.by_stratum[s], data.groups), metric, settings, None)
        for s in np.flatnonzero(both)
    }
    result = replace(
        overall,
        method="stratified",
        estimates=(None, None),
        units=tuple(units[both].sum(axis=0).tolist()),
        difference=None,
        undefined=overall.undefined or ("" if parts else "no stratum has such rows of both groups"),
    )
    if result.undefined:
        unknown = dict.fromkeys(("ci_low", "ci_high", "statistic", "p_value", "p_low", "p_high"))
        within = Within(overall, parts, alone)
        return replace(result, **unknown, rejected=False, direction=0, equivalence=None, within=within)  # type: ignore[arg-type]
    strata = Strata(events[both, 0], units[both, 0], events[both, 1], units[both, 1])
    p, statistic, exact = stratified_p(strata)
    if settings.method == "exact" and not exact:
        problem = f"the sum of events over strata can take more than {SUMS:,} values, too many for an exact test"
        raise InvalidInput(problem, option="method", remedy="Use method=auto")
    value, (a, b) = p.of(settings.alternative), strata.rates.tolist()
    common = Common(strata, "ratio" if bounds is not None and bounds.comparison == "ratio" else "difference")
    low, high = Common(strata, "difference").stated(settings, value <= settings.alpha)
    return replace(
        result,
        estimates=(a, b),
        difference=a - b,
        ci_low=low,
        ci_high=high,
        statistic=statistic,
        p_value=value,
        p_low=value,
        p_high=value,
        rejected=value <= settings.alpha,
        direction=direction(a - b, p.greater, p.less, settings),
        exact=exact,
        guarantee=GUARANTEES["stratified" if exact else "asymptotic"],
        equivalence=None if bounds is None else common.equivalence(bounds, settings.alpha),
        within=Within(overall, parts, alone, common.homogeneity()),
    )


def _within_pairs(
    data: MatchedRows,
    metric: Rate | Mean,
    settings: Settings,
    rng: np.random.Generator,
    bounds: Bounds | None,
    exact: bool,
) -> PermutationTest:
    """Compare two groups within pairs: by McNemar's test if it is ``exact``, otherwise by random signs."""
    pairs = Pairs.of(data, metric)
    value = pairs.value.mean(axis=1) if pairs.n else np.full(2, np.nan)
    result = _blank(data, metric, settings, "exact" if exact else "studentized", value, (pairs.units,) * 2)
    (up, down), rate = pairs.higher, isinstance(metric, Rate)
    events = tuple(pairs.value.sum(axis=1).astype(int).tolist()) if rate else (None, None)
    result = replace(
        result,
        method="mcnemar" if exact else "signs",
        guarantee=GUARANTEES["mcnemar" if exact else "signs"],
        matched=Matched(pairs.n, (up, down), events),
    )
    if pairs.units < (1 if exact else 2):
        lacking = f"{pairs.units or 'no'} {'pair has' if data.whole is None else 'cluster of pairs has'} such rows"
        return replace(result, undefined=f"{lacking} of both groups", difference=None)
    if result.undefined:
        return result
    if exact:
        test = McNemar(up, down, pairs.n)
        p = test.p.of(settings.alternative)
        low, high = test.stated(settings, p <= settings.alpha)
        return replace(
            result,
            ci_low=low,
            ci_high=high,
            statistic=test.statistic,
            p_value=p,
            p_low=p,
            p_high=p,
            rejected=p <= settings.alpha,
            direction=direction(up - down, test.p.greater, test.p.less, settings),
            equivalence=None if bounds is None else test.equivalence(bounds, settings.alpha),
        )
    source = SignFlips(pairs, int(rng.integers(2**63)))
    observed = source.observed
    doubt = pairs.doubt(observed, settings.level)
    found = monte_carlo(source, "studentized", settings)
    result = completed(result, found, settings, doubt, (-1.0, 1.0) if rate else intervals.EVERY)
    if bounds is None:
        return result
    return replace(result, equivalence=equivalence.of_draws(found, observed, bounds, settings.alpha, doubt))


def _resampled(
    data: Predictions | Counts, metric: Metric, settings: Settings, rng: np.random.Generator, bounds: Bounds | None
) -> PermutationTest:
    method: Method = "studentized" if settings.method == "auto" else settings.method
    data, moved = near_zero(data) if isinstance(metric, Mean) and metric.moves else (data, 0.0)
    bootstraps = settings.bootstraps if method == "studentized" else 0
    source = resampler(data, metric, int(rng.integers(2**63)), settings.smoothing, bootstraps)
    observed = source.observed
    result = _blank(data, metric, settings, method, observed.value, source.units)
    a, b = (None if one is None else one + moved for one in result.estimates)
    result = replace(result, estimates=(a, b))
    if not result.undefined and method == "studentized":
        result = replace(result, undefined=without_variance(data, metric, observed))
    if result.undefined:
        return result
    if bounds is not None and method == "unstudentized":
        raise InvalidInput(
            "method=unstudentized cannot test a margin", option="method", remedy="Use exact or studentised tests"
        )
    doubt = NO_DOUBT
    if method == "studentized":
        doubt = Doubt(margins(data, metric, observed, settings.level), settings.level)
    found = monte_carlo(source, method, settings, doubt.towards_zero(float(observed.difference)))
    result = completed(result, found, settings, doubt)
    if bounds is None:
        return result
    return replace(result, equivalence=equivalence.of_draws(found, observed, bounds, settings.alpha, doubt))


def _blank(
    data: Predictions | Counts, metric: Metric, settings: Settings, method: Method, value: Array, units: tuple[int, ...]
) -> PermutationTest:
    """Return the result before the test: estimates, or the reason why there are none."""
    estimates = [float(v) if np.isfinite(v) else None for v in value]
    lacking = missing(data, metric, value)
    return PermutationTest(
        metric=metric.name,
        groups=(data.groups[0], data.groups[1]),
        method=method,
        alternative=settings.alternative,
        alpha=settings.alpha,
        estimates=(estimates[0], estimates[1]),
        sizes=(int(data.sizes[0]), int(data.sizes[1])),
        units=(units[0], units[1]),
        difference=None if lacking else float(value[0] - value[1]),
        exact=method == "exact",
        guarantee=GUARANTEES[method],
        undefined=lacking,
    )


def completed(
    result: PermutationTest,
    found: MonteCarlo,
    settings: Settings,
    doubt: Doubt = NO_DOUBT,
    limits: tuple[float, float] = intervals.EVERY,
) -> PermutationTest:
    """Complete the result by a Monte-Carlo test of a difference within ``limits``."""
    value = found.p(settings.alternative)
    low, high = intervals.of_draws(found, settings, doubt, limits)
    p_low, p_high = found.p_interval(settings)
    return replace(
        result,
        difference=found.difference,
        ci_low=low,
        ci_high=high,
        statistic=found.statistic,
        p_value=value,
        p_low=p_low,
        p_high=p_high,
        rejected=value <= settings.alpha,
        direction=direction(found.difference, found.p("greater"), found.p("less"), settings),
        draws=len(found.reference),
        undefined_draws=found.undefined_draws,
        guarantee=result.guarantee + stopping(found, settings),
    )


@dataclass(frozen=True)
class GroupMetric:
    """A metric in one ``group`` of ``rows`` rows, and the interval of level 1 - alpha; NaN if they do not exist.

    The metric ``rests_on`` some of the rows.
    """

    group: str
    rows: int
    rests_on: Support
    value: float
    low: float
    high: float


def by_group(data: Predictions | Counts, metric: Metric, settings: Settings) -> tuple[GroupMetric, ...]:
    """Estimate a metric in each group.

    The interval is Wilson's for rates of unclustered rows, normal on the log-odds scale for the AUC, else normal.
    """
    rests_on = support(data, metric)
    if isinstance(metric, Rate) and countable(data):
        values = [(events or 0) / n if n else float("nan") for n, events in rests_on]
        ends = [wilson_interval(value, of.n, 1 - settings.alpha) for value, of in zip(values, rests_on, strict=True)]
    else:
        data, moved = near_zero(data) if isinstance(metric, Mean) and metric.moves else (data, 0.0)
        observed = resampler(data, metric, 0, settings.smoothing, settings.bootstraps).observed
        values = (observed.value + moved).tolist()
        low, high = intervals.of_groups(observed, settings.alpha, odds=isinstance(metric, Auc))
        ends = (np.stack([low, high], axis=-1) + moved).tolist()
    every = zip(data.groups, data.sizes.tolist(), rests_on, values, ends, strict=True)
    return tuple(GroupMetric(name, rows, of, value, *interval) for name, rows, of, value, interval in every)


def direction(difference: float, p_greater: float, p_less: float, settings: Settings) -> int:
    """Return +1, -1 or 0, as defined by ``PermutationTest.direction``."""
    tail = settings.level
    if difference > 0 and p_greater <= tail and settings.alternative != "less":
        return 1
    return -1 if difference < 0 and p_less <= tail and settings.alternative != "greater" else 0
