"""The result as a JSON document; the verdict in the terminal is a reading of it. Schema: ``docs/auditing.md``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.audits.ratio_tests import RatioTest
from pipeline.cli.audit.loss_ratio.equated import Equated
from pipeline.cli.audit.loss_ratio.evidence import Evidence
from pipeline.cli.columns import Rows
from pipeline.cli.json_numbers import finite
from pipeline.types import Array

SCHEMA = 1
"""Version of the document's layout: raised when a key changes its meaning or goes; new keys do not raise it."""


def outcomes(evidence: Evidence, rows: Rows, probability: Array) -> dict[str, Any]:
    """The verdict, both tests at the last step, and how well the model predicts the audited rows."""
    right = (probability > 0.5) == (rows.label == 1)
    by_class = [float(right[rows.label == c].mean()) if (rows.label == c).any() else math.nan for c in (0, 1)]
    loss_ratio = outcome(evidence.course, -1)
    return {
        "verdict": {
            "rejected": loss_ratio["rejected"],
            "sentence": sentence(loss_ratio, evidence.course.delta, evidence.course.alpha),
        },
        "results": {
            "loss_ratio": loss_ratio,
            "error_rate_ratio": outcome(evidence.error_course, -1),
            "accuracy": float(right.mean()),
            "balanced_accuracy": finite(sum(by_class) / 2),
        },
    }


def course(evidence: Evidence) -> dict[str, Any]:
    """The statistics on the way, one entry for each recorded number of steps."""
    tests = {"loss_ratio": evidence.course, "error_rate_ratio": evidence.error_course}
    return {
        "steps": list(evidence.steps),
        **{
            name: {"S_n": series(test.mean), "T_n": series(test.statistic), "ci_high": series(test.ci_high)}
            for name, test in tests.items()
        },
    }


def outcome(test: RatioTest, index: int) -> dict[str, Any]:
    """One entry of a test's arrays under the names of the paper; NaN (no ratio exists) is null."""
    return {
        "S_n": finite(test.mean[index]),
        "V_n": finite(test.std[index]),
        "T_n": finite(test.statistic[index]),
        "ci_low": finite(test.ci_low[index]),
        "ci_high": finite(test.ci_high[index]),
        "p_value": finite(test.p_value[index]),
        "rejected": bool(test.rejected[index]),
        "n": int(test.n[index]),
        "non_finite": int(test.non_finite[index]),
        "clipped": int(test.clipped[index]),
        "below_one": int(test.below_one[index]),
    }


def fair_metric(equated: Equated, names: tuple[str, ...]) -> dict[str, Any]:
    """The sensitive directions, and the share of each feature's axis that lies in the sensitive subspace.

    The shares are the diagonal of the projector U U': 1 for a feature that the metric ignores altogether, 0 for one
    that it keeps in full; they sum to the subspace's dimension.
    """
    basis = equated.metric.basis
    assert basis is not None
    return {
        "dimension": int(basis.shape[1]),
        "directions": {
            name: dict(zip(names, direction.tolist(), strict=True))
            for name, direction in zip(equated.names, equated.loadings, strict=True)
        },
        "shares": dict(zip(names, (basis**2).sum(axis=1).tolist(), strict=True)),
        "separation": dict(equated.separation),
    }


def series(values: Array) -> list[float | None]:
    """An array as a list for JSON."""
    return [finite(value) for value in np.asarray(values).tolist()]


def sentence(test: Mapping[str, Any], delta: float, alpha: float) -> str:
    """What the loss-ratio test says, in one plain sentence (two where the rows do not decide)."""
    sure = f"{100 * (1 - alpha):g} %"
    if test["rejected"]:
        return (
            f"The audit rejects individual fairness: with {sure} confidence, the loss on a comparable individual is on "
            f"average at least {factor(test['T_n'])} times the loss on the individual itself; {delta:g} times is "
            "tolerated."
        )
    found = (
        "The audit does not reject individual fairness: the loss on the comparable individual that it found is on "
        f"average {factor(test['S_n'])} times the loss on the individual itself ({sure} interval "
        f"{factor(test['ci_low'])} to {factor(test['ci_high'])})"
    )
    if test["ci_high"] <= delta:
        return f"{found}; {delta:g} times is tolerated."
    return f"{found}. The tolerated {delta:g} lies inside the interval: these rows do not decide; more of them would."


def factor(value: float | None) -> str:
    """A ratio with three significant digits, or as a power of ten where it is huge."""
    if value is None:
        return "undefined"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1e5 else f"{value:.2e}"
