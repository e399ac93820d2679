"""A map moves one group's rows onto the other's, leaves alone what is constant in both, and runs in two directions."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from fairness_audits.transport import entropic, exact, stochastic, stochastic_config
from fairness_audits.transport.cost import cost_matrix
from fairness_audits.transport.plan import levels_in_shares, whole_counts
from fairness_audits.transport.quality import ks
from fairness_audits.values import Array, Dataset, TransportMap
from pipeline.counterparts import Between, fitted, groups, mapped, parted, transported_columns
from tests.builders import dataset as toy
from tests.errors import invalid

BETWEEN = Between(attribute="sex", source="women", given_label=None, split="train", points=None, both=True)


def dataset(repetitions: int = 2) -> Dataset:
    """Twelve people: height (continuous), a hobby and sex as inputs; men are 10 taller."""
    rng = np.random.default_rng(0)
    sex = np.tile([0, 1, 1], 4)
    order = np.stack([rng.permutation(12) for _ in range(repetitions)])
    return toy(
        np.column_stack([160 + np.arange(12.0) + 10 * sex, rng.integers(0, 2, 12), sex]),
        np.tile([0, 0, 0, 1, 1, 1], 2),
        {"sex": sex, "town": np.array([-1, *sex[1:]])},
        order[:, :9],
        order[:, 9:],
        name="people",
        feature_names=("height", "hobby", "is_man"),
        continuous=("height",),
        levels={"sex": ("women", "men"), "town": ("a", "b")},
    )


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A kind of map that moves every row by the difference of the groups' means."""
    module = ModuleType("fairness_audits.transport.shift")

    def fit(source: Sequence[Array], target: Sequence[Array], config: None, rngs: Sequence[object]) -> TransportMap:
        moves = np.stack([m.mean(axis=0) - n.mean(axis=0) for n, m in zip(source, target, strict=True)])
        assert len(rngs) == len(moves)
        return TransportMap("shift", {"move": moves}, facts={"gap": np.abs(moves).sum(axis=1)})

    def images(parameters: dict[str, Array], rows: Sequence[Array]) -> list[Array]:
        return [x + move for x, move in zip(rows, parameters["move"], strict=True)]

    module.fit, module.images = fit, images  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fairness_audits.transport.shift", module)
    return module


def maps(data: Dataset, module: ModuleType, between: Between = BETWEEN) -> TransportMap:
    return fitted(data, between, module, None, [np.random.default_rng(t) for t in range(data.repetitions)], "shift")


def test_a_column_that_is_constant_in_both_groups_stays_and_takes_the_targets_value(shift: ModuleType) -> None:
    data = dataset()
    assert transported_columns(data, "sex").tolist() == [0, 1]
    for person in mapped(maps(data, shift), data, "all", 2):
        assert (person.features[:, 2] == 0).all()
        assert (person.images[:, 2] == 1).all()
        assert (person.target[:, 2] == 1).all()


@pytest.mark.parametrize(
    "between",
    [BETWEEN, replace(BETWEEN, given_label=1, points=3), Between("town", "a", None, "train", None, False)],
    ids=["all", "the first points of a true label", "people in neither group"],
)
def test_rows_are_the_groups_rows_of_the_split_in_its_units(between: Between) -> None:
    data = dataset()
    found = groups(data, between, 2)
    for t, rows in enumerate(data.train[:2]):
        features = data.batch("train").features[t][:, found.columns]
        inside = np.full(len(rows), True) if between.given_label is None else data.label[rows] == between.given_label
        for code, kept in ((0, found.source[t]), (1, found.target[t])):
            member = inside & (data.protected[between.attribute][rows] == code)
            np.testing.assert_array_equal(kept, features[member][: between.points])


def test_the_mean_of_the_images_is_the_mean_of_the_target_in_both_directions(shift: ModuleType) -> None:
    data = dataset()
    found = maps(data, shift)
    for direction in ("forward", "reverse"):
        for person in mapped(found, data, "train", 2, direction):
            np.testing.assert_allclose(person.images.mean(axis=0), person.target.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.reverse["move"], -found.parameters["move"])
    np.testing.assert_allclose(found.facts["reverse_gap"], found.facts["gap"])


