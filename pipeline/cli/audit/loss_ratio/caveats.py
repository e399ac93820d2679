"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.cli.audit.loss_ratio.result import Result
from pipeline.cli.document import Caveat
from pipeline.cli.probe import output_caveats

FEW_ROWS = 100
"""Below this many rows the normal approximation of the tests is doubtful."""
WEAK_SEPARATION = 0.6
"""An attribute told apart with a smaller area under the ROC curve has a direction made mostly of chance."""
HEAVY_SHARE = 0.1
"""One row with more than this share of the sum of all ratios dominates the mean."""
GROWTH = 0.01
"""A mean ratio that grows by a larger share over the second half of the steps has not settled."""


def caveats(result: Result) -> Iterator[Caveat]:
    """The conditions that hold of this audit, the general ones first."""
    yield Caveat("held_out_rows", "The test is valid only if the audited rows played no part in making the model.")
    if result.same_rows:
        yield Caveat(
            "metric_of_audited_rows",
            "The fair metric was learned on the audited rows themselves, as in the published study; --metric-data "
            "learns it on others.",
        )
    if not result.evidence.course.rejected[-1]:
        yield Caveat(
            "not_rejected",
            "Not rejecting is no proof of fairness: the attack finds comparable individuals that are treated worse, "
            "not those that are treated worst.",
        )
        if _still_growing(result):
            yield Caveat("still_growing", "S_n was still growing at the last step: more --steps look further.")
    if any(len(np.unique(column)) == 2 for column in result.rows.features.T):
        yield Caveat(
            "columns_of_two_values",
            "Comparable individuals are points in the space of features: columns of two values move continuously too, "
            "so such a point need not describe a real person.",
        )
    yield from _of_the_model(result)
    yield from _of_the_metric(result)
    yield from _of_the_ratios(result)


def _still_growing(result: Result) -> bool:
    """Whether the mean ratio rose by more than GROWTH over the second half of the steps."""
    steps, mean = result.evidence.steps, result.evidence.course.mean
    halfway = int(np.searchsorted(steps, steps[-1] / 2))
    return bool(mean[-1] > (1 + GROWTH) * mean[min(halfway, len(mean) - 1)])


def _of_the_model(result: Result) -> Iterator[Caveat]:
    scores, rows = result.scores, result.rows
    right = (scores.probability > 0.5) == (rows.label == 1)
    if np.mean([right[rows.label == c].mean() for c in np.unique(rows.label)]) < 0.5:
        yield Caveat(
            "worse_than_chance",
            "The model predicts the label worse than chance: check the order of --features and which class is "
            f"--positive (1 stands for {rows.label_levels[1]!r}).",
        )
    yield from output_caveats(scores, "row")


def _of_the_metric(result: Result) -> Iterator[Caveat]:
    for name, auc in result.equated.separation.items():
        if auc < WEAK_SEPARATION:
            yield Caveat(
                "weak_direction",
                f"The features hardly tell the groups of {name!r} apart (AUC {auc:.2f}): its direction is mostly "
                "chance.",
            )
    basis = result.equated.metric.basis
    if basis is not None and basis.shape[0] == basis.shape[1]:
        yield Caveat("all_alike", "The sensitive directions span all features: the metric treats everyone as alike.")


def _of_the_ratios(result: Result) -> Iterator[Caveat]:
    test, ratio = result.evidence.course, result.evidence.ratio
    n, non_finite, clipped = int(test.n[-1]), int(test.non_finite[-1]), int(test.clipped[-1])
    if non_finite:
        yield Caveat("rows_left_out", f"{non_finite} rows have no finite ratio and are left out of the statistics.")
    if clipped:
        yield Caveat(
            "clipped_ratios", f"{clipped} ratios were held at the bounds of floating-point numbers and are kept."
        )
    if n < FEW_ROWS:
        yield Caveat("few_rows", f"The tests rest on a normal approximation, which {n} rows may not justify.")
    share = float(np.nanmax(ratio / np.nansum(ratio)))
    if n >= FEW_ROWS and share > HEAVY_SHARE:
        yield Caveat(
            "one_heavy_row",
            f"One row makes up {100 * share:.0f} % of the sum of all ratios: the mean and its interval depend on it, "
            "and the normal approximation is doubtful.",
        )
