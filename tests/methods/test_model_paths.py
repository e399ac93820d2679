"""Paths of models: each is the model that other software or another method fits, at the ends of its path."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairness_audits.fair_metric import learn
from fairness_audits.models import mlp
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Dataset
from pipeline.methods import model_paths
from pipeline.methods.model_paths import LARGEST_POWER, SMALLEST_C, Config, Model, Rows
from pipeline.methods.reweighing import weights
from tests.builders import dataset as toy
from tests.builders import settings

SMALL = {"strengths": 2, "samples": 1, "network_strengths": 2, "network_samples": 2, "steps": 300}
CONFIG = Config(**settings("model_paths", **SMALL))


def dataset(n: int = 1200, splits: int = 1) -> Dataset:
    """Sex and race shift one feature each, and the label depends on both and on two more features."""
    rng = np.random.default_rng(0)
    groups = {name: rng.integers(0, 2, n) for name in ("sex", "race")}
    x = rng.normal(size=(n, 4))
    x[:, 0] += groups["sex"]
    x[:, 1] += groups["race"]
    label = (x @ [1.0, 0.7, 1.0, -0.5] + rng.logistic(size=n) > 0.8).astype(int)
    order = np.array([rng.permutation(n) for _ in range(splits)])
    return toy(x, label, groups, order[:, : n // 2], order[:, n // 2 :])


def rows() -> Rows:
    data = dataset().batch("train")
    protected = {name: values[0] for name, values in data.protected.items()}
    return Rows(data.features[0], data.label[0], protected, learn(data.features[0], protected).basis)


def covariance(score: Array, group: Array) -> float:
    return float(np.cov(score, group)[0, 1])


ROWS = rows()
SAMPLE = np.random.default_rng(1).integers(len(ROWS.y), size=len(ROWS.y))


def fitted(family: str, strength: float, attribute: str = "") -> tuple[Array, float]:
    return model_paths.regression(Model(False, family, attribute, strength), ROWS, SAMPLE)


def by_scikit_learn(c: float = 1.0, weight: Array | None = None) -> tuple[Array, float]:
    own = ROWS.at(SAMPLE)
    found = LogisticRegression(C=c, tol=1e-10, max_iter=10_000).fit(own.x, own.y, weight)
    return found.coef_[0], float(found.intercept_[0])


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_a_regression_is_that_of_scikit_learn(strength: float) -> None:
    # The weights of the whole training set, not of the sample.
    weight = (weights(ROWS.protected["sex"] + 1, ROWS.y) ** (LARGEST_POWER * strength))[SAMPLE]
    for found, expected in (
        (fitted("l2", strength), by_scikit_learn(SMALLEST_C**strength)),
        (fitted("reweighing", strength, "sex"), by_scikit_learn(weight=weight)),
    ):
        assert found[0] == pytest.approx(expected[0], abs=1e-4)
        assert found[1] == pytest.approx(expected[1], abs=1e-4)


def test_the_penalties_are_quadratic_forms_whose_gradient_is_zero_at_the_fit() -> None:
    own = ROWS.at(SAMPLE)
    for family, attribute in (("parity", "sex"), ("odds", "race"), ("sensitive", "")):
        coef, intercept = fitted(family, 0.6, attribute)
        residual = own.y - 1 / (1 + np.exp(-(own.x @ coef + intercept)))
        q = model_paths.penalty(Model(False, family, attribute, 0.6), own)
        assert residual @ own.x == pytest.approx(q @ coef, abs=1e-3)


def test_the_ends_of_the_paths_have_no_constraint_and_nearly_the_whole_one() -> None:
    own = ROWS.at(SAMPLE)

    def score(family: str, strength: float, attribute: str) -> Array:
        return own.x @ fitted(family, strength, attribute)[0]

    sex, race = own.protected["sex"], own.protected["race"]
    free = own.x @ by_scikit_learn()[0]
    assert covariance(score("parity", 0, "sex"), sex) == pytest.approx(covariance(free, sex), rel=0.1)
    assert abs(covariance(score("parity", 1, "sex"), sex)) < 0.1 * abs(covariance(free, sex))
    assert abs(covariance(score("parity", 1, "sex"), race)) > 0.5 * abs(covariance(free, race))
    for label in (0, 1):
        inside = own.y == label
        equal = covariance(score("odds", 1, "race")[inside], race[inside])
        assert abs(equal) < 0.1 * abs(covariance(free[inside], race[inside]))
    along = ROWS.basis.T @ fitted("sensitive", 1)[0]
    assert np.linalg.norm(along) < 0.1 * np.linalg.norm(ROWS.basis.T @ by_scikit_learn()[0])


def test_a_regression_as_a_network_has_its_margins() -> None:
    x = np.random.default_rng(2).normal(size=(30, 3))
    coef, intercept = np.array([1.0, -2.0, 0.5]), 0.3
    parameters = model_paths.as_network(coef, intercept, 5)
    assert mlp.margin(parameters, x[None])[0] == pytest.approx(x @ coef + intercept)


def test_each_split_has_its_models_whatever_the_number_of_splits() -> None:
    two = model_paths.fit(dataset(splits=2), CONFIG, generators("train", repetitions=2))
    one = model_paths.fit(dataset(splits=1), CONFIG, generators("train", repetitions=1))
    planned = model_paths.models(CONFIG, ["sex", "race"])
    count = len(planned)
    assert count == 8 * 2 + 4 * 2 * 2
    assert two.index["split"].tolist() == [0] * count + [1] * count
    assert one.facts["network"].tolist() == [float(model.network) for model in planned]
    assert len({tuple(values.ravel()) for values in two.parameters["w1"]}) == 2 * count
    for name, values in one.parameters.items():
        assert two.parameters[name][: 8 * 2] == pytest.approx(values[: 8 * 2])


def test_networks_are_calibrated_for_the_shares_of_the_classes_and_the_strongest_ignores_sensitive_directions() -> None:
    data = dataset(n=4000)
    classifier = model_paths.fit(data, CONFIG, generators("train", repetitions=1))
    planned: list[Any] = model_paths.models(CONFIG, list(data.protected))
    train = data.batch("train")
    basis = learn(train.features[0], {name: values[0] for name, values in train.protected.items()}).basis
    for m, model in enumerate(planned):
        own = {name: values[[m]] for name, values in classifier.parameters.items()}
        if model.network and model.family != "reweighing":
            assert mlp.score(own, train.features).mean() == pytest.approx(train.label.mean(), abs=0.03)
        if model.network and model.family == "sensitive" and model.strength == 1:
            moved = train.features + (np.array([1.0, -2.0]) @ basis.T)
            assert mlp.margin(own, moved) == pytest.approx(mlp.margin(own, train.features), abs=1e-4)
