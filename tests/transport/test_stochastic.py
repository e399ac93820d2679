"""Learned dual potentials make a plan, and the map of it has the barycentre that its cost asks for."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline.transport import stochastic
from pipeline.transport.cost import cost_matrix
from pipeline.transport.stochastic_training import pair_costs
from pipeline.types import Array, TransportMap

CONFIG = stochastic.Config(
    cost="squared_l2",
    regularizer="quadratic",
    regularization=0.05,
    hidden_units=50,
    batch_size=100,
    steps=200,
    dual_rate=5e-3,
    map_rate=2e-3,
)


def fitted(x: Array, y: Array, config: stochastic.Config = CONFIG) -> TransportMap:
    return stochastic.fit([x], [y], config, [np.random.default_rng(0)])


@pytest.fixture(scope="module")
def shifted() -> tuple[Array, TransportMap]:
    """A law mapped to itself, 5 farther along the first feature and half as wide in the second."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 2))
    return x, fitted(x, rng.normal(size=(1000, 2)) * [1, 0.5] + [5, 0], replace(CONFIG, regularization=0.01, steps=300))


def test_a_known_map_is_found_up_to_the_regularisations_shrinkage(shifted: tuple[Array, TransportMap]) -> None:
    x, maps = shifted
    moved = stochastic.images(maps.parameters, [x])[0]
    np.testing.assert_allclose(moved.mean(axis=0), [5, 0], atol=0.15)
    slope = [np.polyfit(x[:, j], moved[:, j], 1)[0] for j in range(2)]
    assert 0.7 < slope[0] < 1.05
    assert 0.25 < slope[1] < 0.55


def test_the_potentials_make_a_plan(shifted: tuple[Array, TransportMap]) -> None:
    _, maps = shifted
    # At the start, with no plan, it is 1.
    assert maps.facts["marginal_error"][0] < 0.4
    assert maps.facts["diverged"][0] == 0
    curve = maps.history["dual_value"][0]
    assert curve[0] == pytest.approx(0, abs=1e-3)
    # In units of the mean cost, 25 + 1 + 1 + 1.25: the least cost is 25 + .25, any plan's regularisation is at least
    # epsilon, and independent points have the cost 1 and just that regularisation.
    assert 25.25 / 28.25 + 0.01 < curve[-10:].mean() < 1 + 0.01 - 0.02


@pytest.mark.parametrize("regularizer", stochastic.REGULARIZERS)
@pytest.mark.parametrize(("cost", "centre"), [("squared_l2", 1.0), ("l1", np.log(2))])
def test_a_plan_without_preference_sends_everyone_to_the_costs_centre(
    regularizer: str, cost: str, centre: float
) -> None:
    """Of an exponential law: the mean for squares, the median for absolute differences."""
    rng = np.random.default_rng(2)
    config = replace(CONFIG, cost=cost, regularizer=regularizer, regularization=100.0, batch_size=200)
    x = rng.normal(size=(500, 1))
    moved = stochastic.images(fitted(x, rng.exponential(size=(3000, 1)), config).parameters, [x])[0]
    np.testing.assert_allclose(moved, centre, atol=0.2)
    assert abs(moved.mean() - centre) < 0.1


def test_a_trials_map_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(3)
    source, target = ([rng.normal(size=(n, 2)) for n in sizes] for sizes in ((60, 90), (70, 40)))
    config = replace(CONFIG, cost="squared_l1", regularizer="entropic", steps=20)
    rngs = [np.random.default_rng(t) for t in range(2)]
    maps = stochastic.fit(source, target, config, rngs)
    alone = stochastic.fit(source[1:], target[1:], config, [np.random.default_rng(1)])
    for name, array in alone.parameters.items():
        np.testing.assert_allclose(maps.parameters[name][1], array[0], atol=1e-5, err_msg=name)
    np.testing.assert_allclose(maps.facts["marginal_error"][1], alone.facts["marginal_error"][0], rtol=1e-3)
    moved = stochastic.images(maps.parameters, [source[0][:3], source[1]])
    assert [rows.shape for rows in moved] == [(3, 2), (90, 2)]


@pytest.mark.parametrize("cost", ["squared_l1", "l1", "squared_l2"])
def test_costs_of_tensors_are_those_of_arrays(cost: str) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 5, 3))
    found = pair_costs(torch.from_numpy(x), torch.from_numpy(y), cost)
    for t in range(2):
        np.testing.assert_allclose(found[t].numpy(), cost_matrix(x[t], y[t], cost))


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 1
    config = replace(CONFIG, steps=10)
    moved = stochastic.images(fitted(x, y, config).parameters, [x])[0]
    larger = stochastic.images(fitted(100 * x + 7, 100 * y + 7, config).parameters, [100 * x + 7])[0]
    np.testing.assert_allclose(larger, 100 * moved + 7, atol=0.02)


def test_groups_without_a_cost_between_them_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"positive, finite mean cost between them, found \[0\.0\]"):
        fitted(np.ones((5, 2)), np.ones((5, 2)))


def test_pot_without_torch_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.transport.pot import ot

    monkeypatch.setattr(ot.backend, "_BACKEND_IMPLEMENTATIONS", [ot.backend.NumpyBackend])
    with pytest.raises(ValueError, match="import torch first, or set the environment variable POT_BACKEND"):
        fitted(np.zeros((5, 2)), np.ones((5, 2)))
