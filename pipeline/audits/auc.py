"""The area under the ROC curve on the test rows, overall and by group, with DeLong's standard error."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.audits.permutation.statistics import auc_of
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.predictions import named_attributes, scores_of
from pipeline.values import AuditResult


@dataclass(frozen=True)
class Config:
    """``attributes``: protected attributes for the AUC by group; None for all."""

    attributes: list[str] | None


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Compute ``auc``, ``auc_std_error``, ``n`` and ``positives`` of each repetition, by ``attribute`` and ``group``.

    Attribute and group are empty for all rows together. The AUC is NaN for a group without rows of both labels.
    """
    attributes = named_attributes(dataset, config.attributes)
    test, score = scores_of(dataset, classifier, "test")
    rows: list[dict[str, Any]] = []
    for repetition in range(classifier.repetitions):
        label, own = test.label[repetition], score[repetition]
        protected = {name: test.protected[name][repetition] for name in attributes}
        for attribute, group, chosen in _selections(dataset, protected, len(label)):
            where = {"repetition": repetition, "attribute": attribute, "group": group}
            found = auc_of(label[chosen], own[chosen])
            values = {
                "auc": float(found.value),
                "auc_std_error": float(np.sqrt(found.variance)),
                "n": float(chosen.sum()),
                "positives": float(label[chosen].sum()),
            }
            rows += [{**where, "statistic": name, "value": value} for name, value in values.items()]
    return AuditResult.of("auc", dataset, classifier, rows)


def _selections(dataset: Dataset, protected: dict[str, Array], n: int) -> Iterator[tuple[str, str, Array]]:
    yield "", "", np.ones(n, dtype=bool)
    for attribute, values in protected.items():
        for level, name in enumerate(dataset.levels[attribute]):
            yield attribute, name, values == level
