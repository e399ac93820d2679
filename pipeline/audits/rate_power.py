r"""The power of tests of a rate by simulation, how many rows a test needs, and what it sees with the rows at hand.

A studentised test at level alpha rejects where |D| exceeds z sd(D), and D is normal about the true difference delta:

.. math:: sd(D)^2 = \frac{\sigma_A^2}{n_A} + \frac{\sigma_B^2}{n_B}, \qquad
          \text{power} = \Phi\Big(\frac{|\delta|}{sd(D)} - z\Big), \qquad
          n_A = n_B = (z + z_{power})^2 \, \frac{\sigma_A^2 + \sigma_B^2}{\delta^2},

z = z_{1 - alpha/2}; the wrong side of the test is left out. With power one half, z_power = 0, this is the formula of
DiCiccio et al. 2020, section 5.1: delta sits just on the bound.

In the simulations group A has the true positive rate f + delta and group B f; the classifier is right about negatives
with probability f.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.validation import Checked, Share, at_least, not_empty, one_of, some_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.simulations import TESTS, Population, all_tested, rejections, sampled, simulated
from pipeline.values import AuditResult


def rate_variance(rate: float | Array, share: float | Array) -> Array:
    r"""sigma^2 of one row for a rate f whose rows (label, prediction) are a share pi of all: f (1 - f) / pi.

    Source: DiCiccio et al. 2020, section 3.3, for the false negative rate.
    """
    rate, share = np.asarray(rate, dtype=float), np.asarray(share, dtype=float)
    if ((rate < 0) | (rate > 1)).any() or ((share <= 0) | (share > 1)).any():
        raise ValueError(f"expected a rate in [0, 1] and a share in (0, 1], found {rate} and {share}")
    return rate * (1 - rate) / share


def sample_size(difference: float, variances: tuple[float, float], *, alpha: float, power: float) -> int:
    """The least n_A = n_B that detects ``difference`` with probability ``power``, from the variances of one row."""
    reach = float(ndtri(1 - alpha / 2) + ndtri(power))
    return int(np.ceil(reach**2 * sum(variances) / difference**2))


def power_of(
    difference: float | Array, variances: tuple[float, float], sizes: tuple[float | Array, float | Array], alpha: float
) -> Array:
    """The chance to reject and name the right group, for a true difference."""
    return np.asarray(ndtr(np.abs(difference) / _deviation(variances, sizes) - ndtri(1 - alpha / 2)))


def detectable(
    variances: tuple[float | Array, float | Array], sizes: tuple[float | Array, float | Array], alpha: float
) -> Array:
    """The difference detected with probability one half in groups of these sizes."""
    return np.asarray(ndtri(1 - alpha / 2) * _deviation(variances, sizes))


def _deviation(variances: tuple[float | Array, float | Array], sizes: tuple[float | Array, float | Array]) -> Array:
    """sd(D)."""
    return np.sqrt(variances[0] / np.asarray(sizes[0]) + variances[1] / np.asarray(sizes[1]))


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``simulations`` samples of each number ``n`` of rows, of which the share ``share_a`` is in group A.

    True positive rates ``rate`` + difference in A and ``rate`` in B, for each of ``differences``; shares of positives
    ``positives_a`` and ``positives_b``. ``tests`` of ``metric`` at level ``alpha``, ``draws`` permutations each.
    """

    metric: Annotated[str, one_of(("tpr", "fnr"))]
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
