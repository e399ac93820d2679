"""Run the tests of all metrics between groups, and correct for their number."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from fairness_audits.audits.inference import adjusted_p, least_draws, wilson_interval
from fairness_audits.audits.permutation import metrics as known_metrics
from fairness_audits.audits.permutation.asked import CORRELATION, OF_LABELS, Asked, of_decisions
from fairness_audits.audits.permutation.core import GroupMetric, PermutationTest, by_group, tested
from fairness_audits.audits.permutation.correlation import correlation_test
from fairness_audits.audits.permutation.equivalence import Conclusion
from fairness_audits.audits.permutation.metrics import Metric
from fairness_audits.audits.permutation.monte_carlo import SIDED, tails
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, StratifiedCounts
from fairness_audits.audits.permutation.pairs import largest_t
from fairness_audits.audits.permutation.reading import cut, grouped_by, read, varies
from fairness_audits.audits.permutation.reasons import GUARANTEES
from fairness_audits.audits.permutation.units import LEAST_UNITS, Support, fewest, support, units_of
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import listed
from fairness_audits.progress import track
from fairness_audits.results.formats import plain, plural
from fairness_audits.tables import numbers
from fairness_audits.tables.frame import Table
from fairness_audits.tables.groupings import as_spelt
from fairness_audits.tables.levels import level_name, level_of, rest_of

WIDTH = 0.2
"""If the interval of a difference of rates is wider, a test without rejection is inconclusive."""


@dataclass(frozen=True)
class Finding:
    """One test of the run.

    ``fewest`` is the smallest number of units of one kind (such as positives) in a group. ``varied`` says whether the
    model's outputs differ. ``rests_on`` holds the rows and events behind each group's metric. Tests of one
    ``hypothesis``, such as equal TPR and equal FNR, count once. ``adjusted`` is the corrected p-value, None if the test
    is undefined. ``beyond`` is the corrected p-value of the hypothesis "within the bounds". ``of_class`` is the class
    that is set against the rest if the label has several.
    """

    grouping: str
    title: str
    test: PermutationTest
    basis: str
    fewest: int
    hypothesis: tuple[str, ...]
    varied: bool = True
    adjusted: float | None = None
    rests_on: tuple[Support, ...] = ()
    beyond: float | None = None
    of_class: str = ""

    @property
    def bounds(self) -> Conclusion | None:
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
        limit = width or (WIDTH if test.metric in (*known_metrics.RATES, known_metrics.CALIBRATION.name) else math.inf)
        if self.rejected or test.undefined or test.metric == CORRELATION:
            return False
        assert test.difference is not None
        assert test.ci_low is not None
        assert test.ci_high is not None
        sides = {"greater": (test.ci_low,) * 2, "less": (test.ci_high,) * 2}
        ends = sides.get(test.alternative, (test.ci_low, test.ci_high))
        return sum(abs(end - test.difference) for end in ends) > limit

    @property
    def rejected(self) -> bool:
        """Return whether equality is rejected after the correction."""
        return self.adjusted is not None and self.adjusted <= self.test.alpha


def _by_group(
    content: Counts | Predictions, metric: Metric, of_class: str, grouping: str, asked: Asked, reference: bool
) -> list[dict[str, Any]]:
    """Return a metric in each group, sorted with the worst first, by :func:`known_metrics.badness`.

    Groups with few units come last, because their values are extreme by chance. Ratios are those to the ``reference``,
    the last group, or else to the group with the highest rate.
    """
    named = {
        "grouping": grouping,
        "metric": metric.name,
        "class": of_class or None,
        "title": titled(metric, of_class, asked),
    }
    found = by_group(content, metric, asked.testing(metric))
    base = found[-1] if reference else max(found, key=lambda one: one.value if math.isfinite(one.value) else -math.inf)

    ratio, curves = asked.given.ratio, curves_of(content, asked.given.alpha)

    counted = units_of(content, metric)
    sizes = [one.rests_on.n for one in found] if counted is None else counted.tolist()
    few = {one.group: units < LEAST_UNITS for one, units in zip(found, sizes, strict=True)}

    def rank(one: GroupMetric) -> tuple[bool, float]:
        worst_first = -known_metrics.badness(metric.name, one.value) if math.isfinite(one.value) else math.inf
        return few[one.group], worst_first

    return [
        plain({
            **named, "name": one.group, "rows": one.rows, **one.rests_on._asdict(), "few": few[one.group],
            "estimate": one.value, "interval": (one.low, one.high),
            **({"curve": curves[one.group]} if curves else {}),
            **({"ratio": one.value / base.value if base.value else math.nan, "reference": base.group} if ratio else {}),
        })
        for one in sorted(found, key=rank)
    ]  # fmt: skip


def curves_of(content: Counts | Predictions, alpha: float) -> dict[str, list[dict[str, Any]]]:
    """Return the rate of positive labels of each group in each bin of the score, with Wilson's interval."""
    if not isinstance(content, StratifiedCounts) or content.middle is None:
        return {}
    bins = list(zip(content.strata, content.middle.tolist(), strict=True))
    found: dict[str, list[dict[str, Any]]] = {}
    for name, counts in zip(content.groups, content.by_stratum.sum(axis=-1).swapaxes(0, 1).tolist(), strict=True):
        found[name] = [
            {"bin": stratum, "score": score, "n": z + x, "events": x, "estimate": x / (z + x), "interval": ends}
            for (stratum, score), (z, x) in zip(bins, counts, strict=True)
            if z + x and (ends := wilson_interval(x / (z + x), z + x, 1 - alpha))
        ]
    return found


