r"""Robustness bias of models of tables: how far the test rows of each group are from the decision boundary.

.. math:: d(x) = \min_{x'} \|x' - x\|_2 \quad \text{with} \quad h(x') \ne h(x), \qquad
          \sigma(P) = \frac{\overline{d}_P}{\overline{d}_{\bar P}} - 1

over the correctly classified rows of a group P and of the others, in the units that the model sees, anywhere in their
space. Of a linear model d is exact, |w.x + b| / |w|. Of a network with one hidden layer it is an upper bound by the
fast minimum-norm attack. Its rows are moved and scaled as a whole, which multiplies every distance alike, so that the
box that the attack keeps to is nowhere near: the middle of the rows to 1/2, their largest range to 1 / ``MARGIN``.
A decision that a coin makes, such as those of a mixture of models, has no boundary: it has its accuracy alone.

Source: Nanda et al. 2021, (1)-(6); they measure networks of images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairness_audits.attacks import Execution
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.audits.robustness_bias.rows import Measured, measured_rows
from fairness_audits.group_metrics import accuracy, balanced_accuracy
from fairness_audits.models import architecture
from fairness_audits.validation import Checked, Count, Share
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.values import AuditResult

if TYPE_CHECKING:
    from torch import Tensor

Distance = Literal["exact", "fmn", ""]
MARGIN = 4.0
"""How many times the range of the rows goes into the box of the attack."""
BATCH = 4096
"""Rows attacked together: they are short."""
KEPT = ("sigma", "sigma_ci_low", "sigma_ci_high", "sigma_p", "mean_distance", "n")


@dataclass(frozen=True)
class Config(Checked, of="audit"):
    """``points``: the first so many test rows, which are in random order, None for all. ``fmn_steps`` of the attack
    after ``fmn_start_steps`` of DeepFool. Intervals of level 1 - ``alpha`` from ``bootstraps`` resamples, p-values from
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

    Rows: ``accuracy`` and ``balanced_accuracy`` of each repetition; where there are distances also ``failed``, the
    attacks that found none, and by ``attribute`` and ``level`` ``sigma`` with ``sigma_ci_low``, ``sigma_ci_high`` and
    ``sigma_p``, ``mean_distance`` and ``n``, the correctly classified rows. ``distance`` says which: exact, fmn, or
    nothing.

    Arrays: ``rows`` (R, n) of the data set, ``distance`` (R, n), NaN where a row is misclassified or an attack failed.
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
        distance[r, known] = distances(kind, own, x[r, known], label[r, known], config)
        groups = [
            Partition(name, dataset.levels[name], codes[r, : config.points]) for name, codes in test.protected.items()
        ]
        measured = Measured(distance[r], correct[r], groups)
        precision = Precision(config.alpha, config.bootstraps, config.permutations)
        for found in measured_rows(measured, None, precision, rng, f"{classifier.method}, repetition {r}"):
            whole = found["statistic"] == "failed" and not found["partition"]
            if whole or (found["statistic"] in KEPT and found.get("denominator") == "correct"):
                place = {"attribute": found["partition"], "level": found["level"]}
                table.append(
                    {"repetition": r, "statistic": found["statistic"], "value": float(found["value"]), **place}
                )
    arrays = {"rows": dataset.rows("test")[: classifier.repetitions, : config.points], "distance": distance}
    return AuditResult.of("tabular_robustness", dataset, classifier, table, arrays if kind else {}, distance=kind)


def kind_of(classifier: Classifier) -> Distance:
    """Which distance a classifier has: none where a coin decides."""
    if classifier.architecture == "logistic_mixture" and classifier.parameters["weight"].shape[1] == 1:
        return "exact"
    return "fmn" if classifier.architecture == "mlp" else ""


def distances(kind: Distance, own: Mapping[str, Array], x: Array, label: Array, config: Config) -> Array:
    """d of correctly classified rows x (n, d), NaN where an attack failed: (n,); ``own`` are one model's parameters."""
    if kind == "exact":
        weight = np.stack([np.zeros(x.shape[1]), own["coef"][0]])
        return linear_distance(weight, np.array([0.0, own["intercept"][0]]), x, label).distance
    import torch

    from fairness_audits.attacks.minimum_norm import fmn
    from fairness_audits.models import mlp

    low, high = x.min(axis=0), x.max(axis=0)
    scale = MARGIN * float((high - low).max()) or 1.0
    middle = torch.from_numpy((low + high) / 2)
    network = {name: torch.from_numpy(values[None].astype(float)) for name, values in own.items()}

    def logits(images: Tensor) -> Tensor:
        moved = (images[:, 0, 0].double() - 0.5) * scale + middle
        return mlp.log_probabilities(network, moved[None])[0].float()

    images = ((x - (low + high) / 2) / scale + 0.5)[:, None, None]
    how = Execution(BATCH, device="cpu", keep_adversarial=False)
    steps = {"steps": config.fmn_steps, "start_steps": config.fmn_start_steps}
    return scale * fmn(logits, images, label, **steps, execution=how).distance
