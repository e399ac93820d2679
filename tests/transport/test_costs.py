"""Costs by products of matrices are the costs."""

import numpy as np
import pytest

from fairness_audits.transport import cost as costs
from fairness_audits.transport.cost import COSTS, cost_matrix, tie_broken_costs


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("tie_break", [0.0, 0.3])
@pytest.mark.parametrize("block", [7 * 30, costs.BLOCK])
def test_counting_indicators_gives_the_cost_and_nothing_between_equal_rows(
    cost: str, tie_break: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "BLOCK", block)
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.normal(size=(60, 2)), 0.5 * rng.integers(0, 2, (60, 9)), rng.integers(0, 2, (60, 4))])
    x, y = rows[:40], rows[30:]
    expected = cost_matrix(x, y, cost) + tie_break * cost_matrix(x, y, "squared_l2")
    found = tie_broken_costs(x, y, cost, tie_break)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert (np.diag(found[30:]) == 0).all()