def hypotheses(findings: Sequence[Finding]) -> int:
    """Return the number of hypotheses with a defined test."""
    return len({finding.hypothesis for finding in findings if finding.test.p_value is not None})


@dataclass(frozen=True)
class Job:
    """Tests to run and their ``hypotheses``; ``drawn`` says whether they use random permutations."""

    tests: Callable[[Asked], list[Finding]]
    hypotheses: tuple[tuple[str, ...], ...]
    drawn: bool


def gather(table: Table, asked: Asked) -> tuple[tuple[Finding, ...], list[dict[str, Any]], Asked]:
    """Read, test and correct; return the tests, the metrics of each group, and the options with the number of draws.

    The metrics of each pair of groups are adjacent.

    Raises ValueError for every error that the user can correct.
    """
    jobs: list[Job] = []
    groups: list[dict[str, Any]] = []
    reading = cut(table, asked)
    references = References(asked.given.reference, every=asked.given.ratio)
    for grouping in [grouped_by(text, table) for text in dict.fromkeys(asked.given.group)]:
        for metric, (content, basis), of_class in read(table, reading, grouping):
            content, reference = references.last(content, grouping.name)
            jobs += _group_jobs(asked, grouping.name, metric, of_class, content, basis, reference)
            groups += _by_group(content, metric, of_class, grouping.name, asked, reference)
    references.check()
    for column in dict.fromkeys(asked.given.attribute):
        jobs.append(Job(_correlation(table, asked, column), ((column, CORRELATION),), drawn=True))
    several = len(jobs) > 1 and asked.correction != "none" and any(job.drawn for job in jobs)
    if asked.given.resampling_risk is not None and several:
        raise InvalidInput(
            f"resampling_risk stops when a single test's decision is safe, but a correction for {len(jobs)} tests "
            "changes this decision",
            option="resampling_risk",
            remedy="Drop it, or use correct=none",
        )
    asked = with_enough_draws(asked, jobs)
    together: dict[tuple[str, tuple[str, str]], list[Finding]] = {}
    for job in track("permutations", jobs):
        for finding in job.tests(asked):
            together.setdefault((finding.grouping, finding.test.groups), []).append(finding)
    findings = [finding for pair in together.values() for finding in pair]
    return _corrected(findings, asked.correction), groups, asked


