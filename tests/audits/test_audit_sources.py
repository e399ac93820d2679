"""Where the verdicts of three audits come from: the cells are audits of their levels, and only what matters counts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.robustness_bias.core import robustness_bias
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.models import mlp
from fairness_audits.transport import entropic
from fairness_audits.values import Array, Classifier, Dataset
from pipeline import crossed
from pipeline.audits import audit_sources
from pipeline.audits.audit_sources import Audited, Cells, decided, prepared
from pipeline.audits.tabular_robustness import of_network
from pipeline.crossed import EVERYTHING
from tests.attacks.builders import network
from tests.builders import chosen, shipped
from tests.builders import dataset as toy

SMALL = {
    "audit_samples": 4, "permutations": 99, "map_samples": 3, "centres": 40, "noise_deals": 19, "noise_people": 20,
    "points": 60, "fmn_steps": [10, 5], "fmn_start_steps": 5,
}  # fmt: skip
CONFIG = audit_sources.Config(**shipped("audit", "audit_sources") | SMALL)
RATES, ATTACKS = {"model", "audit", "draws"}, {"model", "audit", "point"}
FLIPS = {"map", "model", "audit", "point", "draws"}


def dataset(splits: int = 1, trainings: int = 2) -> Dataset:
    """Sex and race shift one feature each, sex by three standard deviations. All rows differ."""
    rng, n = np.random.default_rng(0), 500
    groups = {name: rng.integers(0, 2, n) for name in ("sex", "race")}
    x = rng.normal(size=(n, 4))
    x[:, 0] += 3 * groups["sex"]
    x[:, 1] += groups["race"]
    label = (x[:, -1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    order = np.repeat([rng.permutation(n) for _ in range(splits)], trainings, axis=0)
    return toy(x, label, groups, order[:, :200], order[:, 200:])


def networks(count: int) -> Classifier:
    return Classifier("random", "toy", "simulated", "mlp", network(1, count, d=4, hidden=6))


def one_hidden_unit(weight: Array, bias: float) -> Classifier:
    """Two equal networks that decide by the sign of weight' x + bias."""
    w1 = np.stack([weight, -weight], axis=1)
    w2 = np.array([[0.0, 1.0], [0.0, -1.0]])
    one = {"w1": w1, "b1": np.array([bias, -bias]), "w2": w2, "b2": np.zeros(2)}
    return Classifier("given", "toy", "simulated", "mlp", {name: np.stack([v, v]) for name, v in one.items()})


def split(classifier: Classifier) -> Audited:
    data = dataset()
    own = replace(data, train=data.train[:1], test=data.test[:1])
    return prepared(own, classifier, CONFIG, np.random.default_rng(7))


def facts(data: Dataset, classifier: Classifier, **changes: Any) -> pd.DataFrame:
    rngs = [np.random.default_rng(r) for r in range(classifier.repetitions)]
    return audit_sources.run(data, classifier, replace(CONFIG, **changes), rngs).rows


def test_each_cell_of_a_rate_is_its_permutation_test() -> None:
    audited, seeds = split(networks(2)), np.array([3, 4])
    cells = audit_sources.rates(audited, "tpr", "race", seeds, CONFIG)
    assert cells.statistic.shape == (2, 4, 2)
    rows = audited.rows[audited.chosen[3]]
    data, x = audited.dataset, audited.dataset.features[rows]
    own = {name: values[1:] for name, values in audited.classifier.parameters.items()}
    decision = mlp.predict(own, x[None])[0]
    given = Predictions(data.label[rows], decision * 1.0, 1 - data.protected["race"][rows], ("1", "0"), decision)
    test = permutation_test(
        given, "tpr", rng=np.random.default_rng(4), method="studentized", draws=CONFIG.permutations, alpha=0.05
    )
    assert cells.statistic[1, 3, 1] == pytest.approx(test.statistic)
    assert cells.rejected[1, 3, 1] == float(test.rejected)
    assert (cells.statistic[..., 0] == cells.statistic[..., 1]).all()


def test_each_share_of_flips_is_that_of_a_map_fitted_on_its_sample() -> None:
    audited, rng = split(networks(2)), np.random.default_rng(5)
    cells = audit_sources.fliptest(audited, "sex", CONFIG, rng)
    assert cells.statistic.shape == (3, 2, 4, 2, 2)
    rng = np.random.default_rng(5)
    samples = rng.integers(150, size=(3, 150))
    seeds = rng.integers(2**63, size=6)
    data, sex = audited.dataset, audited.dataset.protected["sex"]
    rows = audited.other[samples[1]]
    how = entropic.Config("squared_l1", 1.0, 0.1, 40, 200)
    women, men = ([data.features[rows[sex[rows] == code]]] for code in (0, 1))
    maps = entropic.fit(women, men, how, [np.random.default_rng(seeds[2])])
    people = audited.rows[audited.chosen[3]]
    x = data.features[people[sex[people] == 0]]
    flips = decided(audited.classifier, x) != decided(audited.classifier, entropic.images(maps.parameters, [x])[0])
    assert cells.statistic[1, :, 3, 1, 0] == pytest.approx(flips.mean(axis=1))


