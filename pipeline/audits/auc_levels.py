r"""The level of tests of equal AUCs, in groups with other shares of positives.

Group g has n_g rows, each positive with probability pi_g. Scores are normal with variance 1, those of positives higher
by :math:`\sqrt 2\, \Phi^{-1}(\mathrm{AUC})`: the same law given the label in both groups, hence the same AUC. The
placements of positives and of negatives then have one variance s^2, and the difference of the AUCs the variance

.. math:: s^2 \sum_g \Big(\frac{1}{n_g \pi_g} + \frac{1}{n_g (1 - \pi_g)}\Big), \qquad \text{after a permutation} \qquad
          s^2 \sum_g \frac{1}{n_g} \Big(\frac{1}{\bar\pi} + \frac{1}{1 - \bar\pi}\Big),

:math:`\bar\pi` being the share of positives among all, so that the un-studentised test has another level. Source:
DeLong et al. 1988 for the variance; DiCiccio et al. 2020, section 3, for the question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtri

from fairness_audits.validation import Checked, Count, Counts, Share
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.simulations import Population, auc_p, simulated
from pipeline.values import AuditResult


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Setting i has ``n_a[i]`` and ``n_b[i]`` rows; ``auc`` is that of both groups.

    ``positives_a`` and ``positives_b`` are the shares of positives. Both tests at level ``alpha``, ``draws``
    permutations, ``simulations`` samples.
    """

    n_a: Counts
    n_b: Counts
    auc: Share
    positives_a: Share
    positives_b: Share
    draws: Count
    simulations: Count
    alpha: Share

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect_equal_lengths("n_a", "n_b")


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows by setting and ``test`` (unstudentized, studentized); dataset and classifier are not used.

    ``rejection_rate`` and its standard error, over all simulations, and ``undefined``, the share of samples without a
    test, which are not rejected.
    """
    populations = [_population(config, sizes) for sizes in zip(config.n_a, config.n_b, strict=True)]
    columns = ("auc", "positives_a", "positives_b", "draws", "simulations", "alpha")
    return simulated("auc_levels", dataset, classifier, config, rngs, populations, columns)


def _population(config: Config, sizes: tuple[int, int]) -> Population:
    return Population(
        place={"n_a": sizes[0], "n_b": sizes[1]},
        draw=partial(sample, sizes, config),
        p_values=lambda samples, rng: auc_p(*samples, rng=rng, draws=config.draws),
        numbers=sum(sizes),
    )


def sample(sizes: tuple[int, int], config: Config, simulations: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Label and group, (simulations, n) each, of rows in ascending order of score."""
    group = np.repeat([0, 1], sizes)
    label = rng.random((simulations, len(group))) < np.array([config.positives_a, config.positives_b])[group]
    score = rng.standard_normal(label.shape) + np.sqrt(2) * ndtri(config.auc) * label
    order = np.argsort(score, axis=1)
    return np.take_along_axis(label, order, axis=1).astype(np.int64), group[order]
