r"""How often tests of correlation reject where an attribute X and a model's error Y are uncorrelated, yet dependent.

.. math:: Y = Z / X, \quad Z \sim N(0, 1), \qquad
          X \sim U(\mathrm{low}, 1) \;\text{("uncorrelated")} \quad\text{or}\quad
          X \sim 1 + \mathrm{Exp}(1) \;\text{("independent", the published name)}.

E(Y | X) = 0, so the correlation is 0 in both cases; the variance of Y depends on X, so no test of r that takes them for
independent has its level. Source: DiCiccio et al. 2020, section 4.1 and table 1; the distributions, which the text does
not give, are those of the authors' scripts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from fairness_audits.audits.permutation.correlation import correlation_p, pooled_shuffle_p
from fairness_audits.validation import Checked, Count, Share, at_least, some_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.simulations import Population, Row, share, simulated
from pipeline.values import AuditResult


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``simulations`` samples of size ``n`` of each of ``cases``, ``draws`` permutations for each of ``tests``.

    ``fairtest`` is FairTest's rule, which rejects if p < ``alpha``; the others reject if p <= alpha. ``low`` > 0 is the
    least X of the first case.
    """

    cases: Annotated[list[str], some_of(("uncorrelated", "independent"))]
    tests: Annotated[list[str], some_of(("fairtest", "unstudentized", "studentized"))]
    n: Annotated[int, at_least(3)]
    draws: Count
    simulations: Count
    alpha: Share
    low: Share


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows ``rejection_rate`` and its standard error by ``case`` and ``test``; dataset and classifier are not used."""
    populations = [
        Population({"case": case}, partial(sample, case, config), partial(_p_values, config), config.n)
        for case in config.cases
    ]
    columns = ("n", "draws", "simulations", "alpha")
    return simulated("correlation_levels", dataset, classifier, config, rngs, populations, columns, _rows)


def sample(case: str, config: Config, simulations: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """X and Y = Z / X, (simulations, n) each."""
    shape = simulations, config.n
    x = rng.uniform(config.low, 1, shape) if case == "uncorrelated" else 1 + rng.exponential(size=shape)
    return x, rng.standard_normal(shape) / x


def _p_values(config: Config, samples: tuple[Array, Array], rng: np.random.Generator) -> dict[str, Array]:
    def p(test: str) -> Array:
        if test == "fairtest":
            return pooled_shuffle_p(*samples, rng=rng, draws=config.draws)
        return correlation_p(*samples, rng=rng, method=test, draws=config.draws)  # type: ignore[arg-type]

    return {test: p(test) for test in config.tests}


def _rows(config: Config, test: str, p: Array) -> list[Row]:
    return share("rejection_rate", p < config.alpha if test == "fairtest" else p <= config.alpha)
