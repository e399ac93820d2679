"""Distances of table rows: closed forms, brute force, and a search that is never below them and close to them."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fairness_audits.attacks.changes import Boxes, Changes, Switch, box_distance, boxes_of, plane_distance
from fairness_audits.attacks.decision_search import Bounds, nearest_decisions, nearest_rows
from fairness_audits.attacks.relu_distance import Layers, relu_distance
from fairness_audits.values import Array

TWO = np.array([[0.0], [1.0]])
D = 4
NOTHING = np.zeros((D, 0))
TILTED = np.array([[1.0], [1.0], [0.0], [0.0]]) / np.sqrt(2)
NUMBERS = Changes(np.arange(D), (), NOTHING)
FAIR = Changes(np.arange(D), (), TILTED, 0.25)
SWITCHES = Changes(np.arange(2), [Switch(np.array([j]), TWO) for j in (2, 3)], NOTHING)


def rows(switches: bool = False, n: int = 150) -> Array:
    z = np.random.default_rng(0).normal(size=(n, D))
    if switches:
        z[:, 2:] = z[:, 2:] > 0
    return z


def linear(weight: Array, z: Array) -> Array:
    return np.asarray(z @ weight > 0.3).astype(int)


def planes(weight: Array) -> tuple[Array, Array]:
    return np.stack([np.zeros(D), weight]), np.array([0.0, -0.3])


def searched(decide: Callable[[Array], Array], z: Array, changes: Changes) -> Bounds:
    own = decide(z)
    starts = nearest_rows(z, own, z, own, changes)
    return nearest_decisions(lambda x, _: decide(x), z, own, starts, z, changes, np.random.default_rng(1))


def tree(z: Array, depth: int) -> tuple[Callable[[Array], Array], Boxes]:
    """A tree that learned a ball, and its boxes."""
    model = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(z, (z**2).sum(axis=1) > 3)
    nodes = model.tree_
    children = nodes.children_left, nodes.children_right
    boxes = boxes_of(nodes.feature, nodes.threshold, *children, nodes.value[:, 0].argmax(axis=1), D)
    return lambda x: model.predict(x).astype(int), boxes


WEIGHT = np.array([1.0, -2.0, 0.8, 1.7])


def test_the_distance_to_a_plane_is_its_margin_over_its_slope_in_the_metric() -> None:
    z = rows()
    own, margin = linear(WEIGHT, z), np.abs(z @ WEIGHT - 0.3)
    np.testing.assert_allclose(plane_distance(*planes(WEIGHT), z, own, NUMBERS), margin / np.linalg.norm(WEIGHT))
    # With Q = I - (1 - c^2) U U', the slope is the root of w' Q^-1 w = |w|^2 + (1 / c^2 - 1) |U'w|^2.
    slope = np.sqrt(WEIGHT @ WEIGHT + (1 / 0.25**2 - 1) * (TILTED[:, 0] @ WEIGHT) ** 2)
    np.testing.assert_allclose(plane_distance(*planes(WEIGHT), z, own, FAIR), margin / slope)


def test_switches_are_the_best_of_all_sets_of_them() -> None:
    z = rows(switches=True)
    own = linear(WEIGHT, z)
    steep = np.linalg.norm(WEIGHT[:2])
    every = []
    for flips in np.ndindex(2, 2):
        moved = np.concatenate([z[:, :2], np.abs(z[:, 2:] - flips)], axis=1)
        margin = (moved @ WEIGHT - 0.3) * np.where(own == 1, 1, -1)
        every.append(np.sqrt(sum(flips) + np.maximum(margin, 0) ** 2 / steep**2))
    np.testing.assert_allclose(plane_distance(*planes(WEIGHT), z, own, SWITCHES), np.min(every, axis=0))


def test_of_several_classes_the_nearest_counts_and_a_constant_score_has_no_boundary() -> None:
    z = rows()
    weight = np.stack([np.eye(D)[0], np.eye(D)[1], -np.eye(D)[0]])
    own = (z @ weight.T).argmax(axis=1)
    gaps = np.sort(z @ weight.T, axis=1)
    steep = np.linalg.norm(weight[own][:, None] - weight, axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.nanmin(np.where(steep > 0, (gaps[:, 2:] - z @ weight.T) / steep, np.inf), axis=1)
    np.testing.assert_allclose(plane_distance(weight, np.zeros(3), z, own, NUMBERS), expected)
    assert np.isinf(plane_distance(np.zeros((2, D)), np.array([0.0, 1.0]), z, np.ones(len(z), int), NUMBERS)).all()


@pytest.mark.parametrize("depth", [1, 3, 7])
def test_the_distance_under_a_tree_is_that_of_a_fine_grid(depth: int) -> None:
    # Two numbers and two switches, so that a grid of all decisions is a brute force.
    z = rows(switches=True, n=60)
    decide, boxes = tree(z, depth)
    own = decide(z)
    found = box_distance(boxes, z, own, SWITCHES)
    axis = np.linspace(-4, 4, 321)
    grid = np.stack(np.meshgrid(axis, axis, [0.0, 1.0], [0.0, 1.0]), axis=-1).reshape(-1, D)
    there = decide(grid)
    brute = np.array([np.linalg.norm(grid[there != y] - one, axis=1).min() for one, y in zip(z, own, strict=True)])
    assert (found <= brute + 1e-9).all()
    # A step of the grid along both axes, and the closed side of a box.
    assert (brute - found).max() < 2 * 8 / 320


def test_what_a_box_excludes_is_no_way() -> None:
    z = rows(switches=True)
    decide, boxes = tree(z, 7)
    own = decide(z)
    fewer = box_distance(boxes, z, own, Changes(np.arange(2), (), NOTHING))
    assert (fewer >= box_distance(boxes, z, own, SWITCHES)).all()
    assert np.isinf(box_distance(boxes, z, own, Changes(np.arange(0), (), NOTHING))).all()


@pytest.mark.parametrize(("changes", "slack"), [(NUMBERS, 1.02), (FAIR, 1.02), (SWITCHES, 1.05)])
def test_the_search_is_just_above_the_distance_to_a_plane(changes: Changes, slack: float) -> None:
    z = rows(switches=bool(changes.switches))
    own = linear(WEIGHT, z)
    exact = plane_distance(*planes(WEIGHT), z, own, changes)
    ratio = searched(lambda x: linear(WEIGHT, x), z, changes).length / exact
    assert ratio.min() >= 1 - 1e-9
    assert np.quantile(ratio, 0.9) < slack


@pytest.mark.parametrize(("depth", "slack"), [(3, 1.01), (7, 1.1)])
def test_the_search_is_just_above_the_distance_under_a_tree(depth: int, slack: float) -> None:
    z = rows(switches=True)
    decide, boxes = tree(z, depth)
    exact = box_distance(boxes, z, decide(z), SWITCHES)
    found = searched(decide, z, SWITCHES)
    # scikit-learn's trees compare in float32.
    assert (found.length / exact).min() >= 1 - 1e-3
    assert found.length.mean() < slack * exact.mean()
    assert (decide(found.points) != decide(z)).all()
    np.testing.assert_allclose(found.length, np.linalg.norm(found.points - z, axis=1))


@pytest.mark.parametrize("changes", [NUMBERS, FAIR])
def test_of_a_small_network_no_sampled_region_has_a_nearer_point(changes: Changes) -> None:
    rng, z = np.random.default_rng(2), rows(n=40)
    layers = Layers(rng.normal(size=(8, D)), rng.normal(size=8), rng.normal(size=(3, 8)), np.zeros(3))
    own = layers.scores(z).argmax(axis=1)
    bound = searched(lambda x: layers.scores(x).argmax(axis=1), z, changes)
    found = relu_distance(layers, z, own, bound.length, changes)
    assert found is not None
    assert (found <= bound.length).all()
    assert (bound.length / found).mean() < 1.05
    # Just inside the distance nothing is decided otherwise; just outside the exact distance something is.
    e = rng.normal(size=(len(z), 20000, D))
    e *= found[:, None, None] / np.linalg.norm(e, axis=2, keepdims=True) * (1 - 1e-9)
    assert (layers.scores(z[:, None] + e @ changes.isotropic).argmax(axis=2) == own[:, None]).all()
    near = (layers.scores(z[:, None] + 1.3 * e @ changes.isotropic).argmax(axis=2) != own[:, None]).any(axis=1)
    assert near.all()


def test_the_distance_of_a_network_that_is_linear_is_that_to_its_plane_and_of_a_large_one_is_not_found() -> None:
    z = rows()
    layers = Layers(
        np.stack([WEIGHT, -WEIGHT]), np.zeros(2), np.array([[0.0, 0.0], [1.0, -1.0]]), np.array([0.0, -0.3])
    )
    own = layers.scores(z).argmax(axis=1)
    exact = plane_distance(*planes(WEIGHT), z, own, FAIR)
    found = relu_distance(layers, z, own, 2 * exact, FAIR)
    assert found is not None
    np.testing.assert_allclose(found, exact)
    rng = np.random.default_rng(0)
    large = Layers(rng.normal(size=(200, D)), rng.normal(size=200), rng.normal(size=(2, 200)), np.zeros(2))
    own = large.scores(z).argmax(axis=1)
    assert relu_distance(large, z, own, np.full(len(z), 50.0), NUMBERS) is None


def test_without_another_decision_nothing_is_found() -> None:
    assert np.isinf(searched(lambda x: np.zeros(len(x)), rows(), NUMBERS).length).all()
    only_switches = Changes(np.arange(0), SWITCHES.switches, NOTHING)
    z = rows(switches=True)
    assert np.isin(searched(lambda x: (x[:, 2] > 0.5).astype(int), z, only_switches).length, 1.0).all()


@pytest.mark.parametrize("switches", [False, True])
def test_the_forecast_of_a_search_is_above_its_evaluations_by_less_than_twice(switches: bool) -> None:
    z, changes = rows(switches), SWITCHES if switches else NUMBERS
    own, told, asked = linear(WEIGHT, z), list[int](), list[int]()

    def decide(x: Array, _: Array) -> Array:
        asked.append(len(x))
        return linear(WEIGHT, x)

    def forecast(seconds: float, evaluations: int) -> None:
        assert seconds > 0
        told.append(evaluations)

    starts = nearest_rows(z, own, z, own, changes)
    found = nearest_decisions(decide, z, own, starts, z, changes, np.random.default_rng(1), forecast)
    assert found.evaluations == sum(asked)
    assert len(told) == 1
    assert found.evaluations <= told[0] < 2 * found.evaluations
