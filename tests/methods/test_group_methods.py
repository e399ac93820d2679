"""Reweighing makes group and label independent; the threshold optimizer is fairlearn's, and reads the group."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.linear_model import LogisticRegression

from fairness_audits.models import logistic_mixture, thresholds
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline.methods import logistic, reweighing, threshold_optimizer
from pipeline.methods.reductions import crossed_groups
from pipeline.predictions import scores_of
from tests.builders import settings
from tests.errors import invalid
from tests.methods.builders import population

RNGS = generators("groups", repetitions=2)
REGRESSION: dict[str, Any] = {"validation_fraction": 0.25, "inverse_penalties": [1.0]}


def optimizer(**values: object) -> threshold_optimizer.Config:
    return threshold_optimizer.Config(**settings("threshold_optimizer", **REGRESSION, **values))


def with_others(data: Dataset, every: int = 5) -> Dataset:
    """The same, one row in ``every`` in neither group of race."""
    race = np.where(np.arange(len(data.label)) % every == 0, -1, data.protected["race"])
    return replace(data, protected={**data.protected, "race": race})


def test_weights_make_group_and_label_independent_and_keep_both_margins() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 400)
    label = (rng.random(400) < 0.2 + 0.2 * group).astype(np.int64)
    weight = reweighing.weights(group, label)
    assert weight.sum() == pytest.approx(400)
    for g in range(3):
        assert weight[group == g].sum() == pytest.approx((group == g).sum())
        share = weight[(group == g) & (label == 1)].sum() / weight[group == g].sum()
        assert share == pytest.approx(label.mean())
    # A share of a quarter in a group of a half, where independence asks for an eighth.
    assert reweighing.weights(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])).tolist() == [1.5, 0.5, 0.75, 0.75]


@pytest.mark.parametrize("others", [False, True])
def test_reweighing_is_a_weighted_regression_and_lowers_the_groups_difference(others: bool) -> None:
    data = with_others(population(n=2000)) if others else population(n=2000)
    found = reweighing.fit(data, reweighing.Config(**REGRESSION), RNGS)
    plain = logistic.fit(data, logistic.Config(**REGRESSION), RNGS)
    train = data.batch("train")
    group = crossed_groups({name: values[0] for name, values in train.protected.items()})
    weight = reweighing.weights(group, train.label[0])
    cut = 1500 * 3 // 4
    expected = LogisticRegression(solver="newton-cholesky", tol=1e-6, max_iter=1000).fit(
        train.features[0][:cut], train.label[0][:cut], weight[:cut]
    )
    np.testing.assert_allclose(found.parameters["coef"][0, 0], expected.coef_[0], rtol=1e-6)
    score = [logistic_mixture.score(one.parameters, train.features) for one in (found, plain)]
    for r in range(2):
        reweighed, own = (threshold_optimizer.spread(s[r], train.protected["sex"][r]) for s in score)
        assert reweighed < own / 2


@pytest.mark.parametrize("constraint", threshold_optimizer.CONSTRAINTS)
@pytest.mark.parametrize("others", [False, True])
def test_the_probability_is_fairlearn_s_and_the_rates_of_the_groups_are_equal(constraint: str, others: bool) -> None:
    data = with_others(population(n=1600)) if others else population(n=1600)
    found = threshold_optimizer.fit(data, optimizer(constraint=constraint), RNGS)
    assert found.reads == ("sex", "race")
    read = data.with_inputs(found.reads)
    train, x = data.batch("train"), read.batch("train").features
    probability = thresholds.score(found.parameters, x)
    for r in range(2):
        group = crossed_groups({name: values[r] for name, values in train.protected.items()})
        cut = 1200 * 3 // 4
        regression = LogisticRegression(solver="newton-cholesky", tol=1e-6, max_iter=1000)
        regression.fit(train.features[r][:cut], train.label[r][:cut])
        theirs = ThresholdOptimizer(
            estimator=regression, prefit=True, predict_method="decision_function", constraints=constraint
        ).fit(train.features[r], train.label[r], sensitive_features=group)
        expected = theirs._pmf_predict(train.features[r], sensitive_features=group)[:, 1]
        np.testing.assert_allclose(probability[r], expected, atol=1e-12)
        among = {"true_positive_rate_parity": [1], "false_positive_rate_parity": [0]}.get(constraint, [0, 1])
        conditions = [[y] for y in among] if constraint == "equalized_odds" else [among]
        for labels in conditions:
            rows = np.isin(train.label[r], labels)
            assert threshold_optimizer.spread(probability[r][rows], group[rows]) < 0.02
        drawn = (probability[r] > 0) & (probability[r] < 1)
        assert found.facts["drawn"][r] == pytest.approx(drawn.mean())
    np.testing.assert_array_equal(thresholds.predict(found.parameters, x), probability > 0.5)


def test_a_tolerance_lets_the_rates_differ_by_so_much() -> None:
    data = population(n=1600, proxy=2.0)
    equal, apart = (threshold_optimizer.fit(data, optimizer(tolerance=t), RNGS[:1]).facts for t in (None, 0.1))
    assert equal["parity_drawn"][0] < 0.01 < apart["parity_drawn"][0] <= 0.1 + 0.01


def test_a_group_decides_alone_between_its_thresholds() -> None:
    """Between the thresholds of the two groups a row is positive in the one and not in the other, elsewhere alike."""
    parameters = {
        "coef": np.array([[1.0, 0.0]]),
        "read": np.array([[1]]),
        "intercept": np.zeros(1),
        "group": np.array([[[0.0], [1.0]]]),
        "threshold": np.array([[[0.0, 0.0], [2.0, 1.0]]]),
        "weight": np.array([[[1.0, 0.0], [0.25, 0.5]]]),
        "constant": np.array([[0.0, 0.125]]),
    }
    x = np.array([[[-1, 0], [0.5, 0], [3, 0], [-1, 1], [0.5, 1], [1.5, 1], [3, 1]]])
    assert thresholds.score(parameters, x).tolist() == [[0, 1, 1, 0.125, 0.125, 0.625, 0.875]]
    assert thresholds.predict(parameters, x).tolist() == [[0, 1, 1, 0, 0, 1, 1]]
    with invalid():
        thresholds.score(parameters, np.array([[[0.0, -1.0]]]))


def test_what_a_classifier_reads_is_a_feature_of_the_data_it_is_audited_on() -> None:
    data = population()
    read = data.with_inputs(("race", "sex"))
    assert read.feature_names[-2:] == ("race", "sex") == read.sensitive_inputs
    np.testing.assert_array_equal(read.batch("test").features[..., -1], data.batch("test").protected["sex"])
    assert data.with_inputs(()) is data
    assert read.with_inputs(("race",)) is read
    with invalid(option="attributes", column="age"):
        data.with_inputs(("age",))
    other = replace(read, features=read.features + 1)
    with invalid(column="race"):
        other.with_inputs(("race",))
    with pytest.raises(ValueError, match="equalized_odds has no tolerance"):
        optimizer(constraint="equalized_odds", tolerance=0.1)
    inputs = population(sensitive_inputs=True)
    assert threshold_optimizer.fit(inputs, optimizer(), RNGS).parameters["read"].tolist() == [[0, 1], [0, 1]]
    found = threshold_optimizer.fit(data, optimizer(), RNGS)
    batch, score = scores_of(data.with_inputs(found.reads), found, "test")
    np.testing.assert_array_equal(score, thresholds.score(found.parameters, batch.features))


@pytest.mark.parametrize(
    ("a", "b", "expected"), [([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 2, 3]), ([0, 1, -1, -1], [0, 0, 0, 1], [1, 2, 0, 3])]
)
def test_every_combination_of_protected_values_is_a_group_and_neither_group_a_third(
    a: list[int], b: list[int], expected: list[int]
) -> None:
    assert crossed_groups({"a": np.array(a), "b": np.array(b)}).tolist() == expected
