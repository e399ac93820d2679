"""The measurement: test every pair of groups by every metric, and correct for the number of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from pipeline.audits.correction import corrected_once
from pipeline.audits.permutation.correlation import correlation_test
from pipeline.audits.permutation.metrics import Metric, Rate, UserMetric, hypothesis
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.pairs import all_pairs
from pipeline.audits.permutation.pvalue import wilson
from pipeline.audits.permutation.result import PermutationTest
from pipeline.audits.permutation.run import tested
from pipeline.audits.permutation.settings import Settings
from pipeline.cli.audit.permutation.asked import CORRELATIONS, Asked, FailedMetric
from pipeline.cli.audit.permutation.data import Data, correlated, fewest, read
from pipeline.cli.columns import attribute
from pipeline.cli.progress import followed
from pipeline.messages import listed
from pipeline.seeds import generators
from pipeline.tabulate.table import Table
from pipeline.types import Array


@dataclass(frozen=True)
class Finding:
    """One test with its place among all.

    ``fewest`` units of one kind (positives, say) are in one of the groups. ``hypothesis`` is what the test is of: two
    tests of one hypothesis, such as equal TPR and equal FNR, are counted once. ``adjusted`` is the p-value after the
    correction, and ``adjusted_low`` to ``adjusted_high`` where it would lie after infinitely many draws (None where
    the test is undefined).
    """

    grouping: str
    title: str
    test: PermutationTest
    basis: str
    fewest: int
    hypothesis: tuple[str, ...]
    adjusted: float | None = None
    adjusted_low: float | None = None
    adjusted_high: float | None = None

    @property
    def rejected(self) -> bool:
        """Whether equality is rejected after the correction."""
        return self.adjusted is not None and self.adjusted <= self.test.alpha

    @property
    def higher(self) -> str | None:
        """The group concluded to have the larger metric."""
        return self.test.higher if self.rejected else None


def hypotheses(findings: Sequence[Finding]) -> int:
    """How many hypotheses the tests that are defined are of."""
    return len({finding.hypothesis for finding in findings if finding.test.p_value is not None})


@dataclass(frozen=True)
class Evidence:
    """All findings in the order asked for, and how many rows there are."""

    findings: tuple[Finding, ...]
    rows: int


def gather(table: Table, asked: Asked) -> Evidence:
    """Read, test and correct. Raises ValueError for whatever the user can mend."""
    jobs: list[Job] = []
    for text in asked.groups:
        grouping = attribute(text, table.columns)
        for metric, data in read(table, asked, grouping):
            jobs += _group_jobs(asked, grouping.name, metric, data)
    for column in asked.attributes:
        for name in asked.correlations:
            jobs.append(partial(_correlation, asked, name, column, *correlated(table, asked, name, column)))
    _check_stopping(asked, jobs)
    with followed(_done, len(jobs), "permutations") as follow:
        findings = [finding for job in jobs for finding in follow(job)]
    return Evidence(_corrected(_by_pair(findings), asked.correction, asked.settings.draws), table.size())


Job = Callable[[], list[Finding]]


def _done(job: Job) -> list[Finding]:
    try:
        return job()
    except FailedMetric as error:
        raise ValueError(str(error)) from error


def _group_jobs(asked: Asked, grouping: str, metric: Metric, data: Data) -> Iterator[Job]:
    """One job for each pair of groups; with max-T, one for all."""
    known = data.content.groups
    if asked.between and (unknown := [name for name in asked.between if name not in known]):
        raise ValueError(f"--between names {unknown[0]!r}, but the groups of {grouping!r} are {listed(known)}")
    if asked.correction == "max_t":
        yield partial(_all_at_once, asked, grouping, metric, data)
        return
    for pair in [asked.between] if asked.between else combinations(known, 2):
        yield partial(_pair, asked, grouping, metric, data, pair)


def _check_stopping(asked: Asked, jobs: list[Job]) -> None:
    """ValueError where draws would stop at a decision that is not the one taken after a correction."""
    exact = asked.settings.method in ("auto", "exact") and not asked.weighted
    only_exact = exact and all(isinstance(metric, Rate) for metric in asked.metrics) and not asked.correlations
    if asked.settings.resampling_risk is not None and len(jobs) > 1 and asked.correction != "none" and not only_exact:
        raise ValueError(
            "--resampling-risk stops when the decision of a test by itself is safe, which is another than that after a "
            f"correction for {len(jobs)} tests: leave it out, or say --correct none"
        )


def _pair(asked: Asked, grouping: str, metric: Metric, data: Data, pair: tuple[str, str]) -> list[Finding]:
    a, b = (data.content.groups.index(name) for name in pair)
    rng = _rng(asked, grouping, metric.name, *pair)
    content = data.content.pair(a, b)
    return [_found(grouping, metric, data, content, tested(content, metric, _settings(asked, metric), rng))]


def _found(grouping: str, metric: Metric, data: Data, content: Counts | Predictions, test: PermutationTest) -> Finding:
    """The finding of a test on the two groups in ``content``."""
    few = fewest(content, metric)
    # One-sided, the hypotheses of complementary rates are opposite ones.
    what = hypothesis(metric) if test.alternative == "two-sided" else metric.name
    fewest_units = min(test.units) if few is None else few
    return Finding(grouping, metric.title, test, data.basis, fewest_units, (grouping, *test.groups, what))


def _all_at_once(asked: Asked, grouping: str, metric: Metric, data: Data) -> list[Finding]:
    content = data.content
    if asked.between is not None:
        content = content.pair(*(content.groups.index(name) for name in asked.between))
    rng = _rng(asked, grouping, metric.name, "max_t")
    named = metric if isinstance(metric, UserMetric) else metric.name
    found = all_pairs(content, named, _settings(asked, metric), rng=rng, correction="max_t")
    pairs = combinations(range(len(content.groups)), 2)
    return [
        replace(_found(grouping, metric, data, content.pair(*pair), test), adjusted=adjusted)
        for pair, test, adjusted in zip(pairs, found.tests, found.adjusted, strict=True)
    ]


def _correlation(asked: Asked, name: str, attribute: str, value: Array, levels: Array) -> list[Finding]:
    what = str(asked.score) if name == "correlation" else f"{asked.score} - {asked.label}"
    own = ("method", "alternative", "alpha", "draws", "resampling_risk")
    settings = {one: getattr(asked.settings, one) for one in own}
    test = correlation_test(value, levels, rng=_rng(asked, attribute, name), names=(what, attribute), **settings)
    test = replace(test, metric=name)
    return [Finding(attribute, CORRELATIONS[name], test, "every row", len(value), (attribute, name))]


def _corrected(findings: list[Finding], correction: str, draws: int) -> tuple[Finding, ...]:
    """Over all hypotheses of the run; max-T has been done for each metric, and a correlation is alone in its own."""
    if correction == "max_t":
        return tuple(_corrected_together(finding, finding.test.draws or draws) for finding in findings)
    known = [position for position, finding in enumerate(findings) if finding.test.p_value is not None]
    placed = list(findings)
    if known:
        tests = [findings[position].test for position in known]
        of = [findings[position].hypothesis for position in known]
        # The ends of the intervals go the same way: a correction never turns the order of p-values around.
        ends = [[t.p_low for t in tests], [t.p_value for t in tests], [t.p_high for t in tests]]
        adjusted = (corrected_once(np.array(end, dtype=float), of, correction).tolist() for end in ends)
        for position, low, value, high in zip(known, *adjusted, strict=True):
            placed[position] = replace(findings[position], adjusted=value, adjusted_low=low, adjusted_high=high)
    return tuple(placed)


def _corrected_together(finding: Finding, draws: int) -> Finding:
    """The end of max-T: p-values of draws of all groups have a Monte-Carlo interval of their own."""
    test = finding.test
    value = test.p_value if test.metric in CORRELATIONS else finding.adjusted
    if value is None or value == test.p_value:
        return replace(finding, adjusted=value, adjusted_low=test.p_low, adjusted_high=test.p_high)
    low, high = wilson(max(0, min(draws, round(value * (draws + 1)) - 1)), draws)
    return replace(finding, adjusted=value, adjusted_low=low, adjusted_high=high)


def _by_pair(findings: list[Finding]) -> list[Finding]:
    """The metrics of each pair of groups together; pairs, and metrics within each, in the order of the findings."""
    place: dict[tuple[str, tuple[str, str]], list[Finding]] = {}
    for finding in findings:
        place.setdefault((finding.grouping, finding.test.groups), []).append(finding)
    return [finding for together in place.values() for finding in together]


def _settings(asked: Asked, metric: Metric) -> Settings:
    draws = asked.own_draws if isinstance(metric, UserMetric) else asked.settings.draws
    return replace(asked.settings, draws=draws)


def _rng(asked: Asked, *what: str) -> np.random.Generator:
    """By what the test is, so that it does not depend on which others are asked for."""
    (rng,) = generators("audit", "permutation", str(asked.seed), *what, repetitions=1)
    return rng