def titled(metric: Metric, of_class: str, asked: Asked) -> str:
    """Return the metric's name for readers, with the class, or the top of the ranking, that it is about."""
    if ranked(metric, asked):
        what = {"selection_rate": "share in", "exposure": "exposure in"}.get(metric.name, f"{metric.title} of")
        top = asked.given.top
        return f"{what} the top {f'{top:,}' if top >= 1 else f'{100 * top:g} %'}"
    return f"{metric.title} of class {of_class}" if of_class else metric.title


def ranked(metric: Metric, asked: Asked) -> bool:
    """Return whether a metric is about the top of a ranking."""
    of_top = of_decisions(metric) or metric is known_metrics.EXPOSURE
    return asked.given.top is not None and of_top and metric.name not in OF_LABELS


class References:
    """The reference groups, and which of them occur in the data."""

    def __init__(self, names: Sequence[str], every: bool = False) -> None:
        self._names, self._every = tuple(names), every
        self._seen: dict[str, tuple[str, ...]] = {}
        self._found: set[str] = set()

    def of(self, groups: tuple[str, ...], grouping: str) -> str | None:
        """Return the reference among the groups, None if there is none.

        Raises InvalidInput for several references, and for none if ``every`` grouping needs one.
        """
        self._seen[grouping] = groups
        found = list(self._named(groups, grouping))
        here = list(dict.fromkeys(group for _, group in found))
        self._found.update(name for names, _ in found for name in names)
        if len(here) > 1 or (self._names and self._every and not here):
            raise InvalidInput(
                f"reference must name one group of {grouping!r}, but names {len(here)}; the groups are "
                f"{listed(groups)}",
                option="reference",
                column=grouping,
                remedy="Name one of them",
            )
        return here[0] if here else None

    def last(self, content: Counts | Predictions, grouping: str) -> tuple[Counts | Predictions, bool]:
        """Return the data with the reference as the last group, and whether there is one."""
        if (own := self.of(content.groups, grouping)) is None:
            return content, False
        return content.ordered((*(name for name in content.groups if name != own), own)), True

    def _named(self, groups: tuple[str, ...], grouping: str) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield each group that a reference names, or several references in a row if the group contains commas."""
        for start, stop in combinations(range(len(self._names) + 1), 2):
            names = self._names[start:stop]
            exact = level_of(groups, level_name(names[0]), grouping) if len(names) == 1 else None
            alike = [group for group in groups if as_spelt(group) == as_spelt(",".join(names))]
            yield from ((names, group) for group in ([exact] if exact else alike))

    def check(self) -> None:
        """Raise InvalidInput for a reference that is not a group."""
        if lost := [name for name in self._names if name not in self._found]:
            known = "; ".join(f"{listed(groups)} ({grouping})" for grouping, groups in self._seen.items())
            raise InvalidInput(
                f"there is no group {lost[0]!r} (reference)", option="reference", remedy=f"The groups are {known}"
            )


def with_enough_draws(asked: Asked, jobs: Sequence[Job]) -> Asked:
    """Return the options with enough draws for a single rejection to be possible after the correction.

    Raises ValueError if the user sets fewer draws.
    """
    if not any(job.drawn for job in jobs):
        return asked
    number = len({hypothesis for job in jobs for hypothesis in job.hypotheses})
    tails_of = [tails(asked.alternative(metric)) for metric in asked.metrics if asked.drawn(metric)]
    least = least_draws(asked.given.alpha, max(tails_of, default=1), number, asked.correction)
    if asked.given.draws is not None and least > asked.draws:
        raise InvalidInput(
            f"draws={asked.draws} is too small to reject at level {asked.given.alpha:g} in "
            f"{plural(number, 'test')}, however large the difference",
            option="draws",
            remedy=f"Use at least draws={least}, or drop it",
        )
    return replace(asked, draws=max(asked.draws, least))


def _group_jobs(
    asked: Asked,
    grouping: str,
    metric: Metric,
    of_class: str,
    content: Counts | Predictions,
    basis: str,
    reference: bool,
) -> Iterator[Job]:
    """Yield one job per group against the other groups, or per pair of groups; with max-T, one job for all of them.

    With a ``reference``, the last group, each other group is compared only with the reference. Ratios compare pairs,
    because the ratio of a group to all others together hides how far apart the lowest and the highest rate are.
    """
    given, known = asked.given, content.groups
    # The one-sided hypotheses of complementary rates are opposite.
    what = metric.name if given.alternative in SIDED else known_metrics.hypothesis(metric)
    what = f"{what} of {of_class}" if of_class else what
    last = len(known) - 1
    places = [(place, last) for place in range(last)] if reference else list(combinations(range(len(known)), 2))

    def found(content: Counts | Predictions, test: PermutationTest, adjusted: float | None = None) -> Finding:
        few, of = fewest(content, metric), (grouping, *test.groups, what)
        parts = test.within or test.matched
        few, varied = min(test.units) if few is None or parts else few, varies(content, metric)
        every = support(content, metric)
        rests_on = tuple(every[content.groups.index(name)] for name in test.groups)
        if test.within:
            rests_on = tuple(Support(units, None) for units in test.units)
        if test.matched:
            rests_on = tuple(Support(test.matched.pairs, events) for events in test.matched.events)
        title = titled(metric, of_class, asked)
        if ranked(metric, asked) or metric is known_metrics.EXPOSURE:
            test = replace(test, guarantee=GUARANTEES["top"])
        return Finding(grouping, title, test, basis, few, of, varied, adjusted, rests_on=rests_on, of_class=of_class)

    def compared(content: Counts | Predictions, asked: Asked) -> list[Finding]:
        rng = asked.rng(grouping, metric.name, *content.groups)
        return [found(content, tested(content, metric, asked.testing(metric), rng, asked.bounds))]

    def all_at_once(asked: Asked) -> list[Finding]:
        rng = asked.rng(grouping, metric.name, "max_t")
        tests, adjusted = largest_t(content, metric, asked.testing(metric), rng, asked.bounds, places)
        return [found(content.pair(*pair), test, p) for pair, test, p in zip(places, tests, adjusted, strict=True)]

    if asked.correction == "max_t":
        yield Job(all_at_once, tuple((grouping, known[a], known[b], what) for a, b in places), drawn=True)
        return
    if len(known) > 2 and not (given.pairs or given.ratio or given.matched or reference):
        parts = (against_rest(content, place) for place in range(len(known)))
    else:
        parts = (content.pair(a, b) for a, b in places)
    for two in parts:
        yield Job(partial(compared, two), ((grouping, *two.groups, what),), asked.drawn(metric))


def against_rest(content: Counts | Predictions, place: int) -> Counts | Predictions:
    """Return the data with one group as group 0 and all other groups pooled as group 1."""
    names = (content.groups[place], rest_of(content.groups[place], content.groups))
    if isinstance(content, Predictions):
        return replace(content, group=(content.group != place).astype(np.int64), groups=names)
    others = [other for other in range(len(content.groups)) if other != place]
    return content.regrouped([[place], others], names)


def _correlation(table: Table, asked: Asked, column: str) -> Callable[[Asked], list[Finding]]:
    """Return the correlation test of the score and an attribute of each row."""
    score = str(asked.given.score)
    found = numbers(table, [score], role="score") | numbers(table, [column], role="attribute")

    def test(asked: Asked) -> list[Finding]:
        rng, names = asked.rng(column, CORRELATION), (score, column)
        made = correlation_test(found[score], found[column], rng=rng, names=names, **vars(asked.testing()))
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
        return tuple(alone)
    adjusted = adjusted_p([finding.test.p_value for finding in findings], each, correction)
    return tuple(replace(one, adjusted=p) for one, p in zip(findings, adjusted, strict=True))
