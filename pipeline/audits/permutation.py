"""Permutation tests of every metric on every protected attribute, on the test predictions of each repetition.

Source: DiCiccio et al. 2020, "Evaluating fairness using permutation tests"; the tests are in
``fairness_audits.audits.permutation``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

import numpy as np

from fairness_audits.audits.inference import adjusted_p
from fairness_audits.audits.permutation.core import PermutationTest, tested
from fairness_audits.audits.permutation.metrics import METRICS, RATES, hypothesis
from fairness_audits.audits.permutation.monte_carlo import Method, Settings
from fairness_audits.audits.permutation.outcomes import Predictions, decided
from fairness_audits.validation import Checked, Count, Probability, Share, at_least, finite, some_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.predictions import named_attributes, scores_of
from pipeline.values import AuditResult


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Settings of the tests.

    ``metrics``: names in ``fairness_audits.audits.permutation.metrics``. ``attributes``: protected attributes, None for
    all. The decision is 1[P(y = 1 | x) >= ``threshold``]. ``tests``: any of auto, exact, studentized, unstudentized;
    exact applies to rates only. ``draws`` permutations, level ``alpha``. ``smoothing`` of the variance of a studentised
    rate (0: as published).
    """

    metrics: Annotated[list[str], some_of(METRICS)]
    attributes: list[str] | None
    threshold: Probability
    tests: Annotated[list[str], some_of(get_args(Method))]
    draws: Count
    alpha: Share
    smoothing: Annotated[float, at_least(0), finite]


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Test R classifiers on the test rows of their splits; group A is level 1 of the attribute, group B level 0.

    Rows for each repetition, ``attribute``, ``metric`` and ``test`` (the setting: auto, exact, ...): ``p_value``,
    ``p_adjusted`` (Holm, over the metrics and attributes of this test and repetition; TPR and FNR are one hypothesis,
    and so are FPR and TNR), ``difference`` (A - B), ``ci_low``, ``ci_high``, ``studentized`` (the statistic),
    ``estimate_a``, ``estimate_b``, ``n_a``, ``n_b``, ``rejected``, ``direction``, ``exact``, ``draws``,
    ``undefined_draws`` and ``undefined``, 1 if there is no test; its numbers are then NaN. Columns: ``threshold``,
    ``alpha`` and the index of the classifiers.

    Raises ValueError for an attribute that the data set does not have.
    """
    attributes = named_attributes(dataset, config.attributes)
    test, score = scores_of(dataset, classifier, "test")
    rows: list[dict[str, Any]] = []
    for repetition, rng in enumerate(rngs[: classifier.repetitions]):
        groups = {name: test.protected[name][repetition] for name in attributes}
        found = list(_tests(dataset, test.label[repetition], score[repetition], groups, config, rng))
        for (name, attribute, kind), result, adjusted in _adjusted(found):
            where = {"repetition": repetition, "attribute": attribute, "metric": name, "test": kind}
            rows += [{**where, "statistic": key, "value": value} for key, value in _values(result, adjusted).items()]
    return AuditResult.of("permutation", dataset, classifier, rows, threshold=config.threshold, alpha=config.alpha)


STATISTICS = (
    *("p_value", "p_adjusted", "difference", "ci_low", "ci_high", "studentized", "estimate_a", "estimate_b"),
    *("n_a", "n_b", "rejected", "direction", "exact", "draws", "undefined_draws", "undefined"),
)
"""Names of the statistics in the rows, in order."""
Key = tuple[str, str, str]


def _tests(
    dataset: Dataset, label: Array, score: Array, groups: dict[str, Array], config: Config, rng: np.random.Generator
) -> Iterator[tuple[Key, PermutationTest]]:
    """Run all tests of one repetition. Rows in neither group of an attribute are left out of its tests."""
    decision = decided(score, config.threshold)
    for attribute, group in groups.items():
        low, high = dataset.levels[attribute]
        inside = group >= 0
        data = Predictions(label[inside], score[inside], 1 - group[inside], (high, low), prediction=decision[inside])
        for name in config.metrics:
            for kind in config.tests:
                if kind == "exact" and name not in RATES:
                    continue
                settings = Settings(cast(Method, kind), "two-sided", config.alpha, config.draws, config.smoothing)
                yield (name, attribute, kind), tested(data, METRICS[name], settings, rng)


def _adjusted(found: Sequence[tuple[Key, PermutationTest]]) -> Iterator[tuple[Key, PermutationTest, float | None]]:
    """Return each test with its p-value after Holm's correction over the hypotheses tested by the same kind of test."""
    adjusted: dict[Key, float | None] = {}
    for kind in dict.fromkeys(key[2] for key, _ in found):
        known = {key: result.p_value for key, result in found if key[2] == kind}
        hypotheses = [(hypothesis(METRICS[name]), attribute) for name, attribute, _ in known]
        adjusted |= zip(known, adjusted_p(list(known.values()), hypotheses, "holm"), strict=True)
    for key, result in found:
        yield key, result, adjusted[key]


def _values(result: PermutationTest, adjusted: float | None) -> dict[str, float]:
    of_groups = zip(("estimate_a", "estimate_b", "n_a", "n_b"), (*result.estimates, *result.sizes), strict=True)
    own = {"p_adjusted": adjusted, "studentized": result.statistic, "undefined": bool(result.undefined)}
    known = {**vars(result), **dict(of_groups), **own}
    return {name: float("nan") if known[name] is None else float(known[name]) for name in STATISTICS}
