"""The loss-ratio audit: whom it rejects, what its rows say, and that nothing depends on how jobs are batched."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, gradient_flow, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import learn, principal_angles
from fairness_audits.group_metrics import average_odds_difference
from fairness_audits.models import mlp
from fairness_audits.models.logistic_mixture import regressions
from fairness_audits.values import Classifier, Dataset
from pipeline.audits import loss_ratio
from pipeline.values import AuditResult
from tests.attacks.builders import network
from tests.builders import chosen, shipped
from tests.builders import dataset as toy

CONFIG = loss_ratio.Config(**shipped("audit", "loss_ratio") | {"steps": 60, "record": [10, 30, 60]})


def dataset(repetitions: int = 1, d: int = 4) -> Dataset:
    """Sex and race each shift one feature; the label depends on the last; the first column is not standardised yet."""
    rng, n = np.random.default_rng(0), 600
    groups = {name: rng.integers(0, 2, n) for name in ("sex", "race")}
    x = rng.normal(size=(n, d))
    x[:, 0] += groups["sex"]
    x[:, 1] += groups["race"]
    label = (x[:, -1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    x[:, 0] = 30 + 10 * x[:, 0]
    order = np.stack([rng.permutation(n) for _ in range(repetitions)])
    return toy(x, label, groups, order[:, :300], order[:, 300:], continuous=("x0",))


def networks(repetitions: int = 1) -> Classifier:
    return Classifier("random", "toy", "simulated", "mlp", network(1, repetitions, d=4, hidden=6))


def logistic(*coefficients: list[float], **index: list[float]) -> Classifier:
    parameters = regressions(np.array(coefficients, dtype=float), np.zeros(len(coefficients)))
    places = {name: np.array(values) for name, values in index.items()}
    return Classifier("given", "toy", "simulated", "logistic_mixture", parameters, index=places)


def audit(data: Dataset, classifier: Classifier, **changes: Any) -> AuditResult:
    return loss_ratio.run(data, classifier, replace(CONFIG, **changes), ())


def value(result: AuditResult, **setting: Any) -> np.ndarray:
    return chosen(result.rows, **setting)["value"].to_numpy()


def test_a_classifier_that_uses_the_sensitive_features_is_rejected_and_one_that_does_not_is_not() -> None:
    result = audit(dataset(), logistic([3, 3, 0, 2], [0, 0, 0, 2]), steps=300, record=[300])
    assert value(result, statistic="rejected").tolist() == [1, 0]
    assert value(result, statistic="error_rejected").tolist() == [1, 0]
    unfair, fair = value(result, statistic="T_n")
    assert unfair > 2
    assert 0.9 < fair < 1.25


def test_the_statistics_are_those_of_the_plain_attack_on_the_standardised_test_rows() -> None:
    data, classifier = dataset(2), networks(2)
    result = audit(data, classifier)
    batch = data.batch("test")
    for r in range(2):
        own = {name: values[r] for name, values in classifier.parameters.items()}
        x, y = batch.features[r], batch.label[r]
        metric = learn(x, {name: groups[r] for name, groups in batch.protected.items()})
        hook = lambda z, own=own, y=y: mlp.loss_and_gradient(own, z, y)  # noqa: E731
        flow = gradient_flow(hook, x, Plan(metric, 50.0, step_schedule("constant", 0.01, 0, 60), [10, 30, 60]))
        expected = loss_ratio_test(flow.original_loss, flow.losses, 1.25, 0.05)
        np.testing.assert_allclose(value(result, statistic="T_n", repetition=r), expected.statistic, rtol=1e-9)
        np.testing.assert_allclose(value(result, statistic="p_value", repetition=r), expected.p_value, atol=1e-9)


def test_a_list_runs_the_product_in_one_job() -> None:
    lists: dict[str, Any] = {
        "regularization": [20.0, 50.0], "step_size": [0.005, 0.01], "metric_split": ["test", "train"],
    }  # fmt: skip
    together = audit(dataset(), networks(), **lists).rows
    assert not together.duplicated(subset=[c for c in together if c != "value"]).any()
    for values in product(*lists.values()):
        single = dict(zip(lists, values, strict=True))
        alone, same = (
            chosen(rows[rows["steps"].notna()], **single).reset_index(drop=True)
            for rows in (audit(dataset(), networks(), **single).rows, together)
        )
        pd.testing.assert_frame_equal(alone, same)


def test_given_metrics_run_over_angles_and_learned_ones_over_splits() -> None:
    whole = dataset()
    plane = replace(whole, features=whole.features[:, [0, 3]], feature_names=("x0", "x3"))
    classifier = logistic([2.0, 1.0], [0.0, 1.0], theta_1=[2.0, 0.0], theta_2=[1.0, 1.0])
    rows = audit(plane, classifier, metric=["rotated", "learned"], angle=[0, 30], steps=5, record=[5]).rows
    found = chosen(rows, statistic="T_n", repetition=0)[["metric", "metric_split", "angle"]].fillna(-1)
    expected = [("learned", "test", -1), ("rotated", "", 0), ("rotated", "", 30)]
    assert sorted(found.itertuples(index=False, name=None)) == expected
    # The classifiers' own index travels with every row, and one split serves both.
    assert set(zip(rows["repetition"], rows["theta_1"], rows["theta_2"], strict=True)) == {(0, 2.0, 1.0), (1, 0.0, 1.0)}


def test_the_attack_stops_at_the_last_recorded_step_and_record_is_cut_at_steps() -> None:
    data, classifier = dataset(), networks()
    rows = audit(data, classifier, steps=40).rows
    assert sorted(set(rows["steps"].dropna())) == [10, 30, 40]
    longer = audit(data, classifier, steps=1000, record=[10, 30, 40]).rows
    pd.testing.assert_frame_equal(rows, longer)


def test_a_setting_beyond_the_stability_limit_leaves_a_gap() -> None:
    data, classifier = dataset(), networks()
    rows = audit(data, classifier, step_size=[0.03, 0.01]).rows
    gap = chosen(rows, step_size=0.03).groupby("statistic")["value"]
    assert gap.max()[["n", "non_finite"]].tolist() == [0, 300]
    undecided = gap.count()[["T_n", "error_T_n", "p_value", "rejected", "error_rejected"]]
    assert (undecided == 0).all()
    there = chosen(rows, step_size=0.01).reset_index(drop=True)
    assert set(chosen(there, statistic="rejected")["value"]) <= {0.0, 1.0}
    alone = chosen(audit(data, classifier).rows, step_size=0.01)
    pd.testing.assert_frame_equal(there, alone.reset_index(drop=True))
    with pytest.raises(ValueError, match=r"step size 0\.03 is unstable for regularization 50: .* = 0\.02"):
        audit(data, classifier, step_size=[0.03, 0.04])


def test_steps_on_the_stability_limit_are_run() -> None:
    assert np.isfinite(value(audit(dataset(), networks(), step_size=[0.02, 0.01]), statistic="T_n")).all()


def test_once_for_each_repetition_there_are_group_metrics_angles_and_undefined_errors() -> None:
    data, classifier = dataset(2), networks(2)
    result = audit(data, classifier, metric_split=["test", "train"])
    batch, other = data.batch("test"), data.batch("train")
    predicted = mlp.predict(classifier.parameters, batch.features)
    expected = average_odds_difference(batch.label, predicted, batch.protected["race"])
    np.testing.assert_array_equal(value(result, statistic="aod_race"), expected)
    np.testing.assert_array_equal(value(result, statistic="accuracy"), (predicted == batch.label).mean(axis=1))
    for r in range(2):
        metrics = [learn(b.features[r], {k: v[r] for k, v in b.protected.items()}) for b in (batch, other)]
        found = [value(result, statistic=f"principal_angle_{i}", repetition=r)[0] for i in (1, 2)]
        np.testing.assert_allclose(found, principal_angles(*metrics), atol=1e-8)
    assert not audit(data, classifier).rows["statistic"].str.startswith("principal_angle").any()
    assert set(value(result, statistic="undefined_errors")) == {0.0}


def test_a_classifier_without_errors_has_no_error_rate_ratio() -> None:
    data = dataset()
    # Make the labels those of the classifier.
    label = data.label.copy()
    label[data.test[0]] = data.batch("test").features[0, :, 3] > 0
    result = audit(replace(data, label=label), logistic([0, 0, 0, 5.0]))
    assert value(result, statistic="undefined_errors").tolist() == [1]
    assert np.isnan([value(result, statistic=name) for name in ("error_T_n", "error_rejected")]).all()
    assert np.isfinite(value(result, statistic="T_n")).all()


def test_fewer_points_are_the_first_test_rows_with_the_metric_of_all() -> None:
    data, classifier = dataset(), networks()
    whole, part = audit(data, classifier), audit(data, classifier, points=100)
    assert set(value(part, statistic="n")) == {100.0}
    batch = data.batch("test")
    metric = learn(batch.features[0], {name: groups[0] for name, groups in batch.protected.items()})
    plan = Plan(metric, 50.0, step_schedule("constant", 0.01, 0, 60), [60])
    flow = unfair_map(classifier, batch.features[:, :100], batch.label[:, :100], plan)
    expected = loss_ratio_test(flow.original_loss, flow.losses, 1.25, 0.05).statistic
    np.testing.assert_allclose(value(part, statistic="T_n", steps=60), expected.ravel(), rtol=1e-9)
    assert value(part, statistic="accuracy") == value(whole, statistic="accuracy")
