r"""Type I error and power of permutation tests, by simulation.

Each class in :data:`CONFIGS` defines a population and its tests; ``kind: levels.NAME`` in ``conf/audit`` selects one.
Group g, A or B, has n_g rows, each positive with probability pi_g.

``rates``: the classifier is right about each row with probability f, so both groups have the same true positive rate.
With N rows, lambda = n_A / N and :math:`\bar\pi = \lambda \pi_A + (1 - \lambda) \pi_B`, the difference of the rates has
the variance

.. math:: \frac{f (1 - f)}{N} \Big(\frac{1}{\lambda \pi_A} + \frac{1}{(1 - \lambda) \pi_B}\Big), \qquad
          \text{after a permutation} \qquad \frac{f (1 - f)}{N} \frac{1}{\bar\pi \lambda (1 - \lambda)},

so the unstudentised test does not have its nominal level, but that of the limiting law, ``limit_rejection_rate``
(DiCiccio et al. 2020, section 4.2 and Theorem 3).

``power``: the true positive rate is f + delta in group A and f in group B; the classifier is right about negatives with
probability f. :mod:`fairness_audits.audits.permutation.power` predicts the power.

``directions``: as ``power``; how often a test rejects although the observed difference has the wrong sign, so that it
names the wrong group (a directional error, DiCiccio et al. 2020, section 2.3).

``auc``: scores are normal with variance 1, those of positives higher by :math:`\sqrt 2\, \Phi^{-1}(\mathrm{AUC})`, so
both groups have the same AUC. The placements of positives and of negatives then have one variance s^2, and the
difference of the AUCs has the variance

.. math:: s^2 \sum_g \Big(\frac{1}{n_g \pi_g} + \frac{1}{n_g (1 - \pi_g)}\Big), \qquad \text{after a permutation} \qquad
          s^2 \sum_g \frac{1}{n_g} \Big(\frac{1}{\bar\pi} + \frac{1}{1 - \bar\pi}\Big)

(DeLong et al. 1988 for the variance; DiCiccio et al. 2020, section 3, for the question).

``correlations``: an attribute X and a model's error Y are uncorrelated, yet dependent:

.. math:: Y = Z / X, \quad Z \sim N(0, 1), \qquad
          X \sim U(\mathrm{low}, 1) \;\text{("uncorrelated")} \quad\text{or}\quad
          X \sim 1 + \mathrm{Exp}(1) \;\text{("independent", the published name)}.

E(Y | X) = 0, so the correlation is 0. The variance of Y depends on X, so a test of r that assumes independence does
not have its nominal level (DiCiccio et al. 2020, section 4.1 and Table 1). The paper does not state the distributions;
these are from the authors' scripts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.audits.permutation.correlation import correlation_p, pooled_shuffle_p
from fairness_audits.audits.permutation.power import power_of, rate_variance
from fairness_audits.audits.permutation.samples import TESTS, auc_p, groups_of, table_p
from fairness_audits.audits.permutation.statistics import Proportion
from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Checked, Count, Counts, Share, Shares, at_least, not_empty, one_of, some_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.values import AuditResult

NUMBERS_AT_ONCE = 2**20
"""Maximum number of sampled values in memory at once."""

UNSTUDENTIZED = "unstudentized"
Row = dict[str, Any]
Sizes = tuple[int, int]


@dataclass(frozen=True)
class Population:
    """A population and its tests.

    ``place`` are its columns in the rows, ``known`` its statistics without simulation, by test ("" for none) and name.
    ``draw(S, rng)`` returns S samples of ``numbers`` numbers each; ``p_values(samples, rng)`` returns their p-values
    (S,) by test.
    """

    place: Mapping[str, float | str]
    draw: Callable[[int, np.random.Generator], Any]
    p_values: Callable[[Any, np.random.Generator], Mapping[str, Array]]
    numbers: int = 1
    known: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class Simulation(ABC, Checked, of="audit"):
    """``simulations`` samples of each population; tests at level ``alpha`` with ``draws`` permutations each.

    ``columns`` are the settings repeated in every row, ``statistic`` the name of the share of rejected samples.
    """

    audit: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    statistic: ClassVar[str] = "rejection_rate"

    draws: Count
    simulations: Count
    alpha: Share

    @abstractmethod
    def populations(self) -> Iterator[Population]:
        """Yield the populations in the order in which they are drawn."""

    def rows(self, test: str, p: Array) -> Iterator[Row]:
        """Yield the share of p-values (S,) of at most ``alpha``, and ``undefined``: that of NaN, not rejected."""
        yield from _share(self.statistic, p <= self.alpha)
        yield {"statistic": "undefined", "value": float(np.isnan(p).mean())}


@dataclass(frozen=True)
class _OfRates(Simulation):
    """``tests`` of ``metric``; ``positives_a`` and ``positives_b`` are the shares of positives."""

    metric: Annotated[str, one_of(("fnr", "tpr"))]
    tests: Annotated[list[str], some_of(TESTS)]
    positives_a: Share
    positives_b: Share

    def population(
        self,
        place: Mapping[str, float],
        sizes: Sizes,
        rates: tuple[float, float],
        known: Mapping[tuple[str, str], float],
    ) -> Population:
        """Return a population with these true positive rates; the true negative rate equals that of group B."""
        draw = partial(sampled, sizes, (self.positives_a, self.positives_b), rates, rates[1])
        return Population(place, draw, self._p_values, known=known)

    def _p_values(self, tables: Array, rng: np.random.Generator) -> dict[str, Array]:
        return {test: table_p(tables, self.metric, test, self.draws, rng) for test in self.tests}


@dataclass(frozen=True)
class Rates(_OfRates):
    """Setting i has ``n_a[i]`` and ``n_b[i]`` rows and the true positive rate ``rate[i]``.

    ``p_share`` is the share of the defined p-values in each of ``bins`` bins, [``bin_low``, ``bin_high``).
    """

    audit = "rate_levels"
    columns = ("metric", "positives_a", "positives_b", "draws", "simulations", "alpha")

    n_a: Counts
    n_b: Counts
    rate: Shares
    bins: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect_equal_lengths("n_a", "n_b", "rate")

    def populations(self) -> Iterator[Population]:
        for n_a, n_b, rate in zip(self.n_a, self.n_b, self.rate, strict=True):
            known = {(UNSTUDENTIZED, "limit_rejection_rate"): self.limit((n_a, n_b))}
            place = {"n_a": n_a, "n_b": n_b, "rate": rate}
            yield self.population(place, (n_a, n_b), (rate, rate), known if UNSTUDENTIZED in self.tests else {})

    def limit(self, sizes: Sizes) -> float:
        """Return the level of the unstudentised test in large samples of these proportions."""
        share, positives = np.array(sizes) / sum(sizes), np.array([self.positives_a, self.positives_b])
        sampling, permuted = (1 / (share * positives)).sum(), 1 / (share @ positives * share.prod())
        return float(2 * ndtr(ndtri(self.alpha / 2) * np.sqrt(permuted / sampling)))

    def rows(self, test: str, p: Array) -> Iterator[Row]:
        yield from super().rows(test, p)
        defined, edges = p[~np.isnan(p)], np.linspace(0, 1, self.bins + 1)
        shares = np.histogram(defined, edges)[0] / max(1, len(defined))
        for share, low, high in zip(shares, edges[:-1], edges[1:], strict=True):
            yield {"statistic": "p_share", "value": float(share), "bin_low": low, "bin_high": high}


@dataclass(frozen=True)
class Power(_OfRates):
    """Samples of ``n`` rows with the share ``share_a`` in group A.

    The true positive rate is ``rate`` + difference in A and ``rate`` in B, for each of ``differences``.
    """

    audit = "rate_power"
    columns = ("metric", "rate", "positives_a", "positives_b", "draws", "simulations", "alpha")
    statistic = "power"

    draws: Annotated[int, at_least(2)]
    simulations: Annotated[int, at_least(2)]
    n: Annotated[list[Annotated[int, at_least(2)]], not_empty]
    share_a: Share
    rate: Share
    differences: Annotated[list[float], not_empty]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= self.rate + value <= 1 for value in self.differences):
            problem = f"expected audit.rate + each of audit.differences in [0, 1], found {self.differences}"
            raise InvalidInput(problem, option="differences")

    def populations(self) -> Iterator[Population]:
        for n in self.n:
            n_a = round(n * self.share_a)
            for difference in self.differences:
                sizes, rates = (n_a, n - n_a), (self.rate + difference, self.rate)
                variances: Any = rate_variance(np.array(rates), np.array([self.positives_a, self.positives_b]))
                predicted = float(power_of(difference, variances, sizes, alpha=self.alpha))
                place = {"n": n, "n_a": sizes[0], "n_b": sizes[1], "difference": difference}
                yield self.population(place, sizes, rates, {("", "predicted_power"): predicted})


@dataclass(frozen=True)
class Directions(Power):
    """As :class:`Power`. ``wrong_direction`` is the share of samples that are rejected with the wrong sign."""

    audit = "rate_directions"
    statistic = "wrong_direction"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(self.differences):
            raise InvalidInput(f"expected differences other than 0, found {self.differences}", option="differences")

    def populations(self) -> Iterator[Population]:
        for population in super().populations():
            # A higher true positive rate is a lower false negative rate.
            sign = np.sign(population.place["difference"]) * (1 if self.metric == "tpr" else -1)
            yield replace(population, p_values=partial(self._wrong, float(sign)), known={})

    def _wrong(self, sign: float, tables: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Return the p-values of the samples whose observed difference has the wrong sign, and 1 for the others."""
        difference = Proportion(0.0)(groups_of(tables, self.metric)).difference
        right = np.sign(difference) == sign
        return {test: np.where(right, 1.0, p) for test, p in self._p_values(tables, rng).items()}


