"""What a reader of the verdict must know beside it."""

from __future__ import annotations

import numpy as np

from pipeline.cli.audit.loss_ratio.equated import Equated
from pipeline.cli.audit.loss_ratio.evidence import Evidence
from pipeline.cli.columns import Rows
from pipeline.cli.probe import Scores

FEW_ROWS = 100
"""Below this many rows the normal approximation of the tests is doubtful."""
WEAK_SEPARATION = 0.6
"""An attribute told apart with a smaller area under the ROC curve has a direction made mostly of chance."""
HEAVY_SHARE = 0.1
"""One row with more than this share of the sum of all ratios dominates the mean."""
GROWTH = 0.01
"""A mean ratio that grows by a larger share over the second half of the steps has not settled."""


def caveats(evidence: Evidence, rows: Rows, scores: Scores, equated: Equated, same_rows: bool) -> list[str]:
    """Sentences for this audit, the general ones first. ``same_rows``: the metric was learned on the audited rows."""
    test = evidence.course
    said = ["The test is valid only if the audited rows played no part in making the model."]
    if same_rows:
        said.append(
            "The fair metric was learned on the audited rows themselves, as in the published study; --metric-data "
            "learns it on others."
        )
    if not test.rejected[-1]:
        said.append(
            "Not rejecting is no proof of fairness: the attack finds comparable individuals that are treated worse, "
            "not those that are treated worst."
        )
        if _still_growing(evidence):
            said.append("S_n was still growing at the last step: more --steps look further.")
    if any(len(np.unique(column)) == 2 for column in rows.features.T):
        said.append(
            "Comparable individuals are points in the space of features: columns of two values move continuously too, "
            "so a point may describe nobody."
        )
    return said + _of_the_model(rows, scores) + _of_the_metric(equated) + _of_the_ratios(evidence)


def _still_growing(evidence: Evidence) -> bool:
    """Whether the mean ratio rose by more than GROWTH over the second half of the steps."""
    halfway = int(np.searchsorted(evidence.steps, evidence.steps[-1] / 2))
    mean = evidence.course.mean
    return bool(mean[-1] > (1 + GROWTH) * mean[min(halfway, len(mean) - 1)])


def _of_the_model(rows: Rows, scores: Scores) -> list[str]:
    said = []
    if scores.detected and scores.kind == "probability" and scores.columns == 1:
        said.append(
            "All outputs lie between 0 and 1 and were read as probabilities; if they are logits, say --output-kind "
            "logits."
        )
    right = (scores.probability > 0.5) == (rows.label == 1)
    if np.mean([right[rows.label == c].mean() for c in np.unique(rows.label)]) < 0.5:
        said.append(
            "The model predicts the label worse than chance: check the order of --features and which class is "
            f"--positive (1 stands for {rows.label_levels[1]!r})."
        )
    if scores.saturated:
        said.append(
            f"The model's probability is exactly 0 or 1 in {scores.saturated} rows, where a loss is infinite or has no "
            "gradient: audit its logits, the values before the last sigmoid or softmax, if you can."
        )
    return said


def _of_the_metric(equated: Equated) -> list[str]:
    said = [
        f"The features hardly tell the groups of {name!r} apart (AUC {auc:.2f}): its direction is mostly chance."
        for name, auc in equated.separation.items()
        if auc < WEAK_SEPARATION
    ]
    basis = equated.metric.basis
    if basis is not None and basis.shape[0] == basis.shape[1]:
        said.append("The sensitive directions span all features: the metric treats everyone as alike.")
    return said


def _of_the_ratios(evidence: Evidence) -> list[str]:
    test = evidence.course
    n, non_finite, clipped = int(test.n[-1]), int(test.non_finite[-1]), int(test.clipped[-1])
    said = []
    if non_finite:
        said.append(f"{non_finite} rows have no finite ratio and are left out of the statistics.")
    if clipped:
        said.append(f"{clipped} ratios were held at the bounds of floating-point numbers and are kept.")
    if n < FEW_ROWS:
        said.append(f"The tests rest on a normal approximation, which {n} rows may not justify.")
    share = float(np.nanmax(evidence.ratio / np.nansum(evidence.ratio)))
    if n >= FEW_ROWS and share > HEAVY_SHARE:
        said.append(
            f"One row makes up {100 * share:.0f} % of the sum of all ratios: the mean and its interval hang on it, and "
            "the normal approximation is doubtful."
        )
    return said
