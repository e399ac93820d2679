"""Reductions meets its constraint, is logistic regression where nothing binds, and weighs classes by their rows."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from pipeline.methods import reductions
from pipeline.methods.reductions import CERTAIN, Config
from pipeline.models import logistic_mixture
from pipeline.seeds import generators
from pipeline.types import Array
from tests.methods.builders import population

VALUES = {
    "difference_bound": 0.03,
    "max_iter": 50,
    "class_balance": True,
    "inverse_penalty": 1.0,
    "solver": "newton-cholesky",
}
RNGS = generators("r", repetitions=2)


def config(**values: object) -> Config:
    return Config(**{**VALUES, **values})  # type: ignore[arg-type]


def drawn_rates(parameters: dict[str, Array], x: Array) -> Array:
    """The probability that a member drawn by weight predicts 1: (R, n)."""
    margins = np.einsum("rnd,rkd->rnk", x, parameters["coef"]) + parameters["intercept"][:, None]
    return np.einsum("rnk,rk->rn", margins > 0, parameters["weight"])


@pytest.mark.parametrize("bound", [0.02, 0.05])
@pytest.mark.parametrize("solver", reductions.SOLVERS)
def test_equalized_odds_hold_on_the_training_rows(bound: float, solver: str) -> None:
    dataset = population(n=1200, proxy=3.0)
    classifier = reductions.fit(dataset, config(difference_bound=bound, solver=solver), RNGS)
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
    unconstrained = reductions.fit(dataset, config(difference_bound=0.9, solver=solver), RNGS)
    assert (unconstrained.facts["violation"] > bound).all()


def test_a_constraint_that_does_not_bind_costs_no_accuracy() -> None:
    """The game may then answer with the plain regression, so its training error is no larger, up to the gap."""
    dataset = population()
    free = reductions.fit(dataset, config(difference_bound=0.99, class_balance=False), RNGS)
    tight = reductions.fit(dataset, config(difference_bound=0.005, class_balance=False), RNGS)
    data = dataset.batch("train")
    for r in range(2):
        plain = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(data.features[r], data.label[r])
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
    expected = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(x, y, sample_weight=weight * rows)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    # The log odds rise by about log(2) over the balanced fit.
    balanced = reductions.learner(config()).fit(x, y, sample_weight=np.ones(300))
    assert found.intercept_[0] - balanced.intercept_[0] == pytest.approx(np.log(2), abs=0.05)
    unbalanced = reductions.learner(config(class_balance=False)).fit(x, y, sample_weight=np.ones(300))
    assert balanced.intercept_[0] - unbalanced.intercept_[0] == pytest.approx(np.log((1 - y).sum() / y.sum()), abs=0.05)


def test_solvers_agree_where_rows_are_many() -> None:
    dataset = population(n=8000, repetitions=1)
    x = dataset.batch("test").features
    first, second = (reductions.fit(dataset, config(solver=s), RNGS[:1]).parameters for s in reductions.SOLVERS)
    agree = logistic_mixture.predict(first, x) == logistic_mixture.predict(second, x)
    assert agree.mean() > 0.99


def test_a_member_that_always_says_the_same_is_certain() -> None:
    for label in (0, 1):
        member = DummyClassifier(strategy="constant", constant=label).fit(np.zeros((2, 3)), [0, 1])
        coef, intercept = reductions._coefficients(member, 3)
        assert coef.tolist() == [0, 0, 0]
        assert 1 / (1 + np.exp(-intercept)) == pytest.approx(label, abs=1e-15)
        assert abs(intercept) == CERTAIN


def test_every_combination_of_protected_values_is_a_group() -> None:
    values = {"a": np.array([0, 1, 0, 1]), "b": np.array([0, 0, 1, 1])}
    assert reductions.crossed_groups(values).tolist() == [0, 1, 2, 3]
