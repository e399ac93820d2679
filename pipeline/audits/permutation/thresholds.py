r"""The difference of a rate between two groups at every threshold, and the bound beyond which tests reject it.

With B permutations, D* the difference and T* = D* / s* the studentised difference after each of them, and s the
standard error of D, the tests reject where |D| exceeds

.. math:: \text{un-studentised: } q(|D^*|), \qquad \text{studentised: } s\, q(|T^*|),

q being the k-th largest of the B values, k = floor(alpha (B + 1)): that is p <= alpha. The first is the 95th percentile
that the published figure draws. Source: DiCiccio et al. 2020, section 5.1 and figure 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from pipeline.audits.permutation.draws import split
from pipeline.audits.permutation.monte_carlo import bound, extreme, furthest, monte_carlo_p
from pipeline.audits.permutation.scores import RATES, named_attributes, scores_of, threshold_tables
from pipeline.audits.permutation.simulations import table_p
from pipeline.audits.permutation.statistics import Proportion, studentized
from pipeline.fields import Checked, Count, Share, at_least, some_of
from pipeline.types import Array, AuditResult, Classifier, Dataset

SMOOTHINGS = {"studentized": 0.0, "studentized_smoothed": 1.0}


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``metrics``: rates; ``attributes``: protected ones, None for all. ``points`` thresholds from 0 to 1; ``draws``
    permutations at each; tests at level ``alpha``.
    """

    metrics: Annotated[list[str], some_of(RATES)]
    attributes: list[str] | None
    points: Annotated[int, at_least(2)]
    draws: Count
    alpha: Share


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Rows by repetition, ``attribute``, ``metric`` and ``threshold``, of the test rows; A is level 1 of the attribute.

    ``difference`` (A - B), ``equalized_odds`` (its size), ``estimate_a``, ``estimate_b``, ``n_a``, ``n_b`` (the rows
    that the rate is of), ``smallest_cell`` (fewest events or others in a group), ``percentile_95``; and by ``test``
    (unstudentized, studentized with Wald's variance, studentized_smoothed, exact) ``p_value``, ``rejected`` and
    ``critical``, the bound of |D|. NaN where a group has no row that the rate is of.
    """
    attributes = named_attributes(dataset, config.attributes)
    test, score = scores_of(dataset, classifier, "test")
    thresholds = np.linspace(0, 1, config.points)
    rows: list[dict[str, Any]] = []
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        for attribute in attributes:
            protected = test.protected[attribute][repetition]
            tables = threshold_tables(test.label[repetition], score[repetition], protected, thresholds)
            for name in config.metrics:
                where = {"repetition": repetition, "attribute": attribute, "metric": name}
                for kind, columns in _at_thresholds(tables, name, config, rng).items():
                    rows += [
                        {**where, "threshold": threshold, "test": kind, "statistic": key, "value": float(value)}
                        for key, values in columns.items()
                        for threshold, value in zip(thresholds, values, strict=True)
                    ]
    return AuditResult.of("thresholds", dataset, classifier, rows, draws=config.draws, alpha=config.alpha)


def _at_thresholds(tables: Array, name: str, config: Config, rng: np.random.Generator) -> dict[str, dict[str, Array]]:
    """For each test, and for none (""), the statistics (T,) of tables (T, 2, 2, 2)."""
    rate = RATES[name]
    kinds = rate.split(tables)
    groups = np.moveaxis(kinds, 1, 0)
    permuted_groups = split(kinds.sum(axis=1), list(kinds.sum(axis=2).T), config.draws, rng)
    observed, permuted = Proportion(0.0)(groups), Proportion(0.0)(permuted_groups)
    difference = observed.difference
    found: dict[str, dict[str, Array]] = {}
    found["unstudentized"] = _test(difference, permuted.difference, np.ones_like(difference), config.alpha)
    for kind, smoothing in SMOOTHINGS.items():
        own = Proportion(smoothing)(groups)
        reference, scale = studentized(Proportion(smoothing)(permuted_groups)), np.sqrt(own.variance.sum(axis=0))
        found[kind] = _test(studentized(own), reference, scale, config.alpha)
    p = table_p(tables, name, method="exact", rng=rng)
    found["exact"] = {"p_value": p, "rejected": p <= config.alpha}
    found[""] = {
        "difference": difference,
        "equalized_odds": np.abs(difference),
        "estimate_a": observed.value[0],
        "estimate_b": observed.value[1],
        "n_a": kinds[:, 0, :2].sum(axis=-1),
        "n_b": kinds[:, 1, :2].sum(axis=-1),
        "smallest_cell": kinds[:, :, :2].min(axis=(1, 2)),
        "percentile_95": found["unstudentized"]["critical"],
    }
    return found


def _test(statistic: Array, reference: Array, scale: Array, alpha: float) -> dict[str, Array]:
    """p-values (T,) of statistics (T,) in their references (T, B), and the bound of |D| = ``scale`` |statistic|."""
    p = monte_carlo_p(extreme(reference, statistic, "two-sided").sum(axis=-1), reference.shape[-1])
    p = np.where(np.isnan(statistic), np.nan, p)
    return {"p_value": p, "rejected": p <= alpha, "critical": bound(furthest(np.abs(reference), alpha), scale)}
