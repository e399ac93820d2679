r"""How often tests of correlation reject where an attribute X and a model's error Y are uncorrelated, yet dependent.

.. math:: Y = Z / X, \quad Z \sim N(0, 1), \qquad
          X \sim U(\mathrm{low}, 1) \;\text{("uncorrelated")} \quad\text{or}\quad
          X \sim 1 + \mathrm{Exp}(1) \;\text{("independent", the published name)}.

E(Y | X) = 0, so the correlation is 0 in both cases; the variance of Y depends on X, so no test of r that takes them for
independent has its level. Source: DiCiccio et al. 2020, section 4.1 and table 1; the distributions, which the text does
not give, are those of the authors' scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from pipeline.audits.permutation.correlation import correlation_p, pooled_shuffle_p
from pipeline.audits.permutation.simulated_shares import share
from pipeline.fields import Checked, Count, Share, at_least, some_of
from pipeline.types import Array, AuditResult, Classifier, Dataset

CASES = ("uncorrelated", "independent")
TESTS = ("fairtest", "unstudentized", "studentized")
NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``simulations`` samples of size ``n`` of each of ``cases``, ``draws`` permutations for each of ``tests``.

    ``fairtest`` is FairTest's rule, which rejects if p < ``alpha``; the others reject if p <= alpha. ``low`` > 0 is the
    least X of the first case.
    """

    cases: Annotated[list[str], some_of(CASES)]
    tests: Annotated[list[str], some_of(TESTS)]
    n: Annotated[int, at_least(3)]
    draws: Count
    simulations: Count
    alpha: Share
    low: Share


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows ``rejection_rate`` and its standard error by ``case`` and ``test``; dataset and classifier are not used.

    Array ``p_values`` (cases, tests, simulations), of the first repetition.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    tables = []
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        p = np.stack([p_values(case, config, rng) for case in config.cases])
        tables.append(p)
        for (i, case), (j, test) in ((c, t) for c in enumerate(config.cases) for t in enumerate(config.tests)):
            rejected = p[i, j] < config.alpha if test == "fairtest" else p[i, j] <= config.alpha
            where = {"repetition": repetition, "case": case, "test": test}
            rows += [{**where, **row} for row in share("rejection_rate", rejected)]
    settings = {key: getattr(config, key) for key in ("n", "draws", "simulations", "alpha")}
    table = pd.DataFrame(rows).assign(**settings)
    arrays = {"p_values": tables[0], "cases": np.array(config.cases), "tests": np.array(config.tests)}
    return AuditResult("correlation_levels", dataset.name, classifier.method, dataset.origin, table, arrays)


def p_values(case: str, config: Config, rng: np.random.Generator) -> Array:
    """The p-values (tests, simulations) of one case: every test sees the same samples."""
    at_once, parts = max(1, NUMBERS_AT_ONCE // config.n), []
    for first in range(0, config.simulations, at_once):
        x, y = sample(case, min(at_once, config.simulations - first), config.n, config.low, rng)
        parts.append(np.stack([_p(test, x, y, config.draws, rng) for test in config.tests]))
    return np.concatenate(parts, axis=1)


def sample(case: str, simulations: int, n: int, low: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """X and Y = Z / X, (simulations, n) each."""
    shape = simulations, n
    x = rng.uniform(low, 1, shape) if case == "uncorrelated" else 1 + rng.exponential(size=shape)
    return x, rng.standard_normal(shape) / x


def _p(test: str, x: Array, y: Array, draws: int, rng: np.random.Generator) -> Array:
    if test == "fairtest":
        return pooled_shuffle_p(x, y, rng=rng, draws=draws)
    return correlation_p(x, y, rng=rng, method="studentized" if test == "studentized" else "unstudentized", draws=draws)
