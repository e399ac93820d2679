"""The power of tests of a rate by simulation, and what the formula of section 5.1 says of it.

Group A has the true positive rate f + delta and group B f; the classifier is right about negatives with probability f.
Source: DiCiccio et al. 2020, section 5.1; the formula is that of ``pipeline.audits.permutation.power``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from pipeline.audits.permutation.power import power_of, rate_variance
from pipeline.audits.permutation.simulations import TESTS, Population, all_tested, rejections, sampled, simulated
from pipeline.fields import Checked, Share, at_least, not_empty, one_of, some_of
from pipeline.types import AuditResult, Classifier, Dataset

METRICS = ("tpr", "fnr")


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``simulations`` samples of each number ``n`` of rows, of which the share ``share_a`` is in group A.

    True positive rates ``rate`` + difference in A and ``rate`` in B, for each of ``differences``; shares of positives
    ``positives_a`` and ``positives_b``. ``tests`` of ``metric`` at level ``alpha``, ``draws`` permutations each.
    """

    metric: Annotated[str, one_of(METRICS)]
    tests: Annotated[list[str], some_of(TESTS)]
    n: Annotated[list[Annotated[int, at_least(2)]], not_empty]
    share_a: Share
    rate: Share
    differences: Annotated[list[float], not_empty]
    positives_a: Share
    positives_b: Share
    draws: Annotated[int, at_least(2)]
    simulations: Annotated[int, at_least(2)]
    alpha: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= self.rate + value <= 1 for value in self.differences):
            raise ValueError(f"expected audit.rate + each of audit.differences in [0, 1], found {self.differences}")


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows by ``n`` and ``difference``; dataset and classifier are not used.

    For each ``test`` ``power``, the share of simulations that it rejects, with its standard error, and ``undefined``,
    the share without positives in a group, which are not rejected; without test ``predicted_power``.
    """
    populations = [_population(config, n, difference) for n in config.n for difference in config.differences]
    columns = ("metric", "rate", "positives_a", "positives_b", "draws", "simulations", "alpha")
    rows = partial(rejections, statistic="power")
    return simulated("rate_power", dataset, classifier, config, rngs, populations, columns, rows)


def _population(config: Config, n: int, difference: float) -> Population:
    n_a = round(n * config.share_a)
    sizes, rates = (n_a, n - n_a), (config.rate + difference, config.rate)
    positives = config.positives_a, config.positives_b
    variances: Any = rate_variance(np.array(rates), np.array(positives))
    return Population(
        place={"n": n, "n_a": sizes[0], "n_b": sizes[1], "difference": difference},
        known={"predicted_power": float(power_of(difference, variances, sizes, alpha=config.alpha))},
        draw=partial(sampled, sizes, positives, rates, config.rate),
        p_values=partial(all_tested, config),
    )