@dataclass(frozen=True)
class Aucs(Simulation):
    """Setting i has ``n_a[i]`` and ``n_b[i]`` rows; ``auc`` is the AUC in both groups.

    ``positives_a`` and ``positives_b`` are the shares of positives.
    """

    audit = "auc_levels"
    columns = ("auc", "positives_a", "positives_b", "draws", "simulations", "alpha")

    n_a: Counts
    n_b: Counts
    auc: Share
    positives_a: Share
    positives_b: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect_equal_lengths("n_a", "n_b")

    def populations(self) -> Iterator[Population]:
        for sizes in zip(self.n_a, self.n_b, strict=True):
            place = {"n_a": sizes[0], "n_b": sizes[1]}
            yield Population(place, partial(self.sample, sizes), self._p_values, numbers=sum(sizes))

    def sample(self, sizes: Sizes, simulations: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return label and group, (simulations, n) each, of rows in ascending order of score."""
        group = np.repeat([0, 1], sizes)
        label = rng.random((simulations, len(group))) < np.array([self.positives_a, self.positives_b])[group]
        score = rng.standard_normal(label.shape) + np.sqrt(2) * ndtri(self.auc) * label
        order = np.argsort(score, axis=1)
        return np.take_along_axis(label, order, axis=1).astype(np.int64), group[order]

    def _p_values(self, samples: tuple[Array, Array], rng: np.random.Generator) -> dict[str, Array]:
        return auc_p(*samples, rng=rng, draws=self.draws)


@dataclass(frozen=True)
class Correlations(Simulation):
    """Samples of size ``n`` of each of ``cases``, each tested by ``tests``.

    ``fairtest`` is FairTest's rule, which rejects if p < ``alpha``; the others reject if p <= ``alpha``. ``low`` > 0 is
    the smallest X in the first case.
    """

    audit = "correlation_levels"
    columns = ("n", "draws", "simulations", "alpha")

    cases: Annotated[list[str], some_of(("uncorrelated", "independent"))]
    tests: Annotated[list[str], some_of(("fairtest", "unstudentized", "studentized"))]
    n: Annotated[int, at_least(3)]
    low: Share

    def populations(self) -> Iterator[Population]:
        for case in self.cases:
            yield Population({"case": case}, partial(self._sample, case), self._p_values, self.n)

    def rows(self, test: str, p: Array) -> Iterator[Row]:
        yield from _share(self.statistic, p < self.alpha if test == "fairtest" else p <= self.alpha)

    def _sample(self, case: str, simulations: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return X and Y = Z / X, (simulations, n) each."""
        shape = simulations, self.n
        x = rng.uniform(self.low, 1, shape) if case == "uncorrelated" else 1 + rng.exponential(size=shape)
        return x, rng.standard_normal(shape) / x

    def _p_values(self, samples: tuple[Array, Array], rng: np.random.Generator) -> dict[str, Array]:
        def p(test: str) -> Array:
            if test == "fairtest":
                return pooled_shuffle_p(*samples, rng=rng, draws=self.draws)
            return correlation_p(*samples, rng=rng, method=test, draws=self.draws)  # type: ignore[arg-type]

        return {test: p(test) for test in self.tests}


CONFIGS = {"rates": Rates, "power": Power, "directions": Directions, "auc": Aucs, "correlations": Correlations}


def run(
    dataset: Dataset, classifier: Classifier, config: Simulation, rngs: Sequence[np.random.Generator]
) -> AuditResult:
    """Return the rows by repetition, population and ``test``; data set and classifier are not used.

    Statistics that are known without simulation have rows of their own. The samples depend only on the
    generators and on the order of the populations.
    """
    rows: list[Row] = []
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        for population in config.populations():
            place = {"repetition": repetition, **population.place}
            known = population.known.items()
            rows += [{**place, "test": test, "statistic": name, "value": value} for (test, name), value in known]
            for test, p in _p_values(population, config.simulations, rng).items():
                rows += [{**place, "test": test, **row} for row in config.rows(test, p)]
    constant = {name: getattr(config, name) for name in config.columns}
    return AuditResult.of(config.audit, dataset, classifier, rows, **constant)


def sampled(
    sizes: Sizes,
    positives: tuple[float, float],
    true_positive: tuple[float, float],
    true_negative: float,
    simulations: int,
    rng: np.random.Generator,
) -> Array:
    """Draw S samples as tables group x label x prediction, (S, 2, 2, 2); pairs are of groups A and B."""
    n = np.broadcast_to(sizes, (simulations, 2))
    ones = rng.binomial(n, positives)
    caught = rng.binomial(ones, true_positive)
    passed = rng.binomial(n - ones, true_negative)
    return np.stack([np.stack([passed, n - ones - passed], -1), np.stack([ones - caught, caught], -1)], -2)


def _p_values(population: Population, simulations: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return the p-values (simulations,) by test; all tests see the same samples."""
    at_once, parts = max(1, NUMBERS_AT_ONCE // population.numbers), []
    for start in range(0, simulations, at_once):
        samples = population.draw(min(at_once, simulations - start), rng)
        parts.append(population.p_values(samples, rng))
    return {test: np.concatenate([part[test] for part in parts]) for test in parts[0]}


def _share(statistic: str, happened: Array) -> Iterator[Row]:
    r"""Yield the mean f of S booleans (S,) and its standard error, :math:`\sqrt{f (1 - f) / S}`."""
    value = float(np.mean(happened))
    yield {"statistic": statistic, "value": value}
    yield {"statistic": f"{statistic}_std_error", "value": float(np.sqrt(value * (1 - value) / len(happened)))}
