"""The measurement: test every pair of groups by every metric, and correct for the number of tests."""

from __future__ import annotations

import math
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
from pipeline.audits.permutation.result import PermutationTest, Settings
from pipeline.audits.permutation.run import tested
from pipeline.cli.audit.permutation.asked import CORRELATIONS, Asked, FailedMetric
from pipeline.cli.audit.permutation.data import Data, against_rest, correlated, fewest, read, varies
from pipeline.cli.columns import attribute
from pipeline.cli.numbers import plural
from pipeline.cli.progress import followed
from pipeline.messages import listed
from pipeline.seeds import generators
from pipeline.tabulate.table import Table
from pipeline.types import Array

ROUNDING = 1e-9


@dataclass(frozen=True)
class Finding:
    """One test with its place among all.

    ``fewest`` units of one kind (positives, say) are in one of the groups; ``varied``: whether the model does not say
    the same of all of them. ``hypothesis`` is what the test is of: two
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
    varied: bool = True
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
    """All findings in the order asked for, how many rows there are, and the request with the draws that were made."""

    findings: tuple[Finding, ...]
    rows: int
    asked: Asked


@dataclass(frozen=True)
class Job:
    """Tests yet to be made, of so many ``hypotheses``; ``drawn``: whether by random permutations."""

    tests: Callable[[Asked], list[Finding]]
    hypotheses: tuple[tuple[str, ...], ...]
    drawn: bool


def gather(table: Table, asked: Asked) -> Evidence:
    """Read, test and correct. Raises ValueError for whatever the user can mend."""
    jobs: list[Job] = []
    for text in asked.groups:
        grouping = attribute(text, table.columns)
        for metric, data in read(table, asked, grouping):
            jobs += _group_jobs(asked, grouping.name, metric, data)
    for column in asked.attributes:
        for name in asked.correlations:
            tests = partial(_correlation, name, column, *correlated(table, asked, name, column))
            jobs.append(Job(tests, ((column, name),), drawn=True))
    _check_stopping(asked, jobs)
    asked = with_enough_draws(asked, jobs)
    with followed(partial(_done, asked), len(jobs), "permutations") as follow:
        findings = [finding for job in jobs for finding in follow(job)]
    return Evidence(_corrected(_by_pair(findings), asked.correction, asked.settings.draws), table.size(), asked)


def with_enough_draws(asked: Asked, jobs: Sequence[Job]) -> Asked:
    """The request with as many draws as the correction needs for one test to be rejected by itself.

    B draws give no p-value below 1 / (B + 1), which the correction multiplies: by the number m of hypotheses (Holm,
    Bonferroni, Benjamini-Hochberg), by m (1 + 1/2 + ... + 1/m) (Benjamini-Yekutieli), or not at all. Raises ValueError
    where the user gave fewer.
    """
    if not any(job.drawn for job in jobs):
        return asked
    number = len({hypothesis for job in jobs for hypothesis in job.hypotheses})
    times = {"none": 1.0, "max_t": 1.0, "by": float(np.sum(number / np.arange(1, number + 1)))}
    least = math.ceil(times.get(asked.correction, number) / asked.settings.alpha - ROUNDING) - 1
    draws, own = max(asked.settings.draws, least), max(asked.own_draws, least)
    if asked.draws_given and draws > asked.settings.draws:
        raise ValueError(
            f"--draws {asked.settings.draws} cannot reject at level {asked.settings.alpha:g} in "
            f"{plural(number, 'test')}, whatever the difference: give at least --draws {least}, or leave it out"
        )
    return replace(asked, settings=replace(asked.settings, draws=draws), own_draws=own)


def _done(asked: Asked, job: Job) -> list[Finding]:
    try:
        return job.tests(asked)
    except FailedMetric as error:
        raise ValueError(str(error)) from error


def _group_jobs(asked: Asked, grouping: str, metric: Metric, data: Data) -> Iterator[Job]:
    """One job for each group against the others, or for each pair; with max-T, one for all pairs."""
    content = data.content
    known = content.groups
    if asked.between and (unknown := [name for name in asked.between if name not in known]):
        raise ValueError(f"--between names {unknown[0]!r}, but the groups of {grouping!r} are {listed(known)}")
    drawn = not isinstance(metric, Rate) or asked.weighted or asked.settings.method not in ("auto", "exact")
    what = hypothesis(metric) if asked.settings.alternative == "two-sided" else metric.name
    places = list(combinations(range(len(known)), 2))
    if asked.between:
        places = [(known.index(asked.between[0]), known.index(asked.between[1]))]
    if asked.correction == "max_t":
        names = tuple((grouping, known[a], known[b], what) for a, b in places)
        yield Job(partial(_all_at_once, grouping, metric, data), names, drawn=True)
        return
    compared = (content.pair(a, b) for a, b in places)
    if len(known) > 2 and not (asked.between or asked.pairs):
        compared = (against_rest(content, place) for place in range(len(known)))
    for two in compared:
        yield Job(partial(_compared, grouping, metric, data, two), ((grouping, *two.groups, what),), drawn)


def _check_stopping(asked: Asked, jobs: Sequence[Job]) -> None:
    """ValueError where draws would stop at a decision that is not the one taken after a correction."""
    several = len(jobs) > 1 and asked.correction != "none" and any(job.drawn for job in jobs)
    if asked.settings.resampling_risk is not None and several:
        raise ValueError(
            "--resampling-risk stops when the decision of a test by itself is safe, which is another than that after a "
            f"correction for {len(jobs)} tests: leave it out, or say --correct none"
        )


def _compared(grouping: str, metric: Metric, data: Data, content: Counts | Predictions, asked: Asked) -> list[Finding]:
    rng = _rng(asked, grouping, metric.name, *content.groups)
    return [_found(grouping, metric, data, content, tested(content, metric, _settings(asked, metric), rng))]


def _found(grouping: str, metric: Metric, data: Data, content: Counts | Predictions, test: PermutationTest) -> Finding:
    """The finding of a test on the two groups in ``content``."""
    few = fewest(content, metric)
    # One-sided, the hypotheses of complementary rates are opposite ones.
    what = hypothesis(metric) if test.alternative == "two-sided" else metric.name
    fewest_units = min(test.units) if few is None else few
    return Finding(
        grouping, metric.title, test, data.basis, fewest_units, (grouping, *test.groups, what), varies(content, metric)
    )


def _all_at_once(grouping: str, metric: Metric, data: Data, asked: Asked) -> list[Finding]:
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


def _correlation(name: str, attribute: str, value: Array, levels: Array, asked: Asked) -> list[Finding]:
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
