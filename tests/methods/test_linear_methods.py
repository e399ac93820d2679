"""Rules that are given, and linear models and machines that are fitted, each against its definition."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from fairness_audits.models import architecture, kernel, linear, logistic_mixture
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Dataset
from pipeline.datasets import hiring
from pipeline.methods import (
    given,
    linear_regression,
    logistic,
    logistic_grid,
    none,
    parity_constrained,
    reductions,
    svm,
)
from pipeline.methods.logistic_grid import best_intercepts
from pipeline.methods.parity_constrained import unpenalised
from pipeline.methods.reductions import CERTAIN
from tests.builders import dataset, settings
from tests.errors import invalid
from tests.methods.builders import population

RNGS = generators("linear", repetitions=2)


def test_the_rule_is_the_same_in_every_repetition_and_its_units_are_the_batch_s() -> None:
    data = population()
    found = given.fit(data, given.Config({"skill": 2.0, "proxy_sex": -1.0}, 0.3, None), RNGS)
    assert (found.architecture, found.repetitions) == ("linear", 2)
    x = data.batch("test").features
    column = {name: x[..., j] for j, name in enumerate(data.feature_names)}
    expected = 2 * column["skill"] - column["proxy_sex"]
    np.testing.assert_allclose(linear.score(found.parameters, x), expected, rtol=1e-12)
    np.testing.assert_array_equal(linear.predict(found.parameters, x), expected > 0.3)


def test_a_random_rule_has_even_odds_at_its_threshold_and_is_certain_elsewhere() -> None:
    data = population()
    found = given.fit(data, given.Config({"degree": 1.0}, 1.0, 50.0), RNGS)
    arrests = np.zeros((2, 4, 5))
    arrests[..., data.feature_names.index("degree")] = [0, 1, 2, 7]
    probability = logistic_mixture.score(found.parameters, arrests)
    np.testing.assert_allclose(probability, np.tile([0, 0.5, 1, 1], (2, 1)), atol=1e-20)
    # Odds at a threshold that is no fraction of two leave nothing to rounding either.
    assert (probability[:, 1] == 0.5).all()


# The machine is scikit-learn's, and looks at the features that it is given alone.


def test_decision_values_are_those_of_scikit_learn() -> None:
    data = population()
    found = svm.fit(data, svm.Config(2.0, None, None), RNGS)
    train, test = data.batch("train"), data.batch("test")
    for r in range(2):
        machine = SVC(C=2.0, gamma=1 / 5).fit(train.features[r], train.label[r])
        scores = kernel.score({name: v[r : r + 1] for name, v in found.parameters.items()}, test.features[r : r + 1])
        np.testing.assert_allclose(scores[0], machine.decision_function(test.features[r]), atol=1e-10)


def test_other_features_do_not_matter() -> None:
    data, config = population(), svm.Config(1.0, 0.7, ["skill", "noise"])
    changed = data.features.copy()
    changed[:, [0, 1, 3]] = 0.0
    other = replace(data, features=changed, continuous=("skill", "noise"))
    one, two = (svm.fit(d, config, RNGS) for d in (data, other))
    for name in ("dual", "support", "gamma"):
        np.testing.assert_array_equal(one.parameters[name], two.parameters[name])
    assert (one.parameters["gamma"] == 0.7).all()


# Least squares: the normal equations hold, dependent columns share their weight, the threshold is the outcome's.


def students(n: int = 500) -> Dataset:
    """A score far from 0, two dummies for each of two schools, and an outcome that depends on both."""
    rng = np.random.default_rng(0)
    score, school = 1000 + 5 * rng.normal(size=n), rng.integers(0, 2, n)
    outcome = 0.2 * (score - 1000) + 0.6 * school + rng.normal(size=n)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    features = np.column_stack([score, school == 0, school == 1])
    label = (outcome > np.median(outcome)).astype(np.int64)
    named: dict = {"name": "students", "outcomes": {"average": outcome}}
    return dataset(features, label, {"school": school}, order[:, :300], order[:, 300:], **named)


def test_the_residual_is_orthogonal_to_every_column_and_to_one() -> None:
    data = students()
    found = linear_regression.fit(data, linear_regression.Config(0.0), RNGS)
    x = data.batch("train").features
    t = data.outcomes["average"][data.train]
    residual = t - linear.score(found.parameters, x)
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-8)
    np.testing.assert_allclose(np.einsum("rn,rnd->rd", residual, x - x.mean(axis=1, keepdims=True)), 0, atol=1e-7)


def test_the_levels_of_an_attribute_have_weights_of_sum_0() -> None:
    data = students()
    coef = linear_regression.fit(data, linear_regression.Config(None), RNGS).parameters["coef"]
    np.testing.assert_allclose(coef[:, 1] + coef[:, 2], 0, atol=1e-8)
    columns = np.column_stack([data.features[data.train[0]][:, [0, 2]], np.ones(300)])
    plain = np.linalg.lstsq(columns, data.outcomes["average"][data.train[0]])[0]
    assert coef[0, 2] - coef[0, 1] == pytest.approx(plain[1], abs=1e-6)
    assert coef[0, 0] == pytest.approx(plain[0], abs=1e-8)


def test_the_decision_is_that_the_prediction_exceeds_the_threshold_or_the_median() -> None:
    data = students()
    x = data.batch("test").features
    median = np.median(data.outcomes["average"][data.train], axis=1)
    for threshold, expected in ((1.25, np.full(2, 1.25)), (None, median)):
        parameters = linear_regression.fit(data, linear_regression.Config(threshold), RNGS).parameters
        np.testing.assert_allclose(parameters["threshold"], expected)
        prediction = linear.score(parameters, x)
        np.testing.assert_array_equal(linear.predict(parameters, x), prediction > expected[:, None])


# The regression is uncorrelated with the attribute, and the best among all that are.


SEX_ALONE = {"sex": population().protected["sex"]}


@pytest.mark.parametrize("outside", [False, True])
def test_scores_are_uncorrelated_with_every_attribute(outside: bool) -> None:
    """Over the rows in its groups; rows in neither train, but do not bind."""
    data = population()
    if outside:
        race = np.where(data.features[:, 4] > 0, -1, data.protected["race"])
        data = replace(data, protected={**data.protected, "race": race})
    found = parity_constrained.fit(data, parity_constrained.Config(), RNGS)
    batch = data.batch("train")
    score = (batch.features @ found.parameters["coef"][:, 0, :, None])[..., 0]
    for z in batch.protected.values():
        for r in range(2):
            inside = z[r] >= 0
            assert abs(np.corrcoef(score[r][inside], z[r][inside])[0, 1]) < 1e-12
    residual = expit(score + found.parameters["intercept"]) - batch.label
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-5)
    assert (found.facts["correlation"] < 1e-12).all()
    assert found.facts["free_weights"].tolist() == [3, 3]


def test_it_is_the_minimum_of_the_constrained_problem() -> None:
    """A general solver of constrained problems ends in the same weights."""
    data = replace(population(repetitions=1), protected=SEX_ALONE)
    batch = data.batch("train")
    x, y, z = batch.features[0], batch.label[0], batch.protected["sex"][0]
    a = (z - z.mean()) @ x / len(x)

    def loss(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -(2 * y - 1) * (x @ w[:-1] + w[-1])).mean())

    def slope(w: np.ndarray) -> np.ndarray:
        residual = expit(x @ w[:-1] + w[-1]) - y
        return np.append(residual @ x, residual.sum()) / len(x)

    parity = {"type": "eq", "fun": lambda w: a @ w[:-1], "jac": lambda w: np.append(a, 0)}
    solved = minimize(loss, np.zeros(6), jac=slope, constraints=[parity], method="SLSQP", options={"ftol": 1e-14})
    found = parity_constrained.fit(data, parity_constrained.Config(), RNGS[:1])
    np.testing.assert_allclose(found.parameters["coef"][0, 0], solved.x[:-1], atol=1e-5)
    assert found.parameters["intercept"][0, 0] == pytest.approx(solved.x[-1], abs=1e-5)


def test_it_rewards_hair_to_make_up_for_experience() -> None:
    """Lipton et al. 2018: hire iff 1.4 work + 1.2 hair > .9, though the label depends on work alone."""
    data = hiring.prepare(None, hiring.Config(train=10_000, test=10), generators("h", repetitions=2), "simulated")
    found = parity_constrained.fit(data, parity_constrained.Config(), RNGS)
    coef, intercept = found.parameters["coef"][:, 0], found.parameters["intercept"][:, 0]
    np.testing.assert_allclose(coef, np.tile([1.46, 1.20], (2, 1)), atol=0.15)
    np.testing.assert_allclose(-intercept, 0.89, atol=0.05)


def test_the_correlation_that_is_reported_is_the_largest_over_the_rows_of_each_group() -> None:
    score, (a, b) = np.arange(9.0) ** 2, np.array([[0, 0, 1, 0, 1, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, -1, -1]])
    expected = [abs(np.corrcoef(score[z >= 0], z[z >= 0])[0, 1]) for z in (a, b)]
    assert parity_constrained.largest_correlation(score, {"a": a, "b": b}) == pytest.approx(max(expected))
    assert parity_constrained.largest_correlation(np.ones(9), {"a": a}) == 0


def test_where_no_direction_is_left_the_score_is_constant() -> None:
    data = replace(population(), protected=SEX_ALONE)
    only = replace(data, features=data.features[:, :1], feature_names=("proxy_sex",), continuous=("proxy_sex",))
    found = parity_constrained.fit(only, parity_constrained.Config(), RNGS)
    assert found.facts["free_weights"].tolist() == [0, 0]
    assert (found.parameters["coef"] == 0).all()
    shares = data.batch("train").label.mean(axis=1)
    np.testing.assert_allclose(expit(found.parameters["intercept"][:, 0]), shares)


def test_repeated_features_share_their_weight_and_change_no_score() -> None:
    data = population()
    degree = data.features[:, 3:4]
    names = (*data.feature_names, "none", "one")
    columns = np.column_stack([data.features, 1 - degree, np.ones(len(degree))])
    twice = replace(data, features=columns, feature_names=names)
    one, two = (parity_constrained.fit(d, parity_constrained.Config(), RNGS) for d in (data, twice))
    assert two.facts["free_weights"].tolist() == [3, 3]
    score = [
        (d.batch("test").features @ f.parameters["coef"][:, 0, :, None])[..., 0] + f.parameters["intercept"]
        for d, f in ((data, one), (twice, two))
    ]
    np.testing.assert_allclose(score[0], score[1], atol=1e-6)
    np.testing.assert_allclose(two.parameters["coef"][..., 3], -two.parameters["coef"][..., 5], atol=1e-9)
    np.testing.assert_allclose(two.parameters["coef"][..., 6], 0, atol=1e-9)


# Logistic regression: its penalty, and a grid of coefficients.


def noisy(n: int = 400, d: int = 30) -> Dataset:
    """One feature that matters and d - 1 that do not: a large C overfits."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = (rng.random(n) < expit(1.5 * x[:, 0] - 0.5)).astype(np.int64)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    return dataset(x, y, {"g": (x[:, 1] > 0).astype(np.int64)}, order[:, :200], order[:, 200:])


