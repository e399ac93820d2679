"""The limits beyond which a loss-ratio audit decides nothing, and what a reader of its verdict must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.cli.audit.loss_ratio.equated import Equated
from pipeline.cli.audit.loss_ratio.evidence import Evidence, Settings
from pipeline.cli.columns import Rows
from pipeline.cli.probe import OUTPUT_CAVEATS, Scores, output_conditions
from pipeline.cli.units import Units
from pipeline.types import Array

FEW_ROWS = 100
"""Below this many rows the normal approximation of the tests is doubtful."""
WEAK_SEPARATION = 0.6
"""An attribute told apart with a smaller area under the ROC curve has a direction made mostly of chance."""
HEAVY_SHARE = 0.1
"""One row with more than this share of the sum of all ratios dominates the mean."""
GROWTH = 0.01
"""A mean ratio that grows by a larger share over the second half of the steps has not settled."""
LEAST_ROWS = 30
"""Of fewer rows the normal approximation decides nothing."""
MOST_LEFT_OUT = 10
"""Per cent of the rows; of more, those that have a ratio do not speak for the rest."""
MOST_SATURATED = 10
"""Per cent of the rows; where more are certain, the attack has no gradient to follow."""
TRIVIAL = 0.5
"""The balanced accuracy of a model that always says the same."""
LIMITS = f"""
rows >= {LEAST_ROWS}: Only {{value}} rows have a finite ratio, and the test needs {{limit:.0f}}.
left_out <= {MOST_LEFT_OUT}: {{value:.0f}} % of the audited rows have no finite ratio, more than {{limit:.0f}} %: the
  test is of the others alone.
saturated <= {MOST_SATURATED}: The model's probability is exactly 0 or 1 in {{value:.0f}} % of the rows, more than
  {{limit:.0f}} %: the attack has no gradient to follow there.
balanced_accuracy > {TRIVIAL}: The model's balanced accuracy is {{value:.3f}}, no better than the {{limit:g}} of a model
  that always says the same: check the order of --features and which class is --positive (1 stands for {{positive!r}}).
"""
CAVEATS = f"""
held_out_rows: The test is valid only if the audited rows played no part in making the model.
metric_of_audited_rows: The fair metric was learned on the audited rows themselves, as in the published study;
  --metric-data learns it on others.
not_rejected: Not rejecting is no proof of fairness: the attack finds comparable individuals that are treated worse, not
  those that are treated worst.
still_growing: S_n was still growing at the last step: more --steps look further.
columns_of_two_values: Comparable individuals are points in the space of features: columns of two values move
  continuously too, so such a point need not describe a real person.
{OUTPUT_CAVEATS.strip()}
weak_direction: The features hardly tell the groups of {{name!r}} apart (AUC {{auc:.2f}}): its direction is mostly
  chance.
all_alike: The sensitive directions span all features: the metric treats everyone as alike.
rows_left_out: {{count}} rows have no finite ratio and are left out of the statistics.
clipped_ratios: {{count}} ratios were held at the bounds of floating-point numbers and are kept.
few_rows: The tests rest on a normal approximation, which {{n}} rows may not justify.
one_heavy_row: One row makes up {{share:.0f}} % of the sum of all ratios: the mean and its interval depend on it, and
  the normal approximation is doubtful.
"""


@dataclass(frozen=True)
class Result:
    """What was measured, of which ``rows`` with which numbers in the file (n,), model, metric and settings."""

    evidence: Evidence
    rows: Rows
    row_numbers: Array
    units: Units
    scores: Scores
    equated: Equated
    settings: Settings


def quantities(result: Result, found: Mapping[str, Any]) -> dict[str, Any]:
    """What the LIMITS are of."""
    test, audited = found["loss_ratio"], len(result.row_numbers)
    return {
        "rows": test["n"],
        "left_out": 100 * test["non_finite"] / audited,
        "saturated": 100 * result.scores.saturated / audited,
        "balanced_accuracy": found["balanced_accuracy"],
        "positive": result.rows.label_levels[1],
    }


def conditions(result: Result, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What holds of this audit, for CAVEATS."""
    found, evidence = facts["results"], result.evidence
    test, data, metric = found["loss_ratio"], facts["data"], facts["fair_metric"]
    halfway = int(np.searchsorted(evidence.steps, evidence.steps[-1] / 2))
    mean = evidence.course.mean
    growing = mean[-1] > (1 + GROWTH) * mean[min(halfway, len(mean) - 1)]
    share = float(np.nanmax(evidence.ratio / np.nansum(evidence.ratio)))
    return {
        "held_out_rows": True,
        "metric_of_audited_rows": metric["path"] == data["path"],
        "not_rejected": not test["rejected"],
        "still_growing": not test["rejected"] and growing,
        "columns_of_two_values": any(len(np.unique(column)) == 2 for column in result.rows.features.T),
        **output_conditions(result.scores, "row"),
        "weak_direction": [
            {"name": name, "auc": auc} for name, auc in metric["separation"].items() if auc < WEAK_SEPARATION
        ],
        "all_alike": metric["dimension"] == len(metric["shares"]),
        "rows_left_out": test["non_finite"] and {"count": test["non_finite"]},
        "clipped_ratios": test["clipped"] and {"count": test["clipped"]},
        "few_rows": test["n"] < FEW_ROWS and {"n": test["n"]},
        "one_heavy_row": test["n"] >= FEW_ROWS and share > HEAVY_SHARE and {"share": 100 * share},
    }
