r"""The level of tests of an equal false negative (or true positive) rate, in groups with other shares of positives.

Group g has n_g rows, each positive with probability pi_g, and the classifier is right about every row with probability
f, the true positive and true negative rate: fair in the sense that the rates are equal. With lambda = n_A / N the
difference of the rates has N Var = f (1 - f) (1 / (lambda pi_A) + 1 / ((1 - lambda) pi_B)), but after a permutation
f (1 - f) / (pi lambda (1 - lambda)) with pi = lambda pi_A + (1 - lambda) pi_B. So the un-studentised test rejects with

.. math:: 2 \Phi\big(-z_{1 - \alpha/2} / \sqrt{\rho}\big), \qquad
          \rho = \bar\pi \Big(\frac{1 - \lambda}{\pi_A} + \frac{\lambda}{\pi_B}\Big)

in the limit. Source: DiCiccio et al. 2020, section 4.2 and theorem 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import ndtr, ndtri

from pipeline.audits.permutation.simulated_shares import share
from pipeline.audits.permutation.simulated_tables import TESTS, sampled, tested
from pipeline.fields import Checked, Count, Counts, Share, Shares, one_of, some_of
from pipeline.types import AuditResult, Classifier, Dataset

METRICS = ("fnr", "tpr")


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Setting i has ``n_a[i]`` and ``n_b[i]`` rows and the true positive rate ``rate[i]``.

    ``positives_a`` and ``positives_b`` are the shares of positives. ``tests`` of ``metric`` at level ``alpha`` with
    ``draws`` permutations on ``simulations`` samples; their p-values are counted in ``bins`` bins.
    """

    metric: Annotated[str, one_of(METRICS)]
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
    group has no positives, which are not rejected; ``p_share``, the share of the others with p in [``bin_low``,
    ``bin_high``); ``limit_rejection_rate`` of the un-studentised test; and ``expected_positives`` of group B.
    Arrays ``p_values`` (settings, tests, simulations) of the first repetition, NaN where undefined, and its axes.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    first = np.empty((len(config.n_a), len(config.tests), config.simulations))
    edges = np.linspace(0, 1, config.bins + 1)
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        for i, (n_a, n_b, rate) in enumerate(zip(config.n_a, config.n_b, config.rate, strict=True)):
            shares = config.positives_a, config.positives_b
            tables = sampled((n_a, n_b), shares, (rate, rate), rate, config.simulations, rng)
            where = {"repetition": repetition, "n_a": n_a, "n_b": n_b, "rate": rate}
            rows.append({**where, "test": "", "statistic": "expected_positives", "value": n_b * config.positives_b})
            for j, test in enumerate(config.tests):
                p = tested(tables, config.metric, test, config.draws, rng)
                if repetition == 0:
                    first[i, j] = p
                found = share("rejection_rate", p <= config.alpha)
                found.append({"statistic": "undefined", "value": float(np.isnan(p).mean())})
                if test == "unstudentized":
                    limit = limit_rejection_rate((n_a, n_b), shares, config.alpha)
                    found.append({"statistic": "limit_rejection_rate", "value": limit})
                counts = np.histogram(p[~np.isnan(p)], edges)[0] / max(1, int((~np.isnan(p)).sum()))
                found += [
                    {"statistic": "p_share", "value": float(count), "bin_low": low, "bin_high": high}
                    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True)
                ]
                rows += [{**where, "test": test, **row} for row in found]
    names = ("metric", "positives_a", "positives_b", "draws", "simulations", "alpha")
    table = pd.DataFrame(rows).assign(**{name: getattr(config, name) for name in names})
    axes = {"tests": config.tests, "n_a": config.n_a, "n_b": config.n_b, "rate": config.rate}
    arrays = {"p_values": first, **{name: np.array(values) for name, values in axes.items()}}
    return AuditResult("rate_levels", dataset.name, classifier.method, dataset.origin, table, arrays)


def limit_rejection_rate(sizes: tuple[int, int], positives: tuple[float, float], alpha: float) -> float:
    """The level that the un-studentised test has in the limit, by the formula above."""
    part = sizes[0] / sum(sizes)
    pooled = part * positives[0] + (1 - part) * positives[1]
    ratio = pooled * ((1 - part) / positives[0] + part / positives[1])
    return float(2 * ndtr(ndtri(alpha / 2) / np.sqrt(ratio)))