def test_the_fit_is_the_minimum_on_the_first_rows() -> None:
    data, c = noisy(), 0.3
    found = logistic.fit(data, logistic.Config(0.25, [c]), generators("t", repetitions=2))
    for r in range(2):
        train = data.train[r][:150]
        x, y = data.features[train], data.label[train]
        w, b = found.parameters["coef"][r, 0], found.parameters["intercept"][r, 0]
        residual = expit(x @ w + b) - y
        np.testing.assert_allclose(w + c * x.T @ residual, 0, atol=1e-3)
        assert residual.sum() == pytest.approx(0, abs=1e-3)


def test_the_penalty_is_the_one_with_the_best_validation_auc() -> None:
    data, grid = noisy(), [0.001, 0.01, 0.1, 1.0, 100.0]
    found = logistic.fit(data, logistic.Config(0.25, grid), generators("t", repetitions=2))
    for r in range(2):
        fitted, held_out = data.train[r][:150], data.train[r][150:]
        models = [LogisticRegression(C=c, max_iter=1000, tol=1e-8) for c in grid]
        fits = [model.fit(data.features[fitted], data.label[fitted]) for model in models]
        auc = [roc_auc_score(data.label[held_out], m.decision_function(data.features[held_out])) for m in fits]
        assert found.facts["inverse_penalty"][r] == grid[int(np.argmax(auc))]
        assert found.facts["validation_auc"][r] == pytest.approx(max(auc), abs=1e-3)
        assert found.facts["at_edge"][r] == (int(np.argmax(auc)) in (0, len(grid) - 1))


