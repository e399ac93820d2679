"""The population has the metric that it says, and each way to a metric is tested on the audited people."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from fairness_audits.fair_metric import learn, sensitive_directions
from fairness_audits.models.logistic_mixture import regressions
from fairness_audits.values import Classifier, Dataset
from pipeline.audits import learned_metric
from pipeline.audits.learned_metric import AUDITED, CROSS_FITTED, KNOWN, OTHERS, Population
from tests.builders import chosen, shipped
from tests.builders import dataset as toy

SMALL = {"steps": 40, "relative_rows": [1, 64], "metric_samples": 3, "audit_samples": 50, "learned_samples": 5}
CONFIG = learned_metric.Config(**shipped("audit", "learned_metric") | SMALL)
N = 1200


def dataset(splits: int = 1) -> Dataset:
    """Sex shifts the first feature and race the second one; the label follows the last one."""
    rng = np.random.default_rng(0)
    groups = {name: rng.integers(0, 2, N) for name in ("sex", "race")}
    x = rng.normal(size=(N, 4))
    x[:, 0] += groups["sex"]
    x[:, 1] += groups["race"]
    label = (x[:, -1] + rng.normal(size=N) > 0).astype(int)
    order = np.stack([rng.permutation(N) for _ in range(splits)])
    return toy(x, label, groups, order[:, :400], order[:, 400:])


def classifier(*weights: list[float]) -> Classifier:
    """Logistic regressions, one for each split."""
    coef = np.array(weights)
    return Classifier("given", "toy", "simulated", "logistic_mixture", regressions(coef, np.zeros(len(coef))))


def fair(data: Dataset) -> Classifier:
    """A regression that ignores the sensitive directions of the population."""
    train = data.batch("train", 1)
    metric = learn(train.features[0], {name: values[0] for name, values in train.protected.items()})
    return classifier((metric.matrix @ [0.0, 0.0, 0.0, 2.0]).tolist())


def population(data: Dataset, model: Classifier) -> Population:
    (found,) = learned_metric.populations(data, model, CONFIG)
    return found


def rows_of(data: Dataset, model: Classifier, **changes: Any) -> Any:
    rngs = [np.random.default_rng(r) for r in range(model.repetitions)]
    return learned_metric.run(data, model, replace(CONFIG, **changes), rngs).rows


def test_the_attributes_have_the_logistic_model_of_the_training_rows() -> None:
    """Regressions with an unpenalised intercept predict the share of their own rows exactly."""
    data = dataset()
    found, train = population(data, fair(data)), data.batch("train", 1)
    for (name, values), w in zip(train.protected.items(), found.metric.directions, strict=True):
        score, b = train.features[0] @ w, learned_metric.intercept(train.features[0] @ w, values.mean())
        assert expit(score + b).mean() == pytest.approx(values.mean())
        assert found.chances[name] == pytest.approx(expit(found.features @ w + b))


def test_a_person_who_counts_twice_is_two_people() -> None:
    rng = np.random.default_rng(1)
    x, group, counts = rng.normal(size=(60, 3)), rng.integers(0, 2, 60), rng.integers(1, 4, 60)
    many = sensitive_directions(np.repeat(x, counts, axis=0), {"sex": np.repeat(group, counts)})
    assert sensitive_directions(x, {"sex": group}, counts=counts) == pytest.approx(many, rel=1e-8)


def test_a_metric_of_very_many_people_is_the_known_one() -> None:
    data = dataset()
    found = population(data, fair(data))
    learned = found.learned(np.full(len(found.label), 1_000_000), np.random.default_rng(2))
    assert learned.directions == pytest.approx(found.metric.directions, abs=0.002)


def test_each_way_to_a_metric_is_tested_on_the_audited_people() -> None:
    """The draws of the generator, in their order."""
    data = dataset()
    found = population(data, fair(data))
    ways = {(name, relative): test for name, relative, test in learned_metric._ways(found, np.random.default_rng(3))}
    assert [name for name, _ in ways] == [KNOWN, AUDITED, CROSS_FITTED, OTHERS, OTHERS]
    tests = list(ways.values())
    assert [test.statistic.shape for test in tests] == [(1, 50), (1, 5), (1, 5), (3, 50), (3, 50)]
    rng = np.random.default_rng(3)
    drawn = rng.integers(800, size=(50, 400))
    of_all = found.attacked(slice(None), found.metric)
    known = found.tested((of_all[0][drawn[7]], of_all[1][drawn[7]]))
    assert tests[0].statistic[0, 7] == pytest.approx(float(known.statistic))
    own = found.attacked(drawn[0], found.learned(np.bincount(drawn[0], minlength=800), rng))
    assert tests[1].statistic[0, 0] == pytest.approx(float(found.tested(own).statistic))


def test_a_fair_model_has_a_ratio_near_one_under_the_known_metric_and_a_larger_one_under_learned_metrics() -> None:
    data = dataset()
    rows = rows_of(data, fair(data))
    assert 1 <= chosen(rows, statistic="truth")["value"].item() < 1.1
    error = chosen(rows, statistic="log_error").set_index(["metric_rows", "relative_rows"])["value"]
    assert error[AUDITED].item() > error[KNOWN].item()
    assert error[OTHERS, 1] > error[OTHERS, 64] > error[KNOWN].item() - 0.01
    spread = chosen(rows, statistic="log_spread", effect="metric").set_index("relative_rows")["value"]
    assert spread[1] > spread[64]


def test_an_unfair_model_is_rejected_below_its_ratio_and_not_above_it() -> None:
    rows = rows_of(dataset(), classifier([2.0, 1.0, 0.0, 1.0]), delta_over_truth=[0.5, 1.0, 2.0])
    rates = chosen(rows, statistic="rejection_rate", metric_rows=KNOWN).set_index("delta_over_truth")["value"]
    assert rates[0.5] == 1
    assert rates[1.0] < 0.25
    assert rates[2.0] == 0


def test_a_split_does_not_depend_on_the_number_of_splits() -> None:
    data = dataset(2)
    first = replace(data, train=data.train[:1], test=data.test[:1])
    two, one = rows_of(data, classifier([1.0, 0, 0, 1], [0, 1.0, 0, 1])), rows_of(first, classifier([1.0, 0, 0, 1]))
    assert one["value"].tolist() == two.loc[two["repetition"] == 0, "value"].tolist()
