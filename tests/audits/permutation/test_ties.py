"""Statistics that are equal but for rounding tie, and the unit of weights does not matter."""

from typing import Any

import numpy as np
import pytest

import fairness_audits as fa
from fairness_audits.audits.permutation.paired_samples import auc_change

BLOCK = np.array([1, 1, 1, 1, 1, 1, 1, 9]) / 10


def audited(**call: Any) -> dict[str, Any]:
    found: dict[str, Any] = fa.permutation_test(**{"draws": 999, **call}).facts["results"][0]
    return found


def average(y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    return float((weight * score).sum() / weight.sum())


@pytest.mark.parametrize("alternative", ["two-sided", "equal-tailed"])
@pytest.mark.parametrize("method", ["studentized", "unstudentized"])
@pytest.mark.parametrize("shift", [0.0, 1e9, 1e-9])
@pytest.mark.parametrize("times", [2, 3])
def test_equal_means_have_no_evidence_against_them(alternative: str, method: str, shift: float, times: int) -> None:
    """The second group has each value of the first several times: the means are equal, their sums are rounded."""
    score, group = np.tile(BLOCK, times) + shift, np.where(np.arange(8 * times) < 8, "a", "b")
    call = {"score": score, "group": group, "metric": "mean_score", "alternative": alternative, "method": method}
    found = audited(**call)
    assert found["difference"] == 0
    if method == "studentized" and times == 2:
        assert found["p_value"] == 1
    if alternative == "two-sided":
        assert found["p_value"] == 1


@pytest.mark.parametrize(
    "call",
    [
        {"metric": "mean_score"},
        {"metric": "mean_score", "method": "unstudentized"},
        {"metric": "mean_score", "weight": np.arange(1, 61) / 7},
        {"metric": "mean_score", "cluster": np.arange(60) // 2},
        {"metric": "absolute_error", "y": np.ones(60, dtype=int)},
        {"metric": "log_loss", "y": np.ones(60, dtype=int)},
        {"metric": "auc", "y": np.arange(60) % 2},
        {"metric": "auc", "y": np.arange(60) % 2, "weight": np.arange(1, 61) / 7},
        {"metric": average, "y": np.ones(60, dtype=int)},
        {"metric": "selection_rate", "threshold": 0.05, "weight": np.arange(1, 61) / 7},
    ],
)
def test_where_every_assignment_ties_p_is_1(call: dict[str, Any]) -> None:
    """All scores are 0.1, whose sums and weighted means are rounded."""
    found = audited(score=np.full(60, 0.1), group=np.where(np.arange(60) < 22, "a", "b"), **{"draws": 99, **call})
    assert found["undefined"] or (found["p_value"] == 1 and found["difference"] == 0)
    assert found["undefined"] is None or call["metric"] == "auc"


@pytest.mark.parametrize("method", ["studentized", "unstudentized"])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_no_correlation_but_for_rounding_has_p_1(method: str, shift: float) -> None:
    x, y = np.tile([0.1, 0.2, 0.3], 7), np.tile([0.1, 0.7, 0.1], 7)
    found = audited(score=x + shift, attribute=y, metric="correlation", method=method, draws=399)
    assert found["p_value"] == 1


def test_products_that_vanish_but_for_rounding_are_no_correlation() -> None:
    """Each row has its mean in one of the two columns."""
    x, y = np.tile([0.1, 0.2, 0.3, 0.2, 0.2], 4), np.tile([0.7, 0.6, 0.7, 0.8, 0.7], 4)
    assert audited(score=x, attribute=y, metric="correlation")["p_value"] == 1


def test_an_auc_whose_placements_move_alike_has_no_variance() -> None:
    """Three negatives, the lowest of which rises above all positives: every placement falls by a third."""
    label = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    first = np.array([0, 1, 2, 3, 4, 5, 6, 7.0])
    second = np.array([9, 10, 11, 3, 4, 5, 6, 7.0])
    found = auc_change(label, first, second)
    assert (found.first, found.second, found.variance) == (1.0, 0.0, 0.0)
    same = auc_change(label, first, first / 10)
    assert (same.variance, same.p_value) == (0.0, 1.0)


@pytest.mark.parametrize("metric", ["selection_rate", "mean_score", "auc", "f1"])
@pytest.mark.parametrize("unit", [1e-300, 1e300, 3e-7])
def test_the_unit_of_weights_does_not_matter(metric: str, unit: float) -> None:
    rng, n = np.random.default_rng(1), 400
    call: dict[str, Any] = {"y": rng.integers(0, 2, n), "score": rng.random(n), "group": rng.choice(["a", "b"], n)}
    call |= {"metric": metric, "draws": 199} | ({} if metric in ("mean_score", "auc") else {"threshold": 0.5})
    weight = rng.integers(1, 5, n).astype(float)
    one, other = audited(weight=weight, **call), audited(weight=weight * unit, **call)
    assert other["p_value"] == one["p_value"]
    for key in ("difference", "statistic", "interval"):
        assert other[key] == pytest.approx(one[key], rel=1e-9)
    assert [g["estimate"] for g in other["groups"]] == pytest.approx([g["estimate"] for g in one["groups"]])
