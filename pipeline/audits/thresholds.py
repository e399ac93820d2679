"""Differences of rates between two groups at every threshold, and their permutation tests.

The published figure draws the 95th percentile, the rejection bound of the unstudentised test. It is the k-th largest
|D*| of the differences D* after B permutations, k = floor(alpha (B + 1)). Source: DiCiccio et al. 2020, section 5.1 and
Figure 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fairness_audits.audits.permutation.metrics import RATES
from fairness_audits.audits.permutation.samples import Permuted, groups_of, table_p
from fairness_audits.validation import Checked, Count, Share, at_least, some_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.predictions import named_attributes, scores_of, threshold_tables
from pipeline.values import AuditResult


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``metrics``: rates. ``attributes``: protected attributes, None for all. ``points``: thresholds from 0 to 1.

    ``draws`` permutations at each threshold, tests at level ``alpha``.
    """

    metrics: Annotated[list[str], some_of(RATES)]
    attributes: list[str] | None
    points: Annotated[int, at_least(2)]
    draws: Count
    alpha: Share


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Return rows by repetition, ``attribute``, ``metric`` and ``threshold``; group A is level 1 of the attribute.

    ``difference`` (A - B), ``estimate_a``, ``estimate_b``, ``n_a``, ``n_b`` (denominators of the rates),
    ``percentile_95``; and by ``test`` (studentized with Wald's variance, exact) ``rejected``. If a group has no row for
    a rate, its statistics are NaN and the test does not reject.
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
    """Return the statistics (T,) of tables (T, 2, 2, 2) by test; "" holds those without a test."""
    groups = groups_of(tables, name)
    found, rows = Permuted.of(groups, config.draws, rng), groups[..., :2].sum(axis=-1)
    return {
        "studentized": {"rejected": found.p("studentized") <= config.alpha},
        "exact": {"rejected": table_p(tables, name, "exact", config.draws, rng) <= config.alpha},
        "": {
            "difference": found.observed.difference,
            "estimate_a": found.observed.value[0],
            "estimate_b": found.observed.value[1],
            "n_a": rows[0],
            "n_b": rows[1],
            "percentile_95": found.bound(config.alpha),
        },
    }