def test_a_repetition_does_not_depend_on_how_many_there_are_and_no_model_says_one_half() -> None:
    data, config = noisy(), logistic.Config(0.25, [0.1, 1.0])
    one, two = (logistic.fit(data, config, generators("t", repetitions=r)) for r in (1, 2))
    np.testing.assert_array_equal(one.parameters["coef"][0], two.parameters["coef"][0])
    data = noisy()
    found = none.fit(data, none.Config(), generators("t", repetitions=2))
    test = data.batch("test")
    loss, _ = architecture(found.architecture).loss_and_gradient(found.parameters, test.features, test.label)
    np.testing.assert_allclose(np.exp(-loss), 0.5)


# The grid's order, and the intercepts' first-order condition.


ONE_RNG = generators("grid", repetitions=1)


def plane(label: list[int] | None = None, n: int = 60, columns: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, columns)) * 3
    y = (features[:, 0] + rng.normal(size=n) > 1).astype(np.int64) if label is None else np.array(label)
    return dataset(features, y, {"group": y}, name="plane")


def test_the_published_grid_has_441_classifiers_the_first_coefficient_slowest_and_one_may_be_a_point() -> None:
    classifier = logistic_grid.fit(plane(), logistic_grid.Config(-4.0, 4.0, 21, "fitted"), ONE_RNG)
    assert classifier.repetitions == 441
    axis = np.arange(-4, 4.01, 0.4)
    np.testing.assert_allclose(classifier.index["theta_1"].reshape(21, 21), axis[:, None].repeat(21, 1), atol=1e-12)
    np.testing.assert_allclose(classifier.index["theta_2"].reshape(21, 21), axis[None].repeat(21, 0), atol=1e-12)
    coefficients = np.column_stack([classifier.index["theta_1"], classifier.index["theta_2"]])
    np.testing.assert_array_equal(classifier.parameters["coef"][:, 0], coefficients)
    classifier = logistic_grid.fit(plane(), logistic_grid.Config(1.2, 1.2, 1, "zero"), ONE_RNG)
    assert classifier.parameters["coef"].tolist() == [[[1.2, 1.2]]]
    assert classifier.parameters["intercept"].tolist() == [[0.0]]
    assert classifier.parameters["weight"].tolist() == [[1.0]]


