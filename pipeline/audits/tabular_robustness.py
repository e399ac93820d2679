r"""Robustness bias of tabular models: distances of test rows to the decision boundary, by group.

.. math:: d(x) = \min_{x'} \|x' - x\|_2 \quad \text{with} \quad h(x') \ne h(x), \qquad
          \sigma(P) = \frac{\overline{d}_P}{\overline{d}_{\bar P}} - 1

over the correctly classified rows of a group P and of the others, in the units of the model's inputs, without bounds.
For a linear model d is exact, |w.x + b| / |w|. For a network with one hidden layer it is an upper bound by the fast
minimum-norm attack, :func:`fairness_audits.attacks.row_networks.fmn_of_rows`.
A random decision, such as that of a mixture of models, has no boundary; only its accuracy is measured.

Source: Nanda et al. 2021, (1)-(6), who measure image networks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import robustness_bias
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.errors import InvalidInput
from fairness_audits.group_metrics import accuracy, balanced_accuracy
from fairness_audits.models import architecture
from fairness_audits.validation import Checked, Count, Share
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.values import AuditResult

LOG = logging.getLogger(__name__)
Distance = Literal["exact", "fmn", ""]
KEPT = ("sigma", "sigma_ci_low", "sigma_ci_high", "sigma_p", "mean_distance", "n")


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """Settings of the audit.

    ``points``: the first N test rows in random order, None for all. ``fmn_steps`` of the attack follow
    ``fmn_start_steps`` of DeepFool. Intervals have level 1 - ``alpha`` and use ``bootstraps`` resamples; p-values use
    ``permutations``.
    """

    points: Count | None
    fmn_steps: Count
    fmn_start_steps: Count
    alpha: Share
    bootstraps: Count
    permutations: Count


def run(dataset: Dataset, classifier: Classifier, config: Config, rngs: Sequence[np.random.Generator]) -> AuditResult:
    """Measure R classifiers on the test rows of their splits.

    Rows: ``accuracy`` and ``balanced_accuracy`` of each repetition. For models with distances also ``failed`` (attacks
    without success) and, by ``attribute`` and ``level``, ``sigma`` with ``sigma_ci_low``, ``sigma_ci_high`` and
    ``sigma_p``, ``mean_distance`` and ``n`` (correctly classified rows). ``distance`` is exact, fmn or empty.

    Arrays: ``rows`` (R, n) of the data set, ``distance`` (R, n), NaN if a row is misclassified or its attack failed.
    """
    test = dataset.batch("test", classifier.repetitions)
    x, label = test.features[:, : config.points], test.label[:, : config.points]
    predicted = architecture(classifier.architecture).predict(classifier.parameters, test.features)
    overall = {
        "accuracy": accuracy(test.label, predicted),
        "balanced_accuracy": balanced_accuracy(test.label, predicted),
    }
    kind = kind_of(classifier)
    table: list[dict[str, Any]] = [
        {"repetition": r, "statistic": name, "value": float(value), "attribute": "", "level": ""}
        for name, values in overall.items()
        for r, value in enumerate(values)
    ]
    distance = np.full(label.shape, np.nan)
    correct = predicted[:, : config.points] == label
    for r, rng in enumerate(rngs[: classifier.repetitions] if kind else ()):
        own = {name: values[r] for name, values in classifier.parameters.items()}
        known = np.flatnonzero(correct[r])
        steps = (config.fmn_steps, config.fmn_start_steps)
        distance[r, known] = distances(kind, own, x[r, known], label[r, known], *steps)
        groups = [
            Partition(name, dataset.levels[name], codes[r, : config.points]) for name, codes in test.protected.items()
        ]
        precision = Precision(config.alpha, config.bootstraps, config.permutations)
        found = robustness_bias(distance[r], correct[r], groups, None, precision, rng, denominators=["correct"])
        rows = [("failed", float(found.failed.sum()), "", "")]
        for one in found.levels:
            rows += [(name, value, one.partition.name, level) for name, level, value in one.entries(KEPT)]
            if one.empty:
                message = "%s, repetition %d: no correct row of %s %s, so sigma is undefined"
                LOG.warning(message, classifier.method, r, one.partition.name, ", ".join(one.empty))
        columns = ("statistic", "value", "attribute", "level")
        table += [{"repetition": r, **dict(zip(columns, row, strict=True))} for row in rows]
    arrays = {"rows": dataset.rows("test")[: classifier.repetitions, : config.points], "distance": distance}
    return AuditResult.of("tabular_robustness", dataset, classifier, table, arrays if kind else {}, distance=kind)


def kind_of(classifier: Classifier) -> Distance:
    """Return the kind of distance of a classifier; none for random decisions."""
    if classifier.architecture == "logistic_mixture" and classifier.parameters["weight"].shape[1] == 1:
        return "exact"
    return "fmn" if classifier.architecture == "mlp" else ""


def distances(
    kind: Distance, own: Mapping[str, Array], x: Array, label: Array, fmn_steps: int, fmn_start_steps: int
) -> Array:
    """Compute d (n,) of correct rows x (n, d), NaN if the attack failed; ``own`` is one model's parameters.

    Raises InvalidInput for random decisions, which have no boundary.
    """
    if not kind:
        remedy = "Audit a regression, or a network with one hidden layer"
        raise InvalidInput("the decisions have no boundary, so rows have no distance", option="method", remedy=remedy)
    if kind == "exact":
        weight = np.stack([np.zeros(x.shape[1]), own["coef"][0]])
        return linear_distance(weight, np.array([0.0, own["intercept"][0]]), x, label).distance
    return of_network(own, x, label, fmn_steps, fmn_start_steps)


def of_network(own: Mapping[str, Array], x: Array, label: Array, steps: int, start_steps: int) -> Array:
    """Bound the distances (n,) of correct rows x (n, d) of a network by FMN, NaN if the attack failed."""
    import torch

    from fairness_audits.attacks.row_networks import fmn_of_rows
    from fairness_audits.models import mlp

    network = {name: torch.from_numpy(values[None].astype(float)) for name, values in own.items()}

    def log_probabilities(rows: torch.Tensor) -> torch.Tensor:
        return mlp.log_probabilities(network, rows[None])[0]

    return fmn_of_rows(log_probabilities, x, label, steps=steps, start_steps=start_steps).distance
