r"""The level of tests of an equal false negative (or true positive) rate, in groups with other shares of positives.

Group g has n_g rows, each positive with probability pi_g, and the classifier is right about every row with probability
f, the true positive and true negative rate: fair in the sense that the rates are equal. With N rows, lambda = n_A / N
and :math:`\bar\pi = \lambda \pi_A + (1 - \lambda) \pi_B`, the difference of the rates has the variance

.. math:: \frac{f (1 - f)}{N} \Big(\frac{1}{\lambda \pi_A} + \frac{1}{(1 - \lambda) \pi_B}\Big), \qquad
          \text{after a permutation} \qquad \frac{f (1 - f)}{N} \frac{1}{\bar\pi \lambda (1 - \lambda)},

so that the un-studentised test has another level. Source: DiCiccio et al. 2020, section 4.2 and theorem 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from fairness_audits.validation import Checked, Count, Counts, Share, Shares, one_of, some_of
from fairness_audits.values import Classifier, Dataset
from pipeline.simulations import TESTS, Population, all_tested, rejections, sampled, simulated
from pipeline.values import AuditResult


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Setting i has ``n_a[i]`` and ``n_b[i]`` rows and the true positive rate ``rate[i]``.

    ``positives_a`` and ``positives_b`` are the shares of positives. ``tests`` of ``metric`` at level ``alpha`` with
    ``draws`` permutations on ``simulations`` samples; their p-values are counted in ``bins`` bins.
    """

    metric: Annotated[str, one_of(("fnr", "tpr"))]
    tests: Annotated[list[str], some_of(TESTS)]
    n_a: Counts
    n_b: Counts
    rate: Shares
    positives_a: Share
    positives_b: Share
    draws: Count
    simulations: Count
    alpha: Share
    bins: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect_equal_lengths("n_a", "n_b", "rate")


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows by setting and ``test``; dataset and classifier are not used.

    ``rejection_rate`` and its standard error, over all simulations; ``undefined``, the share of samples in which a
    group has no positives, which are not rejected; and ``p_share``, the share of the others with p in [``bin_low``,
    ``bin_high``).
    """
    settings = zip(config.n_a, config.n_b, config.rate, strict=True)
    populations = [_population(config, (n_a, n_b), rate) for n_a, n_b, rate in settings]
    columns = ("metric", "positives_a", "positives_b", "draws", "simulations", "alpha")
    rows = partial(rejections, bins=config.bins)
    return simulated("rate_levels", dataset, classifier, config, rngs, populations, columns, rows)


def _population(config: Config, sizes: tuple[int, int], rate: float) -> Population:
    positives = config.positives_a, config.positives_b
    return Population(
        place={"n_a": sizes[0], "n_b": sizes[1], "rate": rate},
        draw=partial(sampled, sizes, positives, (rate, rate), rate),
        p_values=partial(all_tested, config),
    )