PEOPLE, STUDENTS = population(), students()
OUTCOMES = {**STUDENTS.outcomes, "other": STUDENTS.outcomes["average"]}
REFUSED: list[tuple[Any, dict[str, Any], Dataset, dict[str, Any]]] = [
    (given, {"weights": {"height": 1.0, "skill": 1.0}}, PEOPLE, {"option": "weights", "column": "height"}),
    (svm, {"features": ["age", "skill"]}, PEOPLE, {"option": "features", "column": "age"}),
    (svm, {}, replace(PEOPLE, label=np.zeros_like(PEOPLE.label)), {"option": "label"}),
    (linear_regression, {}, replace(STUDENTS, outcomes=OUTCOMES), {"source": "students", "option": "dataset"}),
    (linear_regression, {}, replace(STUDENTS, outcomes={}), {"source": "students", "option": "dataset"}),
    (logistic_grid, {}, plane([1] * 60), {"option": "intercept"}),
    (logistic_grid, {}, plane(columns=3), {"source": "plane", "option": "dataset"}),
]


@pytest.mark.parametrize(("method", "changes", "data", "fields"), REFUSED)
def test_what_cannot_be_fitted_is_named(
    method: Any, changes: dict[str, Any], data: Dataset, fields: dict[str, Any]
) -> None:
    config = method.Config(**settings(method.__name__.rpartition(".")[2], **changes))
    with invalid(**fields):
        method.fit(data, config, ONE_RNG)


def test_a_second_repetition_of_a_grid_and_a_regression_without_a_finite_best_or_a_second_label_are_refused() -> None:
    with invalid(option="repetitions"):
        logistic_grid.fit(plane(), logistic_grid.Config(-1.0, 1.0, 3, "zero"), RNGS)
    with invalid(option="label"):
        unpenalised(np.ones((3, 1)), np.ones(3, dtype=np.int64))
    x = np.linspace(-1, 1, 40)[:, None]
    with invalid(option="features"):
        unpenalised(x, (x[:, 0] > 0).astype(np.int64))


def test_fitted_intercepts_satisfy_the_first_order_condition() -> None:
    """The derivative of the summed loss in the intercept, sum_i (P(1 | x_i) - y_i), is 0."""
    dataset = plane()
    classifier = logistic_grid.fit(dataset, logistic_grid.Config(-4.0, 4.0, 9, "fitted"), ONE_RNG)
    margins = np.einsum("md,nd->mn", classifier.parameters["coef"][:, 0], dataset.features)
    probability = 1 / (1 + np.exp(-margins - classifier.parameters["intercept"]))
    np.testing.assert_allclose(probability.sum(axis=1), dataset.label.sum(), rtol=1e-12)


def test_no_coefficients_give_the_log_odds_of_the_labels_and_margins_shift_the_intercept() -> None:
    label = np.array([1, 1, 1, 0])
    np.testing.assert_allclose(best_intercepts(np.zeros((1, 4)), label), np.log(3), rtol=1e-12)
    margins = np.random.default_rng(1).normal(size=(2, 4)) * 100
    np.testing.assert_allclose(best_intercepts(margins + 7, label), best_intercepts(margins, label) - 7, rtol=1e-9)


