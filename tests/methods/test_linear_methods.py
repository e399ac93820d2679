"""Rules that are given, and linear models and machines that are fitted, each against its definition."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.svm import SVC

from pipeline.datasets import hiring
from pipeline.methods import given, linear_regression, parity_constrained, svm
from pipeline.methods.parity_constrained import orthogonal, unpenalised
from pipeline.models import kernel, linear, logistic_mixture
from pipeline.seeds import generators
from pipeline.types import Dataset
from tests.builders import dataset
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


def test_a_feature_that_is_not_there_is_named() -> None:
    message = r"method\.weights among the features of 'population', proxy_sex, .*; found \['age', 'height'\]"
    with pytest.raises(ValueError, match=message):
        given.fit(population(), given.Config({"height": 1.0, "skill": 1.0, "age": 1.0}, 0.0, None), RNGS)


# The machine is scikit-learn's, and looks at the features that it is given alone.


def test_decision_values_are_those_of_scikit_learn() -> None:
    data = population()
    found = svm.fit(data, svm.Config(2.0, None, None, None), RNGS)
    train, test = data.batch("train"), data.batch("test")
    for r in range(2):
        machine = SVC(C=2.0, gamma=1 / 5).fit(train.features[r], train.label[r])
        scores = kernel.score({name: v[r : r + 1] for name, v in found.parameters.items()}, test.features[r : r + 1])
        np.testing.assert_allclose(scores[0], machine.decision_function(test.features[r]), atol=1e-10)
        assert found.facts["support_vectors"][r] == len(machine.support_)
        assert found.facts["training_accuracy"][r] == machine.score(train.features[r], train.label[r])


def test_other_features_and_later_rows_do_not_matter() -> None:
    data, config = population(), svm.Config(1.0, 0.7, ["skill", "noise"], 100)
    changed = data.features.copy()
    changed[:, [0, 1, 3]] = 0.0
    unseen = data.train[:, 100:]
    label = data.label.copy()
    only_late = np.setdiff1d(unseen, data.train[:, :100])
    label[only_late] = 1 - label[only_late]
    other = replace(data, features=changed, label=label, continuous=("skill", "noise"))
    one, two = (svm.fit(d, config, RNGS) for d in (data, other))
    for name in ("dual", "support", "gamma"):
        np.testing.assert_array_equal(one.parameters[name], two.parameters[name])
    assert (one.parameters["gamma"] == 0.7).all()


def test_what_cannot_be_fitted_is_said() -> None:
    data = population()
    with pytest.raises(ValueError, match=r"method\.features among those of 'population', .*; found \['age'\]"):
        svm.fit(data, svm.Config(1.0, None, ["age", "skill"], None), RNGS)
    with pytest.raises(ValueError, match="both labels, found label 0 alone"):
        svm.fit(replace(data, label=np.zeros_like(data.label)), svm.Config(1.0, None, None, None), RNGS)


# Least squares: the normal equations hold, dependent columns share their weight, the threshold is the outcome's.


def students(n: int = 500) -> Dataset:
    """A score far from 0, two dummies for each of two schools, and an outcome that depends on both."""
    rng = np.random.default_rng(0)
    score, school = 1000 + 5 * rng.normal(size=n), rng.integers(0, 2, n)
    outcome = 0.2 * (score - 1000) + 0.6 * school + rng.normal(size=n)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    features = np.column_stack([score, school == 0, school == 1])
    label = (outcome > np.median(outcome)).astype(np.int64)
    return dataset(
        features,
        label,
        {"school": school},
        order[:, :300],
        order[:, 300:],
        name="students",
        outcomes={"average": outcome},
    )


def test_the_residual_is_orthogonal_to_every_column_and_to_one() -> None:
    data = students()
    found = linear_regression.fit(data, linear_regression.Config("average", 0.0), RNGS)
    x = data.batch("train").features
    t = data.outcomes["average"][data.train]
    residual = t - linear.score(found.parameters, x)
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-8)
    np.testing.assert_allclose(np.einsum("rn,rnd->rd", residual, x - x.mean(axis=1, keepdims=True)), 0, atol=1e-7)
    np.testing.assert_allclose(found.facts["rmse"], np.sqrt((residual**2).mean(axis=1)))
    np.testing.assert_allclose(found.facts["r_squared"], 1 - (residual**2).sum(axis=1) / t.var(axis=1) / 300)
    assert found.facts["rank"].tolist() == [2, 2]


def test_the_levels_of_an_attribute_have_weights_of_sum_0() -> None:
    data = students()
    coef = linear_regression.fit(data, linear_regression.Config(None, None), RNGS).parameters["coef"]
    np.testing.assert_allclose(coef[:, 1] + coef[:, 2], 0, atol=1e-8)
    plain = np.linalg.lstsq(
        np.column_stack([data.features[data.train[0]][:, [0, 2]], np.ones(300)]),
        data.outcomes["average"][data.train[0]],
    )[0]
    assert coef[0, 2] - coef[0, 1] == pytest.approx(plain[1], abs=1e-6)
    assert coef[0, 0] == pytest.approx(plain[0], abs=1e-8)


def test_the_decision_is_that_the_prediction_exceeds_the_threshold_or_the_median() -> None:
    data = students()
    x = data.batch("test").features
    for threshold, expected in (
        (1.25, np.full(2, 1.25)),
        (None, np.median(data.outcomes["average"][data.train], axis=1)),
    ):
        parameters = linear_regression.fit(data, linear_regression.Config(None, threshold), RNGS).parameters
        np.testing.assert_allclose(parameters["threshold"], expected)
        prediction = linear.score(parameters, x)
        np.testing.assert_array_equal(linear.predict(parameters, x), prediction > expected[:, None])


def test_an_outcome_that_is_not_there_is_named() -> None:
    data = students()
    two = replace(data, outcomes={**data.outcomes, "other": data.outcomes["average"]})
    with pytest.raises(ValueError, match=r"method\.outcome among those of 'students' \(average\), found 'score'"):
        linear_regression.fit(data, linear_regression.Config("score", None), RNGS)
    with pytest.raises(ValueError, match=r"\(average, other\), found None"):
        linear_regression.fit(two, linear_regression.Config(None, None), RNGS)
    with pytest.raises(ValueError, match="none: its label is all that there is to predict"):
        linear_regression.fit(replace(data, outcomes={}), linear_regression.Config(None, None), RNGS)


# The regression is uncorrelated with the attribute, and the best among all that are.


@pytest.mark.parametrize(
    ("attributes", "outside", "free"), [(None, False, 3), (["sex"], False, 4), (["race"], True, 4)]
)
def test_scores_are_uncorrelated_with_every_attribute_that_is_named_and_no_other(
    attributes: list[str] | None, outside: bool, free: int
) -> None:
    """Over the rows in its groups; rows in neither train, but do not bind."""
    data = population()
    if outside:
        race = np.where(data.features[:, 4] > 0, -1, data.protected["race"])
        data = replace(data, protected={**data.protected, "race": race})
    found = parity_constrained.fit(data, parity_constrained.Config(attributes), RNGS)
    batch = data.batch("train")
    score = (batch.features @ found.parameters["coef"][:, 0, :, None])[..., 0]
    for name, z in batch.protected.items():
        for r in range(2):
            inside = z[r] >= 0
            correlation = abs(np.corrcoef(score[r][inside], z[r][inside])[0, 1])
            assert correlation < 1e-12 if attributes is None or name in attributes else correlation > 1e-3
    residual = expit(score + found.parameters["intercept"]) - batch.label
    np.testing.assert_allclose(residual.sum(axis=1), 0, atol=1e-5)
    assert (found.facts["correlation"] < 1e-12).all()
    assert found.facts["free_weights"].tolist() == [free, free]


def test_it_is_the_minimum_of_the_constrained_problem() -> None:
    """A general solver of constrained problems ends in the same weights."""
    data = population(repetitions=1)
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
    found = parity_constrained.fit(data, parity_constrained.Config(["sex"]), RNGS[:1])
    np.testing.assert_allclose(found.parameters["coef"][0, 0], solved.x[:-1], atol=1e-5)
    assert found.parameters["intercept"][0, 0] == pytest.approx(solved.x[-1], abs=1e-5)


def test_it_rewards_hair_to_make_up_for_experience() -> None:
    """Lipton et al. 2018: hire iff 1.4 work + 1.2 hair > .9, though the label depends on work alone."""
    data = hiring.prepare(None, hiring.Config(train=10_000, test=10), generators("h", repetitions=2), "simulated")
    found = parity_constrained.fit(data, parity_constrained.Config(None), RNGS)
    coef, intercept = found.parameters["coef"][:, 0], found.parameters["intercept"][:, 0]
    np.testing.assert_allclose(coef, np.tile([1.46, 1.20], (2, 1)), atol=0.15)
    np.testing.assert_allclose(-intercept, 0.89, atol=0.05)


def test_the_correlation_that_is_reported_is_the_largest_over_the_rows_of_each_group() -> None:
    score, (a, b) = np.arange(9.0) ** 2, np.array([[0, 0, 1, 0, 1, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, -1, -1]])
    expected = [abs(np.corrcoef(score[z >= 0], z[z >= 0])[0, 1]) for z in (a, b)]
    assert parity_constrained.largest_correlation(score, {"a": a, "b": b}) == pytest.approx(max(expected))
    assert parity_constrained.largest_correlation(np.ones(9), {"a": a}) == 0


def test_where_no_direction_is_left_the_score_is_constant() -> None:
    data = population()
    only = replace(data, features=data.features[:, :1], feature_names=("proxy_sex",), continuous=("proxy_sex",))
    found = parity_constrained.fit(only, parity_constrained.Config(["sex"]), RNGS)
    assert found.facts["free_weights"].tolist() == [0, 0]
    assert (found.parameters["coef"] == 0).all()
    shares = data.batch("train").label.mean(axis=1)
    np.testing.assert_allclose(expit(found.parameters["intercept"][:, 0]), shares)


def test_repeated_features_share_their_weight_and_change_no_score() -> None:
    data = population()
    degree = data.features[:, 3:4]
    names = (*data.feature_names, "none", "one")
    twice = replace(
        data, features=np.column_stack([data.features, 1 - degree, np.ones(len(degree))]), feature_names=names
    )
    one, two = (parity_constrained.fit(d, parity_constrained.Config(None), RNGS) for d in (data, twice))
    assert two.facts["free_weights"].tolist() == [3, 3]
    score = [
        (d.batch("test").features @ f.parameters["coef"][:, 0, :, None])[..., 0] + f.parameters["intercept"]
        for d, f in ((data, one), (twice, two))
    ]
    np.testing.assert_allclose(score[0], score[1], atol=1e-6)
    np.testing.assert_allclose(two.parameters["coef"][..., 3], -two.parameters["coef"][..., 5], atol=1e-9)
    np.testing.assert_allclose(two.parameters["coef"][..., 6], 0, atol=1e-9)


def test_the_basis_is_orthonormal_and_orthogonal_to_the_constraints() -> None:
    a = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0]])
    basis = orthogonal(a)
    assert basis.shape == (3, 2)
    np.testing.assert_allclose(a @ basis, 0, atol=1e-14)
    np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-14)
    assert orthogonal(np.zeros((1, 3))).shape == (3, 3)


def test_what_parity_cannot_be_had_of_is_said() -> None:
    with pytest.raises(ValueError, match=r"method\.attributes among \['race', 'sex'\], found \['age'\]"):
        parity_constrained.fit(population(), parity_constrained.Config(["age"]), RNGS)
    with pytest.raises(ValueError, match="both labels, found label 1 alone"):
        unpenalised(np.ones((3, 1)), np.ones(3, dtype=np.int64))
    x = np.linspace(-1, 1, 40)[:, None]
    with pytest.raises(ValueError, match="can be told apart without error"):
        unpenalised(x, (x[:, 0] > 0).astype(np.int64))
