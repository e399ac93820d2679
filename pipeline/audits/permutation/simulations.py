"""How often tests reject, by simulation: the one loop of the audits of levels and of power.

An audit gives populations; the loop draws samples of each, tests them and counts. What is drawn depends on the
generators and on the order of the populations alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from pipeline.audits.permutation.many_samples import table_p
from pipeline.audits.permutation.result import Method
from pipeline.types import Array, AuditResult, Classifier, Dataset

NUMBERS_AT_ONCE = 2**20
"""Of samples, in memory."""
TESTS: dict[str, tuple[Method, float]] = {
    "unstudentized": ("unstudentized", 0.0),
    "studentized": ("studentized", 0.0),
    "studentized_smoothed": ("studentized", 1.0),
    "exact": ("exact", 0.0),
    "lift": ("lift", 0.0),
    "bootstrap": ("bootstrap", 0.0),
}
"""Method and smoothing: ``studentized`` has Wald's variance, as published; ``studentized_smoothed`` adds one each."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Population:
    """What samples are drawn from, and how they are tested.

    ``place`` are its columns in the table, ``known`` its statistics without simulation, ``limit`` the level of the
    un-studentised test in the limit. ``draw(S, rng)`` gives S samples of so many ``numbers`` each, and
    ``p_values(samples, rng)`` by test the p-values (S,) of all of them.
    """

    place: Mapping[str, float | str]
    known: Mapping[str, float]
    draw: Callable[[int, np.random.Generator], Any]
    p_values: Callable[[Any, np.random.Generator], Mapping[str, Array]]
    numbers: int = 1
    limit: float | None = None


def share(statistic: str, happened: Array) -> list[Row]:
    r"""The mean f of S booleans (S,) and its standard error, :math:`\sqrt{f (1 - f) / S}`, as two rows."""
    value = float(np.mean(happened))
    error = float(np.sqrt(value * (1 - value) / len(happened)))
    return [{"statistic": statistic, "value": value}, {"statistic": f"{statistic}_std_error", "value": error}]


def rejections(
    config: Any, population: Population, test: str, p: Array, statistic: str = "rejection_rate", bins: int = 0
) -> Iterator[Row]:
    """Of p-values (S,) the share of at most ``config.alpha``, and that of the NaN, which are not rejected.

    With ``bins`` the shares of the others in bins, ``p_share`` from ``bin_low`` to ``bin_high``.
    """
    yield from share(statistic, p <= config.alpha)
    yield {"statistic": "undefined", "value": float(np.isnan(p).mean())}
    if test == "unstudentized" and population.limit is not None:
        yield {"statistic": "limit_rejection_rate", "value": population.limit}
    if bins:
        edges = np.linspace(0, 1, bins + 1)
        counts = np.histogram(p[~np.isnan(p)], edges)[0] / max(1, int((~np.isnan(p)).sum()))
        for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
            yield {"statistic": "p_share", "value": float(count), "bin_low": low, "bin_high": high}


def simulated(
    audit: str,
    dataset: Dataset,
    classifier: Classifier,
    config: Any,
    rngs: Sequence[np.random.Generator],
    populations: Sequence[Population],
    columns: Sequence[str],
    rows: Callable[[Any, Population, str, Array], Iterable[Row]] = rejections,
    axes: Sequence[str] = (),
) -> AuditResult:
    """The ``rows`` by repetition, population and ``test`` (empty for what is known) of ``config.simulations`` samples.

    ``columns`` are fields of ``config``, constant in the table. With ``axes``, fields too, these are arrays beside
    ``p_values`` (populations, tests, simulations) of the first repetition.
    """
    table: list[Row] = []
    first: list[Array] = []
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        for population in populations:
            place = {"repetition": repetition, **population.place}
            table += [{**place, "test": "", "statistic": name, "value": v} for name, v in population.known.items()]
            p_values = _p_values(population, config.simulations, rng)
            for test, p in p_values.items():
                table += [{**place, "test": test, **row} for row in rows(config, population, test, p)]
            if repetition == 0:
                first.append(np.stack(list(p_values.values())))
    constant = {name: getattr(config, name) for name in columns}
    arrays = {"p_values": np.stack(first), **{name: np.array(getattr(config, name)) for name in axes}} if axes else {}
    return AuditResult.of(audit, dataset, classifier, table, arrays, **constant)


def _p_values(population: Population, simulations: int, rng: np.random.Generator) -> dict[str, Array]:
    """By test (simulations,): all tests see the same samples."""
    at_once, parts = max(1, NUMBERS_AT_ONCE // population.numbers), []
    for start in range(0, simulations, at_once):
        samples = population.draw(min(at_once, simulations - start), rng)
        parts.append(population.p_values(samples, rng))
    return {test: np.concatenate([part[test] for part in parts]) for test in parts[0]}


def limit_rejection_rate(ratio: float, alpha: float) -> float:
    r"""The level in the limit of a test whose statistic varies by ``ratio`` as much as after a permutation.

    .. math:: 2 \Phi\big(-z_{1 - \alpha/2} / \sqrt\rho\big)
    """
    return float(2 * ndtr(ndtri(alpha / 2) / np.sqrt(ratio)))


def sampled(
    sizes: tuple[int, int],
    positives: tuple[float, float],
    true_positive: tuple[float, float],
    true_negative: float,
    simulations: int,
    rng: np.random.Generator,
) -> Array:
    """Tables group x label x prediction, (S, 2, 2, 2), of S = ``simulations`` samples; pairs are of A and B."""
    n = np.broadcast_to(sizes, (simulations, 2))
    ones = rng.binomial(n, positives)
    caught = rng.binomial(ones, true_positive)
    passed = rng.binomial(n - ones, true_negative)
    return np.stack([np.stack([passed, n - ones - passed], -1), np.stack([ones - caught, caught], -1)], -2)


def tested(tables: Array, metric: str, test: str, draws: int, rng: np.random.Generator) -> Array:
    """Two-sided p-values (S,) of a test in :data:`TESTS`; NaN where a group has no rows that the metric is of."""
    method, smoothing = TESTS[test]
    return table_p(tables, metric, method=method, rng=rng, draws=draws, smoothing=smoothing)


def all_tested(config: Any, tables: Array, rng: np.random.Generator) -> dict[str, Array]:
    """The p-values (S,) of the tests of a rate that ``config`` names, by test."""
    return {test: tested(tables, config.metric, test, config.draws, rng) for test in config.tests}
