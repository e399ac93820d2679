"""The entropic map is unbiased and stable, has the target's marginals, and is a function of the row alone."""

import numpy as np
import pytest
from scipy.stats import norm

from pipeline.transport import entropic, exact
from pipeline.transport.cost import cost_matrix
from pipeline.transport.quality import ks
from pipeline.types import Array

CONFIG = entropic.Config(cost="squared_l1", tie_break=1.0, regularization=0.2, centres=300, quantiles=100)


def mapped(x: Array, y: Array, rows: Array, config: entropic.Config = CONFIG, seed: int = 0) -> Array:
    maps = entropic.fit([x], [y], config, [np.random.default_rng(seed)])
    return entropic.images(maps.parameters, [rows])[0]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_potentials_give_a_plan_with_both_marginals(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    costs = cost_matrix(rng.standard_t(2.2, size=(70, 3)), rng.normal(size=(50, 3)) + 4)
    f, g, facts = entropic.sinkhorn(costs, epsilon)
    density = np.exp((f[:, None] + g - costs) / epsilon)
    np.testing.assert_allclose(density.mean(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(density.mean(axis=0), 1, atol=1e-4)
    assert facts["marginal_error"] < 1e-6


def test_two_points_have_the_potentials_of_the_closed_form() -> None:
    """With costs c on the diagonal's complement alone, each point keeps the share 1 / (1 + exp(-c / epsilon))."""
    f, g, _ = entropic.sinkhorn(np.array([[0.0, 3.0], [3.0, 0.0]]), 2.0)
    assert np.exp((f[0] + g[0]) / 2.0) / 2 == pytest.approx(1 / (1 + np.exp(-1.5)), rel=1e-5)


def test_images_have_the_targets_marginals() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2000, 2)), np.column_stack([rng.exponential(size=2000), rng.beta(0.5, 0.5, size=2000)])
    assert ks(y, mapped(x, y, x)).max() < 0.02
    new = rng.normal(size=(5000, 2))
    assert ks(y, mapped(x, y, new)).max() < 0.05


def test_one_feature_goes_by_its_quantiles() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4000, 1)), rng.exponential(size=(4000, 1))
    at = np.array([[-1.5], [0.0], [1.2]])
    np.testing.assert_allclose(mapped(x, y, at), -np.log1p(-norm.cdf(at)), atol=0.08)


def test_a_law_mapped_to_itself_stays_where_the_exact_map_regresses_and_shakes() -> None:
    """Section 3.2: at the point of ones, ten features; 8 draws. The exact map's mean there is .76."""
    ours, exacts = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(200, 10)), rng.normal(size=(200, 10))
        x[0] = 1
        ours.append(mapped(x, y, x[:1])[0])
        maps = exact.fit([x], [y], exact.Config(cost="squared_l1", image="expectation"), [rng])
        exacts.append(exact.images(maps.parameters, [x[:1]])[0][0])
    assert np.mean(exacts) < 0.8
    assert np.mean(ours) == pytest.approx(1, abs=0.06)
    assert np.var(ours, axis=0).mean() < np.var(exacts, axis=0).mean() / 5


def test_a_row_of_its_own_is_no_counterpart_of_itself() -> None:
    """A training row and a new one beside it go the same way: only the other rows count for both."""
    equal = np.array([[True, False, False], [True, True, False], [False, False, False]])
    kept: Array = np.exp(entropic._without_itself(equal))
    np.testing.assert_allclose(kept, np.array([[0, 1, 1], [0.5, 0.5, 1], [1, 1, 1]]))


def test_images_are_the_same_in_blocks_in_any_order_and_of_equal_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 1
    parameters = entropic.fit([x], [y], CONFIG, [rng]).parameters
    order = rng.integers(60, size=150)
    (whole,), (several,) = (entropic.images(parameters, [rows]) for rows in (x, x[order]))
    np.testing.assert_allclose(several, whole[order], rtol=1e-12, atol=1e-12)
    assert len(np.unique(several, axis=0)) == len(np.unique(order))
    monkeypatch.setattr(entropic, "BLOCK", 100)
    np.testing.assert_allclose(entropic.images(parameters, [x])[0], whole, rtol=1e-12, atol=1e-12)


def test_the_tie_break_makes_a_map_of_many_plans() -> None:
    """All moves in one quadrant: the squared L1 cost is (sum of moves)^2 and leaves open who goes where in the other
    direction. Without the tie-break, what x says of x_1 - x_2 is lost in the image before the marginals are mended."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(size=(300, 2)), rng.uniform(size=(300, 2)) + 3
    kept = []
    for tie_break in (0.0, 1.0):
        config = entropic.Config("squared_l1", tie_break, regularization=0.01, centres=300, quantiles=100)
        maps = entropic.fit([x], [y], config, [np.random.default_rng(0)])
        one = {name: array[0] for name, array in maps.parameters.items()}
        moved = entropic._debiased(one, x)
        kept.append(np.polyfit(x[:, 0] - x[:, 1], moved[:, 0] - moved[:, 1], 1)[0])
    assert kept[0] < 0.7
    assert kept[1] == pytest.approx(1, abs=0.15)


def test_equal_rows_of_a_discrete_feature_have_equal_images_between_its_values() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.geometric(0.5, size=(500, 1)) - 1.0, rng.geometric(0.25, size=(500, 1)) - 1.0
    moved = mapped(x, y, x)
    for value in np.unique(x):
        assert np.ptp(moved[x == value]) == pytest.approx(0, abs=1e-6)
    order = np.argsort(x[:, 0])
    assert (np.diff(moved[order, 0]) >= -1e-6).all()
    assert moved.mean() == pytest.approx(y.mean(), abs=0.1)


def test_groups_without_variety_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"within each group all are equal: map other columns"):
        mapped(np.zeros((5, 2)), np.ones((4, 2)), np.zeros((1, 2)))
