"""Models of scikit-learn as layers: their own probabilities, and gradients that differences confirm."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import fairness_audits as fa
from fairness_audits.inputs.closed_form import layers_of
from fairness_audits.inputs.encoding import encoding_of
from fairness_audits.inputs.model import load_model
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import predictor
from fairness_audits.inputs.probe import answered
from fairness_audits.inputs.table import Source
from fairness_audits.models.layers import Layers
from fairness_audits.values import Array

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 4)) * [1, 5, 0.2, 1] + [0, 100, 0, 3], columns=list("abcd"))
Y = (X["a"] + 0.2 * (X["b"] - 100) + RNG.logistic(size=300) > 0).astype(int)
THREE = Y + (X["d"] > 3.5)


def network(activation: str, *hidden: int) -> MLPClassifier:
    return MLPClassifier(hidden, activation=activation, max_iter=30, random_state=0)


MODELS: dict[str, tuple[Any, pd.Series]] = {
    "logistic": (make_pipeline(StandardScaler(), LogisticRegression()), Y),
    "logistic, three classes": (make_pipeline(MinMaxScaler(), LogisticRegression()), THREE),
    "stochastic gradient": (make_pipeline(RobustScaler(), SGDClassifier(loss="log_loss", random_state=0)), Y),
    "margins": (make_pipeline(StandardScaler(), LinearSVC()), Y),
    "margins, three classes": (make_pipeline(StandardScaler(), RidgeClassifier()), THREE),
    "linear support vectors": (make_pipeline(StandardScaler(), SVC(kernel="linear")), Y),
    "discriminant": (LinearDiscriminantAnalysis(), Y),
    "regression": (LinearRegression(), Y),
    "relu": (make_pipeline(StandardScaler(), network("relu", 8)), Y),
    "tanh, two layers": (make_pipeline(StandardScaler(), network("tanh", 8, 5)), THREE),
    "logistic network": (make_pipeline(StandardScaler(), network("logistic", 8)), Y),
    "columns": (
        make_pipeline(
            make_column_transformer((StandardScaler(), ["b", "d"]), (MinMaxScaler(), ["a"]), remainder="passthrough"),
            LogisticRegression(),
        ),
        Y,
    ),
    "tuned": (GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}), Y),
}
OTHERS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=3),
    "bayes": GaussianNB(),
    "products": make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()),
    "clipped": make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
    "kernel": make_pipeline(StandardScaler(), SVC()),
    "calibrated": CalibratedClassifierCV(LogisticRegression()),
    "one against the rest": SGDClassifier(loss="modified_huber", random_state=0),
    "log-linear": PoissonRegressor(),
}


def found(fitted: Any, label: pd.Series, rows: pd.DataFrame = X) -> tuple[Layers | None, Array]:
    """The layers of a fitted model, and its probabilities at the rows."""
    source, computing = Source("rows", rows.assign(y=label)), Computing()
    with load_model(fitted, False, computing) as model:
        model = model.of_labels([0, 1])
        encoding = encoding_of(source, list(rows), True)
        made = predictor(model, source.inputs(list(rows)), computing)
        answers = answered(made, rows, "rows", "auto", decoded=encoding.decoded)
        return layers_of(made.model, answers, encoding, rows.to_numpy()), answers.probabilities(rows.to_numpy())


@pytest.mark.parametrize("name", MODELS)
def test_the_layers_have_the_models_probabilities_and_the_gradient_of_their_loss(name: str) -> None:
    model, label = MODELS[name]
    fitted = model.fit(X, label)
    layers, expected = found(fitted, label)
    assert layers is not None
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_allclose(expected, fitted.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(softmax(layers.scores(X.to_numpy()), axis=1), expected, atol=1e-9)
    x, y, step = X.to_numpy(), label.to_numpy(), 1e-6
    loss, gradient = layers.loss_and_gradient(x, y)
    np.testing.assert_allclose(loss, -np.log(expected[np.arange(len(y)), y]), rtol=1e-6, atol=1e-9)
    moved = [
        (layers.loss_and_gradient(x + step * axis, y)[0] - layers.loss_and_gradient(x - step * axis, y)[0]) / (2 * step)
        for axis in np.eye(4)
    ]
    np.testing.assert_allclose(gradient, np.stack(moved, axis=1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_model_has_no_layers(name: str) -> None:
    assert found(OTHERS[name].fit(X, Y), Y)[0] is None


def test_columns_in_another_order_and_arrays_have_the_same_layers() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    one, other = found(model, Y)[0], found(model, Y, X[list("dcba")])[0]
    array = found(make_pipeline(StandardScaler(), LogisticRegression()).fit(X.to_numpy(), Y), Y)[0]
    assert one is not None
    assert other is not None
    assert array is not None
    np.testing.assert_allclose(one.weights[0], other.weights[0][::-1])
    np.testing.assert_allclose(one.weights[0], array.weights[0])


def test_a_loss_below_the_smallest_probability_keeps_its_digits() -> None:
    layers = Layers((np.array([[0.0, 1.0]]),), (np.zeros(2),))
    loss, gradient = layers.loss_and_gradient(np.array([[50.0], [800.0], [-800.0]]), np.ones(3, int))
    np.testing.assert_allclose(loss, [np.exp(-50.0), 0.0, 800.0], rtol=1e-12)
    np.testing.assert_allclose(gradient[:, 0], [-np.exp(-50.0), 0.0, -1.0], rtol=1e-12)


def test_the_audit_follows_the_closed_form_and_its_errors_are_the_models_own() -> None:
    model = FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.3).fit(X, Y)
    made = fa.loss_ratio(model, X, Y, directions=[0, 1, 0, 0], standardize="continuous", steps=50)
    assert made.facts["search"] == {"engine": "gradient", "gradient": "closed form"}
    wrong = made.facts["results"]["error_rate_ratio"]["wrong_before"]
    assert wrong == (model.predict(X) != Y).sum()