def test_a_model_of_the_group_alone_flips_everybody_and_one_of_something_else_flips_few() -> None:
    by_group = audit_sources.fliptest(split(one_hidden_unit(np.array([4.0, 0, 0, 0]), -6.0)), "sex", CONFIG, _rng())
    assert by_group.statistic.min() > 0.7
    assert by_group.rejected.all()
    other = audit_sources.fliptest(split(one_hidden_unit(np.array([0, 0, 4.0, 0]), 0.0)), "sex", CONFIG, _rng())
    assert other.rejected.mean() < 0.5
    constant = audit_sources.fliptest(split(one_hidden_unit(np.zeros(4), 1.0)), "sex", CONFIG, _rng())
    assert not constant.statistic.any()
    assert not constant.rejected.any()
    few = audit_sources.fliptest(split(networks(2)), "sex", replace(CONFIG, noise_deals=18), _rng())
    assert np.isnan(few.rejected).all()


def test_each_ratio_of_distances_is_that_of_the_audit() -> None:
    audited = split(networks(2))
    distance = audit_sources.distances(audited, CONFIG)
    assert distance.shape == (2, 2, 60)
    own = {name: values[1] for name, values in audited.classifier.parameters.items()}
    rows = audited.rows[:60]
    x, label = audited.dataset.features[rows], audited.dataset.label[rows]
    right = np.flatnonzero(mlp.predict({name: values[None] for name, values in own.items()}, x[None])[0] == label)
    assert distance[1, 1, right] == pytest.approx(of_network(own, x[right], label[right], 5, 5), nan_ok=True)
    samples = _rng().integers(60, size=(4, 60))
    cells = audit_sources.robustness(audited, "sex", distance, samples, 9, CONFIG)
    resampled, sex = distance[1, 1, samples[2]], audited.dataset.protected["sex"][rows[samples[2]]]
    groups = [Partition("sex", ("0", "1"), sex)]
    found = robustness_bias(
        resampled, np.isfinite(resampled), groups, None, Precision(0.05, 2, 99), _rng(), denominators=["correct"]
    )
    assert cells.statistic[1, 2, 1] == pytest.approx(np.log1p(found.levels[0].sigma[1]))


def test_every_split_has_every_number_of_every_measure() -> None:
    rows = facts(dataset(splits=2), networks(4))
    rates = {f"{rate} {name}": RATES for rate in CONFIG.rates for name in ("sex", "race")}
    attacks = {f"robustness {name}": ATTACKS for name in ("sex", "race")}
    factors = rates | {"fliptest sex": FLIPS} | attacks
    varied = chosen(rows, statistic="spread").groupby(["repetition", "measure"])["effect"].agg(set)
    assert varied.to_dict() == {(r, name): of | {EVERYTHING} for r in (0, 1) for name, of in factors.items()}
    assert not rows.duplicated(["repetition", "measure", "statistic", "effect"]).any()
    shares = chosen(rows, statistic="share").groupby(["repetition", "measure"])["value"].sum()
    assert shares.to_numpy() == pytest.approx(1)
    draws = chosen(rows, statistic="spread", effect="draws").set_index("measure")["value"]
    assert draws.drop("fliptest sex").to_numpy() == pytest.approx(0, abs=1e-6)
    assert (draws["fliptest sex"] > 0.001).all()


def test_a_split_does_not_depend_on_the_number_of_splits() -> None:
    four = networks(4)
    first = replace(four, parameters={name: array[:2] for name, array in four.parameters.items()})
    one, two = facts(dataset(splits=1), first), facts(dataset(splits=2), four)
    np.testing.assert_array_equal(one["value"], two.loc[two["repetition"] == 0, "value"])


def test_an_experiment_with_a_cell_without_a_statistic_has_no_shares() -> None:
    statistic = np.random.default_rng(1).normal(size=(2, 4, 2))
    cells = Cells(("model", "audit", "draws"), statistic, (statistic > 0).astype(float))
    whole = {(row["statistic"], row["effect"]): row["value"] for row in crossed.facts(*_as_facts(cells))}
    statistic[0, 0, 0] = np.nan
    holed = {(row["statistic"], row["effect"]): row["value"] for row in crossed.facts(*_as_facts(cells))}
    assert whole.keys() == holed.keys()
    assert np.isfinite(whole["share", "audit"])
    assert np.isnan(holed["share", "audit"])
    assert holed["reversals", EVERYTHING] == whole["reversals", EVERYTHING]


def _as_facts(cells: Cells) -> tuple[Array, Array, tuple[str, ...]]:
    return cells.statistic, cells.rejected, cells.factors


def _rng() -> np.random.Generator:
    return np.random.default_rng(2)
