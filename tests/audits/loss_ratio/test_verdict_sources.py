"""Where a verdict comes from: the cells are loss-ratio tests, and each factor counts if and only if it matters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Plan, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import learn
from fairness_audits.models.logistic_mixture import regressions
from fairness_audits.values import Classifier, Dataset
from pipeline.audits import verdict_sources
from pipeline.audits.verdict_sources import ALL, PUBLISHED, Cells
from pipeline.crossed import EVERYTHING
from tests.attacks.builders import network
from tests.builders import chosen, shipped
from tests.builders import dataset as toy
from tests.errors import invalid

SMALL = {"record": [20, 40], "metric_samples": 3, "audit_samples": 4}
CONFIG = verdict_sources.Config(**shipped("audit", "verdict_sources") | SMALL)


def dataset(splits: int = 1, trainings: int = 2) -> Dataset:
    """Sex and race shift one feature each. All rows differ."""
    rng, n = np.random.default_rng(0), 400
    groups = {name: rng.integers(0, 2, n) for name in ("sex", "race")}
    x = rng.normal(size=(n, 4))
    x[:, 0] += groups["sex"]
    x[:, 1] += groups["race"]
    label = (x[:, -1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    order = np.repeat([rng.permutation(n) for _ in range(splits)], trainings, axis=0)
    return toy(x, label, groups, order[:, :240], order[:, 240:])


def networks(count: int) -> Classifier:
    return Classifier("random", "toy", "simulated", "mlp", network(1, count, d=4, hidden=6))


def facts(data: Dataset, classifier: Classifier, **changes: Any) -> Any:
    rngs = [np.random.default_rng(r) for r in range(classifier.repetitions)]
    return verdict_sources.run(data, classifier, replace(CONFIG, **changes), rngs).rows


def test_each_cell_is_the_test_of_its_levels() -> None:
    """The axes are metric sample, model, audit sample and point; points go through the steps first."""
    data, classifier = dataset(), networks(2)
    ((_, cells),) = verdict_sources._experiments(
        replace(data, train=data.train[:1], test=data.test[:1]),
        classifier,
        replace(CONFIG, sources=["others"]),
        np.random.default_rng(7),
    )
    assert cells.statistic.shape == (3, 2, 4, 8)
    rng, held_out = np.random.default_rng(7), data.batch("test", 1)
    audited = rng.integers(80, size=(4, 80))
    sampled = rng.integers(80, size=(3, 80))
    features, label = held_out.features[0], held_out.label[0]
    others = {name: values[0, 80:] for name, values in held_out.protected.items()}
    metric = learn(features[80:][sampled[2]], {name: values[sampled[2]] for name, values in others.items()})
    plan = Plan(metric, 50.0, step_schedule("constant", 0.005, 0.0, 40), [20, 40])
    one = replace(classifier, parameters={name: array[1:] for name, array in classifier.parameters.items()})
    rows = audited[3]
    flow = unfair_map(one, features[None, rows], label[None, rows], plan)
    test = loss_ratio_test(flow.original_loss[0], flow.losses[0, 1], 1.25, 0.05)
    assert cells.statistic[2, 1, 3, 3] == pytest.approx(float(test.statistic))
    assert cells.rejected[2, 1, 3, 3] == float(test.rejected)
    assert cells.error[2, 1, 3, 3] == pytest.approx(float(test.std / test.mean) / np.sqrt(80))


def test_every_split_has_every_number_and_the_shares_are_parts_of_one() -> None:
    rows = facts(dataset(splits=2), networks(4))
    assert set(rows["metric_rows"]) == set(CONFIG.sources)
    assert not rows.duplicated(["repetition", "metric_rows", "points", "statistic", "effect"]).any()
    assert rows["value"].notna().all()
    shares = chosen(rows, statistic="share").groupby(["repetition", "metric_rows", "points"])["value"]
    assert len(shares) == 2 * 4 * 2
    assert shares.sum().to_numpy() == pytest.approx(1)
    assert shares.size().unstack("points").drop_duplicates().to_dict("records") == [{ALL: 15, PUBLISHED: 7}]


def test_a_split_does_not_depend_on_the_number_of_splits() -> None:
    four = networks(4)
    first = replace(four, parameters={name: array[:2] for name, array in four.parameters.items()})
    one, two = facts(dataset(splits=1), first), facts(dataset(splits=2), four)
    assert one["value"].tolist() == two.loc[two["repetition"] == 0, "value"].tolist()


def test_equal_models_are_one_level_and_other_models_are_a_factor() -> None:
    parameters = {name: np.repeat(array, 2, axis=0) for name, array in network(1, 1, d=4, hidden=6).items()}
    rows = facts(dataset(), Classifier("same", "toy", "simulated", "mlp", parameters))
    assert not any("model" in effect for effect in rows["effect"].dropna())
    assert "model" in set(facts(dataset(), networks(2))["effect"])


def test_a_model_that_ignores_its_inputs_has_no_spread_and_one_verdict() -> None:
    rows = facts(
        dataset(),
        Classifier("constant", "toy", "simulated", "logistic_mixture", regressions(np.zeros((2, 4)), np.zeros(2))),
    )
    assert chosen(rows, statistic="spread")["value"].to_numpy() == pytest.approx(0, abs=1e-12)
    assert not chosen(rows, statistic="reversals")["value"].any()
    assert not chosen(rows, statistic="rejected")["value"].any()


def test_cells_without_a_positive_statistic_are_counted_and_their_verdicts_are_known() -> None:
    statistic = np.random.default_rng(1).uniform(1, 2, size=(3, 2, 4, 1))
    statistic[0, 1, 2, 0] = -0.1
    cells = Cells(statistic, (statistic > 1.25).astype(float), 0.01 * statistic)
    found = {(row["statistic"], row.get("effect")): row["value"] for row in verdict_sources._facts(cells)}
    assert found["not_positive", None] == 1
    assert np.isnan([found["log_T_n", None], found["spread", "metric"], found["share", "metric x audit"]]).all()
    assert 0 < found["reversals", EVERYTHING] < 1


def test_splits_with_different_numbers_of_models_are_refused() -> None:
    with invalid(option="repetitions"):
        facts(dataset(splits=2), networks(3))