def test_a_map_that_knows_only_the_rows_it_was_fitted_on_is_asked_for_no_others(shift: ModuleType) -> None:
    data = dataset()
    few = replace(maps(data, shift), points=2)
    assert [len(person.rows) > 2 for person in mapped(few, data, "train", 2)] == [True, True]
    shift.FITTED_ROWS_ONLY = True  # type: ignore[attr-defined]
    assert [len(person.rows) for person in mapped(few, data, "train", 2, "reverse")] == [2, 2]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"attribute": "age"}, {"option": "attribute"}),
        ({"source": "Women"}, {"option": "source", "column": "sex"}),
        ({"given_label": 0, "attribute": "town"}, {"option": "source", "column": "town"}),
        ({"given_label": 1}, {"column": "sex"}),
    ],
)
def test_what_the_dataset_does_not_have_is_named(change: dict, fields: dict) -> None:
    data = replace(dataset(), label=np.where(dataset().protected["sex"] == 0, 0, 1))
    with invalid(source="people", **fields):
        groups(data, replace(BETWEEN, **change), 1)


def test_a_direction_that_was_not_fitted_trials_that_are_not_there_and_a_split_without_a_group_are_refused(
    shift: ModuleType,
) -> None:
    data = dataset()
    with invalid(option="both"):
        mapped(maps(data, shift, replace(BETWEEN, both=False)), data, "test", 1, "reverse")
    with invalid(option="trials"):
        mapped(maps(data, shift), data, "test", 3)
    alone = replace(data, test=np.array([[r for r in data.test[t] if data.protected["sex"][r]][:1] for t in range(2)]))
    with invalid(source="people", option="split", column="sex"):
        mapped(maps(data, shift), alone, "test", 2)


def test_a_section_is_parted_into_groups_and_the_modules_own_keys() -> None:
    section = {**vars(BETWEEN), "name": "shift", "kind": "shift", "steps": 7}
    assert parted(section) == (BETWEEN, {"name": "shift", "kind": "shift", "steps": 7})
    del section["points"]
    with invalid(option="points"):
        parted(section)


ENTROPIC = entropic.Config(cost="squared_l1", tie_break=1.0, regularization=0.2, centres=300, quantiles=100)
CONFIGS: dict[str, Any] = {"exact": exact.Config(cost="squared_l1", image="expectation"), "entropic": ENTROPIC}


@pytest.mark.parametrize("kind", CONFIGS)
def test_trials_of_other_sizes_do_not_meet(kind: str) -> None:
    rng, module = np.random.default_rng(4), {"exact": exact, "entropic": entropic}[kind]
    source, target = ([rng.normal(size=(n, 2)) for n in sizes] for sizes in ((40, 90), (70, 30)))
    rngs = [[np.random.default_rng(t) for t in range(2)] for _ in range(2)]
    together = module.images(module.fit(source, target, CONFIGS[kind], rngs[0]).parameters, source)
    for t in range(2):
        alone = module.fit([source[t]], [target[t]], CONFIGS[kind], [rngs[1][t]])
        np.testing.assert_allclose(together[t], module.images(alone.parameters, [source[t]])[0], atol=1e-12)


def test_of_attributes_that_a_classifier_reads_the_mapped_one_changes_and_another_stays(shift: ModuleType) -> None:
    data = dataset()
    found = maps(data, shift)
    (before, _), (after, _) = (mapped(found, one, "train", 2) for one in (data, data.with_inputs(("sex", "town"))))
    np.testing.assert_array_equal(after.images[:, :-2], before.images)
    assert (after.features[:, -2] == 0).all()
    assert (after.images[:, -2] == 1).all()
    np.testing.assert_array_equal(after.images[:, -1], data.protected["town"][after.rows])


# Categories of counterparts keep the target group's shares.


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6).filter(any), st.integers(1, 200))
def test_whole_counts_are_within_one_of_the_shares(shares: list[int], n: int) -> None:
    counts = whole_counts(np.array(shares), n)
    assert counts.sum() == n
    assert (np.abs(counts - n * np.array(shares) / sum(shares)) < 1).all()


