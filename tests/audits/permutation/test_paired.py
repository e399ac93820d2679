"""Changes between two versions: McNemar's test, level and power of random signs, what has no pairs."""

from typing import Any

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import mcnemar

from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.paired import change, values
from fairness_audits.errors import InvalidInput
from tests.audits.permutation.builders import near


@pytest.mark.parametrize(("up", "down", "same"), [(12, 3, 85), (0, 9, 20), (0, 0, 30), (40, 41, 0)])
def test_a_rate_has_mcnemars_exact_test(up: int, down: int, same: int) -> None:
    delta = np.r_[np.ones(up), -np.ones(down), np.zeros(same)]
    found = change(delta, rate=True, alpha=0.05, draws=9, rng=np.random.default_rng(0))
    assert found.exact
    assert found.estimate == pytest.approx((up - down) / len(delta))
    assert found.p_value == pytest.approx(mcnemar([[same, up], [down, 0]], exact=True).pvalue)
    assert found.low <= found.estimate <= found.high


def test_random_signs_have_their_level_where_signs_are_random() -> None:
    rng, trials = np.random.default_rng(1), 600
    p = [change(rng.standard_t(3, size=30), rate=False, alpha=0.05, draws=99, rng=rng).p_value for _ in range(trials)]
    assert near(float(np.mean(np.array(p) <= 0.05)), 0.05, trials)
    assert change(rng.normal(size=200) + 0.4, rate=False, alpha=0.05, draws=199, rng=rng).p_value <= 0.01


def test_values_that_are_no_rates_have_no_interval_in_units_of_pairs() -> None:
    call: dict[str, Any] = {"rate": False, "alpha": 0.05, "draws": 99, "rng": np.random.default_rng(0)}
    same = change(np.zeros(30), **call)
    assert (same.p_value, same.exact, np.isnan([same.low, same.high]).all()) == (1.0, False, True)
    # One amount in a hundred changes, by 1.
    one = change(np.r_[1.0, np.zeros(99)], **call)
    assert (one.exact, one.low) == (False, pytest.approx(0.01 - 1.984217 * 0.01))


def test_the_interval_of_a_rate_covers() -> None:
    rng, trials = np.random.default_rng(2), 600
    held = 0
    for _ in range(trials):
        delta = rng.choice([1, 0, -1], 80, p=[0.2, 0.7, 0.1])
        found = change(delta, rate=True, alpha=0.05, draws=9, rng=rng)
        held += found.low <= 0.1 <= found.high
    assert near(held / trials, 0.95, trials)


@pytest.mark.parametrize("name", ["precision", "npv", "f1"])
def test_a_metric_whose_rows_depend_on_the_version_is_refused(name: str) -> None:
    y, d = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])
    with pytest.raises(InvalidInput):
        values(METRICS[name], y, d)  # type: ignore[arg-type]


def test_values_are_those_of_the_metric() -> None:
    y, d = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])
    value, among = values(METRICS["tpr"], y, d)  # type: ignore[arg-type]
    assert value[among].tolist() == [1, 0]
    value, among = values(METRICS["squared_error"], y, np.array([0.5, 1, 0, 0.25]))  # type: ignore[arg-type]
    assert value[among].tolist() == [0.25, 0, 1, 0.0625]