# Reductions meets its constraint, is logistic regression where nothing binds, and weighs classes by their rows.


VALUES = settings("reductions")
GAME_RNGS = generators("r", repetitions=2)


def config(**values: object) -> reductions.Config:
    return reductions.Config(**{**VALUES, **values})


def drawn_rates(parameters: dict[str, Array], x: Array) -> Array:
    """The probability that a member drawn by weight predicts 1: (R, n)."""
    margins = np.einsum("rnd,rkd->rnk", x, parameters["coef"]) + parameters["intercept"][:, None]
    return np.einsum("rnk,rk->rn", margins > 0, parameters["weight"])


@pytest.mark.parametrize("bound", [0.02, 0.05])
def test_equalized_odds_hold_on_the_training_rows(bound: float) -> None:
    dataset = population(n=1200, proxy=3.0)
    classifier = reductions.fit(dataset, config(difference_bound=bound), GAME_RNGS)
    data = dataset.batch("train")
    rates = drawn_rates(dict(classifier.parameters), data.features)
    for r in range(2):
        groups = data.protected["sex"][r] + 2 * data.protected["race"][r]
        gaps = [
            abs(rates[r][(groups == g) & (data.label[r] == y)].mean() - rates[r][data.label[r] == y].mean())
            for g in range(4)
            for y in range(2)
        ]
        # The game ends within its duality gap over the bound of the multipliers, 1 / epsilon.
        assert max(gaps) <= bound * (1 + 2 * classifier.facts["duality_gap"][r]) + 1e-9
        assert classifier.facts["violation"][r] == pytest.approx(max(gaps), abs=1e-12)
    unconstrained = reductions.fit(dataset, config(difference_bound=0.9), GAME_RNGS)
    assert (unconstrained.facts["violation"] > bound).all()


def test_a_constraint_that_does_not_bind_costs_no_accuracy() -> None:
    """The game may then answer with the plain regression, so its training error is no larger, up to the gap."""
    dataset = population()
    free = reductions.fit(dataset, config(difference_bound=0.99, class_balance=False), GAME_RNGS)
    tight = reductions.fit(dataset, config(difference_bound=0.005, class_balance=False), GAME_RNGS)
    data = dataset.batch("train")
    for r in range(2):
        plain = LogisticRegression(solver="liblinear").fit(data.features[r], data.label[r])
        least = (plain.predict(data.features[r]) != data.label[r]).mean()
        errors = [
            np.where(data.label[r] == 1, 1 - rates[r], rates[r]).mean()
            for rates in (drawn_rates(dict(game.parameters), data.features) for game in (free, tight))
        ]
        assert errors[0] <= least + free.facts["duality_gap"][r] + 1e-9
        assert errors[1] > errors[0]


def test_classes_are_weighed_by_their_rows_not_by_the_weights_of_their_rows() -> None:
    """Doubling the weights of the rows of one class must count: the game says so. Weighted balancing would undo it."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), (rng.random(300) < 0.3).astype(np.int64)
    weight = np.where(y == 1, 2.0, 1.0)
    found = reductions.learner(config()).fit(x, y, sample_weight=weight)
    rows = np.where(y == 1, 300 / (2 * y.sum()), 300 / (2 * (1 - y).sum()))
    expected = LogisticRegression(solver="liblinear").fit(x, y, sample_weight=weight * rows)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    # The log odds rise by about log(2) over the balanced fit.
    balanced = reductions.learner(config()).fit(x, y, sample_weight=np.ones(300))
    assert found.intercept_[0] - balanced.intercept_[0] == pytest.approx(np.log(2), abs=0.05)
    unbalanced = reductions.learner(config(class_balance=False)).fit(x, y, sample_weight=np.ones(300))
    assert balanced.intercept_[0] - unbalanced.intercept_[0] == pytest.approx(np.log((1 - y).sum() / y.sum()), abs=0.05)


def test_a_member_that_always_says_the_same_is_certain() -> None:
    for label in (0, 1):
        member = DummyClassifier(strategy="constant", constant=label).fit(np.zeros((2, 3)), [0, 1])
        coef, intercept = reductions._coefficients(member, 3)
        assert coef.tolist() == [0, 0, 0]
        assert 1 / (1 + np.exp(-intercept)) == pytest.approx(label, abs=1e-15)
        assert abs(intercept) == CERTAIN