def test_no_other_assignment_with_these_counts_has_a_larger_weight() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights, shares = rng.random((6, 3)), rng.dirichlet(np.ones(3))
        found = levels_in_shares(weights, shares)
        counts = whole_counts(shares, 6)
        np.testing.assert_array_equal(np.bincount(found, minlength=3), counts)
        totals = [
            sum(weights[i, level] for i, level in enumerate(one))
            for one in product(range(3), repeat=6)
            if (np.bincount(one, minlength=3) == counts).all()
        ]
        np.testing.assert_allclose(weights[np.arange(6), found].sum(), max(totals))


def test_hard_indicators_with_the_right_shares_stay_and_a_lean_majority_does_not_take_all() -> None:
    level = np.random.default_rng(1).integers(0, 4, 400)
    np.testing.assert_array_equal(levels_in_shares(np.eye(4)[level], np.bincount(level)), level)
    lean = np.tile([0.6, 0.4], (100, 1))
    np.testing.assert_array_equal(np.bincount(levels_in_shares(lean, np.array([0.6, 0.4]))), [60, 40])


# The entropic map is unbiased and stable, has the target's marginals, and is a function of the row alone.


def entropic_images(x: Array, y: Array, rows: Array, config: entropic.Config = ENTROPIC, seed: int = 0) -> Array:
    maps = entropic.fit([x], [y], config, [np.random.default_rng(seed)])
    return entropic.images(maps.parameters, [rows])[0]


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_potentials_give_a_plan_with_both_marginals(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    costs = cost_matrix(rng.standard_t(2.2, size=(70, 3)), rng.normal(size=(50, 3)) + 4)
    f, g, error = entropic.sinkhorn(costs, epsilon)
    density = np.exp((f[:, None] + g - costs) / epsilon)
    np.testing.assert_allclose(density.mean(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(density.mean(axis=0), 1, atol=1e-4)
    assert error < 1e-6


def test_two_points_have_the_potentials_of_the_closed_form() -> None:
    """With costs c on the diagonal's complement alone, each point keeps the share 1 / (1 + exp(-c / epsilon))."""
    f, g, _ = entropic.sinkhorn(np.array([[0.0, 3.0], [3.0, 0.0]]), 2.0)
    assert np.exp((f[0] + g[0]) / 2.0) / 2 == pytest.approx(1 / (1 + np.exp(-1.5)), rel=1e-5)


def test_images_have_the_targets_marginals() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2000, 2)), np.column_stack([rng.exponential(size=2000), rng.beta(0.5, 0.5, size=2000)])
    assert ks(y, entropic_images(x, y, x)).max() < 0.02
    new = rng.normal(size=(5000, 2))
    assert ks(y, entropic_images(x, y, new)).max() < 0.05


def test_one_feature_goes_by_its_quantiles() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4000, 1)), rng.exponential(size=(4000, 1))
    at = np.array([[-1.5], [0.0], [1.2]])
    np.testing.assert_allclose(entropic_images(x, y, at), -np.log1p(-norm.cdf(at)), atol=0.08)


def test_a_law_mapped_to_itself_stays_where_the_exact_map_regresses_and_shakes() -> None:
    """Section 3.2: at the point of ones, ten features; 8 draws. The exact map's mean there is .76."""
    ours, exacts = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(200, 10)), rng.normal(size=(200, 10))
        x[0] = 1
        ours.append(entropic_images(x, y, x[:1])[0])
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
    parameters = entropic.fit([x], [y], ENTROPIC, [rng]).parameters
    order = rng.integers(60, size=150)
    (whole,), (several,) = (entropic.images(parameters, [rows]) for rows in (x, x[order]))
    np.testing.assert_allclose(several, whole[order], rtol=1e-12, atol=1e-12)
    assert len(np.unique(several, axis=0)) == len(np.unique(order))
    monkeypatch.setattr(entropic, "BLOCK", 100)
    np.testing.assert_allclose(entropic.images(parameters, [x])[0], whole, rtol=1e-12, atol=1e-12)


