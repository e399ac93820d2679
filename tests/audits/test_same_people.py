"""Whom an audit names agrees with the library's audit, and the numbers agree with who is named."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from fairness_audits.attacks.gradient_flow import Plan, gradient_flow, step_schedule
from fairness_audits.fair_metric import learn
from fairness_audits.group_metrics import positive_rate
from fairness_audits.models import mlp
from fairness_audits.seeds import generators
from fairness_audits.transport import exact
from fairness_audits.values import Array, Classifier, Dataset
from pipeline.audits import fliptest, same_people, tabular_robustness
from pipeline.audits.same_people import Named, facts, marked
from pipeline.counterparts import Between, fitted
from pipeline.raw_data.tabular import folded
from tests.attacks.builders import network
from tests.builders import dataset as toy
from tests.builders import number, shipped
from tests.errors import invalid

FOLDS, PARTITIONS, PEOPLE = 3, 2, 302
CONFIG = same_people.Config(**shipped("audit", "same_people") | {"steps": 30, "favourable": 0})


def dataset() -> Dataset:
    rng = np.random.default_rng(0)
    groups = {name: rng.integers(0, 2, PEOPLE) for name in ("sex", "race")}
    x = rng.normal(size=(PEOPLE, 4))
    x[:, 0] += groups["sex"]
    label = (x[:, -1] + 0.5 * x[:, 0] + rng.normal(size=PEOPLE) > 0.3).astype(int)
    order = np.array([rng.permutation(PEOPLE) for _ in range(PARTITIONS)])
    return toy(x, label, groups, *folded(order[:, :200], order[:, 200:], FOLDS))


DATA = dataset()
MODELS = Classifier("given", "toy", "simulated", "mlp", network(0, FOLDS * PARTITIONS, d=4, hidden=6))
RNGS = generators("audit", repetitions=FOLDS * PARTITIONS)
NAMED = marked(DATA, MODELS, CONFIG, generators("audit", repetitions=FOLDS * PARTITIONS))


def of_fold(name: str, repetition: int) -> Array:
    """The mark of an audit, by test row."""
    return NAMED.marks[name][repetition // FOLDS, DATA.test[repetition]]


def single(repetition: int) -> tuple[Dataset, Classifier]:
    here = slice(repetition, repetition + 1)
    own = {name: values[here] for name, values in MODELS.parameters.items()}
    return replace(DATA, train=DATA.train[here], test=DATA.test[here]), replace(MODELS, parameters=own)


def test_everybody_but_the_last_people_is_audited_once_in_each_partition() -> None:
    assert ((NAMED.fold >= 0).sum(axis=1) == PEOPLE - PEOPLE % FOLDS).all()
    for r, rows in enumerate(DATA.test):
        assert set(NAMED.fold[r // FOLDS, rows]) == {r % FOLDS}
    assert not any(mark[NAMED.fold < 0].any() for mark in NAMED.marks.values())


@pytest.mark.parametrize("repetition", [0, 4])
def test_the_marks_are_those_of_the_audits(repetition: int) -> None:
    data, model = single(repetition)
    own = {name: values[0] for name, values in model.parameters.items()}
    test, train = data.batch("test"), data.batch("train")
    metric = learn(train.features[0], {name: groups[0] for name, groups in train.protected.items()})
    schedule = step_schedule("constant", CONFIG.step_size, 0.0, CONFIG.steps)
    plan = Plan(metric, CONFIG.regularization, schedule, [CONFIG.steps])
    flow = gradient_flow(lambda z: mlp.loss_and_gradient(own, z, test.label[0]), test.features[0], plan)
    ratio = flow.losses[-1] / flow.original_loss
    tenth = round(0.1 * len(ratio))
    assert np.flatnonzero(of_fold("loss_ratio", repetition)).tolist() == sorted(np.argsort(-ratio)[:tenth])
    decision = mlp.predict(model.parameters, test.features)
    # The boundary of a network of six units is found from either side.
    distance = tabular_robustness.of_network(
        own, test.features[0], decision[0], CONFIG.fmn_steps, CONFIG.fmn_start_steps
    )
    nearest = np.argsort(distance, kind="stable")[:tenth]
    assert np.flatnonzero(of_fold("robustness", repetition)).tolist() == sorted(nearest)
    # With the better label 0, an error against a person is a false positive.
    among = test.label == 0
    assert of_fold("error", repetition)[among[0]].mean() == pytest.approx(positive_rate(decision, among)[0])
    assert not of_fold("error", repetition)[~among[0]].any()


def test_flips_are_those_of_fliptest() -> None:
    """The same random numbers are drawn in the same order."""
    data, model = single(1)
    rng = generators("audit", repetitions=FOLDS * PARTITIONS)[1]
    for attribute in data.protected:
        between = Between(attribute, None, None, "test", None, True)
        maps = fitted(data, between, exact, exact.Config("squared_l1", "sample"), rng.spawn(1))
        found = fliptest.run(
            data, model, fliptest.Config(**shipped("audit", "fliptest") | {"bootstraps": 2}), RNGS[:1], maps
        )
        flipped = [
            found.arrays[f"rows{way}"][found.arrays[f"decision{way}"] != found.arrays[f"decision_image{way}"]]
            for way in ("", "_reverse")
        ]
        flips = np.isin(data.test[0], np.concatenate(flipped))
        assert of_fold(f"fliptest {attribute}", 1).tolist() == flips.tolist()


def test_the_numbers_are_those_of_the_marks() -> None:
    result = same_people.run(DATA, MODELS, CONFIG, generators("audit", repetitions=FOLDS * PARTITIONS))
    rows, fold = result.rows, NAMED.fold
    assert sorted(rows["repetition"].unique()) == [0, 1]
    flips, near = NAMED.marks["fliptest sex"], NAMED.marks["robustness"]
    audited = fold >= 0
    where = {"measure": "fliptest sex", "other": "robustness"}
    assert number(rows, repetition=1, statistic="also", **where) == pytest.approx(near[1, flips[1]].mean())
    rest = audited[1] & ~flips[1]
    assert number(rows, repetition=1, statistic="otherwise", **where) == pytest.approx(near[1, rest].mean())
    raw, given, explained = (
        number(rows, repetition=0, statistic=name, **where) for name in ("log_odds", "given_score", "explained")
    )
    assert explained == pytest.approx(raw - given)
    both = flips[0] & audited.all(axis=0)
    again = number(rows[rows["measure"] == "fliptest sex"], repetition=0, statistic="named_again")
    assert again == pytest.approx(flips[1][both].mean())
    error = rows[rows["measure"] == "error"]
    at_risk = audited[0] & (DATA.label == 0)
    assert number(error, repetition=0, statistic="named") == pytest.approx(NAMED.marks["error"][0, at_risk].mean())
    assert "given_score" not in set(rows.loc[rows["other"] == "error", "statistic"])


def numbers(marks: Mapping[str, Array], groups: int = 1) -> dict[tuple[str, ...], list[float]]:
    """The numbers of marks in a single fold by statistic, measure and other."""
    n = next(iter(marks.values())).shape
    zero = np.zeros(n, int)
    named = Named(marks, zero, zero, np.arange(n[1]) % groups, np.ones(n[1], bool))
    return {tuple(columns.values()): [one["value"] for one in by] for columns, by in facts(named)}


def test_independent_marks_have_no_association_and_stable_marks_come_back() -> None:
    rng = np.random.default_rng(0)
    stable = np.repeat(rng.random((1, 40_000)) < 0.3, 3, axis=0)
    noise = rng.random((3, 40_000)) < 0.3
    noisy = stable ^ (rng.random((3, 40_000)) < 0.05)
    found = numbers({"a": stable, "b": noise, "c": noisy})
    assert found["log_odds", "a", "b"] == pytest.approx([0, 0, 0], abs=0.1)
    assert found["across", "b", "b"] == pytest.approx([0, 0, 0], abs=0.1)
    assert found["named_again", "b"] == pytest.approx([0.3] * 3, abs=0.02)
    assert found["named_again", "a"] == [1, 1, 1]
    # A mark with independent errors meets another of its draws less often than the mark without errors.
    twice, once = np.mean(found["across", "c", "c"]), np.mean(found["across", "a", "c"])
    assert once == pytest.approx(2 * np.log(0.95 / 0.05), abs=0.1)
    assert 0 < twice < once
    assert np.isnan(found["across", "a", "a"]).all()


def test_repetitions_that_do_not_divide_the_people_are_refused() -> None:
    mixed = DATA.test[[0, 1, 3, 2, 4, 5]]
    for test in (DATA.test[:4], mixed):
        with invalid(option="repetitions"):
            same_people.partitions(test, PEOPLE)


def test_the_largest_tenth_has_only_finite_values_and_the_first_of_equal_ones() -> None:
    values = np.array([1.0, np.inf, 3, 3, 3, *range(-15, 0)])
    assert np.flatnonzero(same_people.largest(values)).tolist() == [2, 3]
    assert np.flatnonzero(same_people.largest(np.array([np.nan] * 9 + [1.0]))).tolist() == [9]
