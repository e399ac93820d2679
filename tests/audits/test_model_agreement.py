"""Agreement of audits on many models: each effect is that of the library's audit, and equal models are compared."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.audits.fliptest.core import People, sizes_between_halves
from fairness_audits.audits.inference import Precision
from fairness_audits.audits.permutation.core import tested as permutation_test
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.robustness_bias.core import robustness_bias
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.models import mlp
from fairness_audits.models.logistic_mixture import regressions
from fairness_audits.seeds import generators
from fairness_audits.transport import exact
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.audits import loss_ratio, model_agreement, tabular_robustness
from pipeline.audits.model_agreement import ACCURACY, ALL, EQUAL, NETWORKS, RANDOM, REGRESSIONS, Effects, Halves
from pipeline.counterparts import Between, directions, fitted, mapped
from pipeline.methods.model_paths import as_network
from pipeline.rank_agreement import agreement
from pipeline.values import AuditResult
from tests.attacks.builders import network
from tests.builders import chosen, number, shipped
from tests.builders import dataset as toy

SMALL = {"steps": 30, "transport_people": 100, "noise_deals": 3, "noise_people": 20, "points": 60}
CONFIG = model_agreement.Config(**shipped("audit", "model_agreement") | SMALL)
COEF, INTERCEPT = np.array([[1.0, 0.3, -0.2, 0.8], [0.1, 0.2, 0.4, 0.9]]), np.array([-0.6, 0.1])
HIDDEN = 6


def dataset(splits: int = 1) -> Dataset:
    rng, n = np.random.default_rng(0), 500
    groups = {name: rng.integers(0, 2, n) for name in ("sex", "race")}
    x = rng.normal(size=(n, 4))
    x[:, 0] += groups["sex"]
    x[:, 1] += groups["race"]
    label = (x[:, -1] + 0.5 * x[:, 0] + rng.normal(size=n) > 0.3).astype(int)
    order = np.array([rng.permutation(n) for _ in range(splits)])
    return toy(x, label, groups, order[:, :200], order[:, 200:])


def models(splits: int = 1, networks: int = 2) -> Classifier:
    """Two regressions and a few networks in each split, the networks of all splits different."""
    linear = [as_network(*one, HIDDEN) for one in zip(COEF, INTERCEPT, strict=True)]
    found = [*linear]
    parameters = []
    for split in range(splits):
        parameters += [*found, network(split, networks, d=4, hidden=HIDDEN)]
    joined = {name: np.concatenate([one[name] for one in parameters]) for name in ("w1", "b1", "w2", "b2")}
    count = len(COEF) + networks
    facts = {"network": np.tile([0.0] * len(COEF) + [1.0] * networks, splits)}
    index = {"split": np.repeat(np.arange(splits), count), "path": np.tile(np.arange(count), splits)}
    return Classifier("model_paths", "toy", "simulated", "mlp", joined, facts=facts, index=index)


DATA, MODELS = dataset(), models()
HALVES = model_agreement.halved(DATA, MODELS, np.arange(4), 0)


def effects(halves: Halves = HALVES) -> dict[str, Effects]:
    return model_agreement.measured(halves, CONFIG, np.random.default_rng(5))


def decide(model: int, points: Array) -> Array:
    own = {name: values[[model]] for name, values in MODELS.parameters.items()}
    return mlp.predict(own, points[None])[0]


EFFECTS = effects()


def test_the_halves_share_no_row_and_are_all_held_out_rows() -> None:
    one, other = HALVES.dataset.test
    assert sorted([*one, *other]) == sorted(DATA.test[0])
    assert HALVES.decision[1, 2].tolist() == decide(2, HALVES.batch.features[1]).tolist()


def test_the_loss_ratio_is_that_of_the_audit_of_a_logistic_regression() -> None:
    own = Classifier("given", "toy", "simulated", "logistic_mixture", regressions(COEF, INTERCEPT))
    settings = shipped("audit", "loss_ratio") | {"steps": 30, "record": [30], "metric_split": "train"}
    for half in (0, 1):
        one = HALVES.dataset.test[[half, half]]
        data = replace(HALVES.dataset, test=one)
        rows = loss_ratio.run(data, own, loss_ratio.Config(**settings), []).rows
        for model in (0, 1):
            s, v, n = (number(rows, repetition=model, statistic=name) for name in ("S_n", "V_n", "n"))
            found = EFFECTS["loss_ratio"]
            assert found.unfairness[half, model] == pytest.approx(np.log(s) / np.log(1.25))
            assert found.error[half, model] == pytest.approx(v / np.sqrt(n) / s / np.log(1.25))


@pytest.mark.parametrize("audit", ["selection_rate", "tpr", "fpr"])
def test_a_gap_is_that_of_the_permutation_test(audit: str) -> None:
    label, group = HALVES.batch.label[1], HALVES.batch.protected["race"][1]
    for model in range(4):
        decision = decide(model, HALVES.batch.features[1])
        data = Predictions(label, decision.astype(float), 1 - group, ("1", "0"), prediction=decision)
        test = permutation_test(
            data, METRICS[audit], Settings("auto", "two-sided", 0.05, 99, 0.0), np.random.default_rng(0)
        )
        found = EFFECTS[f"{audit} race"]
        assert test.difference is not None
        assert found.unfairness[1, model] == pytest.approx(abs(test.difference) / 0.05)
        assert found.error[1, model] > 0


def test_flips_are_those_of_fliptest_less_its_noise_floor() -> None:
    """The same random numbers are drawn in the same order."""
    rng = np.random.default_rng(5)
    between = Between("sex", None, None, "test", 100, True)
    maps = fitted(HALVES.dataset, between, exact, exact.Config("squared_l1", "sample"), rng.spawn(2))
    expected = np.zeros((2, 4))
    for direction, *_ in directions(maps):
        for half, pair in enumerate(mapped(maps, HALVES.dataset, "test", 2, direction)):
            state = rng.bit_generator.state
            for model in range(4):
                rng.bit_generator.state = state
                people = People(pair.features, np.zeros(len(pair.rows)), decide(model, pair.features))
                flips = (people.decision != decide(model, pair.images)).mean()

                def again(points: Array, _: Array, model: int = model) -> People:
                    return People(points, np.zeros(len(points)), decide(model, points))

                floor, side = sizes_between_halves(people, np.arange(4), again, 20, 3, rng)
                expected[half, model] += (flips - floor.either.mean() / side) / 2
    assert EFFECTS["fliptest sex"].unfairness == pytest.approx(expected / 0.05)


def test_robustness_is_that_of_the_core_with_the_distances_of_the_study() -> None:
    steps = (CONFIG.fmn_steps, CONFIG.fmn_start_steps)
    own = regressions(COEF, INTERCEPT)
    for model in range(4):
        linear = model < len(COEF)
        # Networks are attacked on the first rows only.
        rows = slice(None if linear else CONFIG.points)
        x, label = HALVES.batch.features[0, rows], HALVES.batch.label[0, rows]
        correct = HALVES.decision[0, model, rows] == label
        parameters = {k: v[model] for k, v in (own if linear else MODELS.parameters).items()}
        distance = np.full(len(x), np.nan)
        kind: Any = "exact" if linear else "fmn"
        distance[correct] = tabular_robustness.distances(kind, parameters, x[correct], label[correct], *steps)
        groups = [Partition("sex", ("0", "1"), HALVES.batch.protected["sex"][0, rows])]
        found = robustness_bias(
            distance, correct, groups, None, Precision(0.05, 2, 9), np.random.default_rng(0), denominators=["correct"]
        )
        sigma = found.levels[0].sigma[1]
        expected = abs(np.log(1 + sigma)) / np.log(1.25)
        assert EFFECTS["robustness sex"].unfairness[0, model] == pytest.approx(expected, rel=1e-4)


def test_standard_errors_are_the_spread_over_new_people() -> None:
    """150 people in a half; distances are exponential, and twice as large in one group."""
    rng = np.random.default_rng(3)
    halves = replace(HALVES, network=np.zeros(300, bool))
    group = halves.batch.protected["sex"][:, None]
    distance = rng.exponential(1 + group, size=(2, 300, 150))
    decision = (rng.random((2, 300, 150)) < 0.3 + 0.4 * group).astype(int)
    for found in (
        model_agreement.robustness(halves, "sex", distance, CONFIG),
        model_agreement.gap(replace(halves, decision=decision), "sex", (0, 1), CONFIG),
    ):
        assert found.error.mean(axis=1) == pytest.approx(found.unfairness.std(axis=1), rel=0.1)


def test_facts_compare_models_of_one_kind_that_are_equally_accurate() -> None:
    rng, count = np.random.default_rng(4), 60
    truth = rng.normal(size=count)
    pair = {
        name: Effects(5 + sign * truth + 0.1 * rng.normal(size=(2, count)), np.full((2, count), 0.1))
        for name, sign in (("tpr sex", 1), ("fpr sex", -1))
    }
    network = np.arange(count) >= 30
    accuracy = np.tile(np.where(np.arange(count) % 3 == 0, 0.7, 0.8), (2, 1)) + 0.001 * rng.normal(size=(2, count))
    accuracy[:, network] += 0.1
    rows = pd.DataFrame([*model_agreement.facts(pair, accuracy, network, rows=1600)])
    assert number(rows, pool=REGRESSIONS, band=EQUAL, statistic="models") == 20
    assert number(rows, pool=NETWORKS, band=ALL, statistic="models") == 30
    inside = np.flatnonzero(~network & (accuracy[0] > 0.75))
    u = np.stack([one.unfairness for one in pair.values()], axis=1)[..., inside]
    expected = agreement(u[0], u[1], accuracy.mean(axis=0)[inside]).corrected[0, 1]
    found = number(rows, pool=REGRESSIONS, band=EQUAL, statistic="corrected", measure="tpr sex", other="fpr sex")
    assert found == pytest.approx(expected)
    assert found < -0.9
    picked = chosen(rows, pool=REGRESSIONS, statistic="chosen", other="fpr sex").set_index("measure")["value"]
    assert picked["fpr sex"] < picked[RANDOM] < picked["tpr sex"]
    assert picked[RANDOM] == pytest.approx(u[:, 1].mean())
    best = [accuracy[half][inside].argmax() for half in (0, 1)]
    assert picked[ACCURACY] == pytest.approx((u[1, 1, best[0]] + u[0, 1, best[1]]) / 2)


def test_each_split_has_its_own_rows_and_models() -> None:
    data, classifier = dataset(splits=2), models(splits=2, networks=12)

    def run(classifier: Classifier) -> AuditResult:
        return model_agreement.run(data, classifier, CONFIG, generators("audit", repetitions=classifier.repetitions))

    both = run(classifier)
    assert set(both.rows["repetition"]) == {0, 1}
    assert not both.rows.duplicated(["repetition", "pool", "band", "statistic", "measure", "other"]).any()
    assert both.arrays["unfairness"].shape == (2, 11, 2, 14)
    assert len(both.arrays["measures"]) == 11
    assert number(both.rows, repetition=1, pool=NETWORKS, band=ALL, statistic="models") == 12
    first = {name: values[:14] for name, values in classifier.parameters.items()}
    one = replace(
        classifier,
        parameters=first,
        facts={"network": classifier.facts["network"][:14]},
        index={"split": np.zeros(14, int)},
    )
    alone = run(one)
    assert (
        alone.rows["value"].fillna(-9).tolist()
        == both.rows.loc[both.rows["repetition"] == 0, "value"].fillna(-9).tolist()
    )