def test_the_images_of_drawn_rows_are_those_of_a_map_that_was_fitted_to_them() -> None:
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(200, 2)).round(1), rng.exponential(size=(150, 2)).round(1)
    here, there = rng.integers(200, size=120), rng.integers(150, size=120)
    found = entropic.images_of_drawn(x, y, (here, there), ENTROPIC, np.random.default_rng(0))
    np.testing.assert_allclose(found, entropic_images(x[here], y[there], x), rtol=1e-10, atol=1e-10)


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
    moved = entropic_images(x, y, x)
    for value in np.unique(x):
        assert np.ptp(moved[x == value]) == pytest.approx(0, abs=1e-6)
    order = np.argsort(x[:, 0])
    assert (np.diff(moved[order, 0]) >= -1e-6).all()
    assert moved.mean() == pytest.approx(y.mean(), abs=0.1)


def test_groups_without_variety_are_an_error() -> None:
    with invalid(option="source"):
        entropic_images(np.zeros((5, 2)), np.ones((4, 2)), np.zeros((1, 2)))


# Learned dual potentials make a plan, and the map of it has the barycentre that its cost asks for.


DUAL = stochastic.Config(
    cost="squared_l2",
    regularizer="quadratic",
    regularization=0.05,
    hidden_units=50,
    batch_size=100,
    steps=200,
    dual_rate=5e-3,
    map_rate=2e-3,
)


def learned(x: Array, y: Array, config: stochastic.Config = DUAL) -> TransportMap:
    return stochastic.fit([x], [y], config, [np.random.default_rng(0)])


@pytest.fixture(scope="module")
def shifted() -> tuple[Array, TransportMap]:
    """A law mapped to itself, 5 farther along the first feature and half as wide in the second."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 2))
    return x, learned(x, rng.normal(size=(1000, 2)) * [1, 0.5] + [5, 0], replace(DUAL, regularization=0.01, steps=300))


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


@pytest.mark.parametrize("regularizer", stochastic_config.REGULARIZERS)
@pytest.mark.parametrize(("cost", "centre"), [("squared_l2", 1.0), ("l1", np.log(2))])
def test_a_plan_without_preference_sends_everyone_to_the_costs_centre(
    regularizer: str, cost: str, centre: float
) -> None:
    """Of an exponential law: the mean for squares, the median for absolute differences."""
    rng = np.random.default_rng(2)
    config = replace(DUAL, cost=cost, regularizer=regularizer, regularization=100.0, batch_size=200)
    x = rng.normal(size=(500, 1))
    moved = stochastic.images(learned(x, rng.exponential(size=(3000, 1)), config).parameters, [x])[0]
    np.testing.assert_allclose(moved, centre, atol=0.2)
    assert abs(moved.mean() - centre) < 0.1


def test_a_trials_map_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(3)
    source, target = ([rng.normal(size=(n, 2)) for n in sizes] for sizes in ((60, 90), (70, 40)))
    config = replace(DUAL, cost="squared_l1", regularizer="entropic", steps=20)
    rngs = [np.random.default_rng(t) for t in range(2)]
    maps = stochastic.fit(source, target, config, rngs)
    alone = stochastic.fit(source[1:], target[1:], config, [np.random.default_rng(1)])
    for name, array in alone.parameters.items():
        np.testing.assert_allclose(maps.parameters[name][1], array[0], atol=1e-5, err_msg=name)
    np.testing.assert_allclose(maps.facts["marginal_error"][1], alone.facts["marginal_error"][0], rtol=1e-3)
    moved = stochastic.images(maps.parameters, [source[0][:3], source[1]])
    assert [rows.shape for rows in moved] == [(3, 2), (90, 2)]


def test_units_do_not_matter_but_groups_need_a_cost_between_them() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 1
    config = replace(DUAL, steps=10)
    moved = stochastic.images(learned(x, y, config).parameters, [x])[0]
    larger = stochastic.images(learned(100 * x + 7, 100 * y + 7, config).parameters, [100 * x + 7])[0]
    np.testing.assert_allclose(larger, 100 * moved + 7, atol=0.02)
    with invalid(option="source"):
        learned(np.ones((5, 2)), np.ones((5, 2)))


def test_pot_whose_torch_the_environment_disables_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fairness_audits.transport import pot

    monkeypatch.setattr(pot, "OURS", set())
    monkeypatch.setattr(pot.ot.backend, "_BACKEND_IMPLEMENTATIONS", [pot.ot.backend.NumpyBackend])
    with pytest.raises(ValueError, match="set the environment variable POT_BACKEND_DISABLE_PYTORCH"):
        learned(np.zeros((5, 2)), np.ones((5, 2)))
