"""What is watched of a Wasserstein GAN in training, and which networks are kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from pipeline.models.initial_weights import glorot_networks
from pipeline.seeds import generators
from pipeline.transport.wgan import CURVES, ROWS, Marginals, Selection, Watch
from pipeline.transport.wgan_networks import outputs
from pipeline.types import Array


def test_best_keeps_the_smallest_statistic_and_last_the_last() -> None:
    def networks(value: float) -> dict[str, Array]:
        return {"w": np.full((2, 3), value)}

    def measured(*max_ks: float) -> dict[str, Array]:
        return {name: np.array(max_ks) if name == "max_ks" else np.array(max_ks) / 2 for name in CURVES}

    points = {10: measured(0.5, 0.1), 20: measured(0.2, np.nan), 30: measured(0.3, 0.05)}
    kept = {}
    for rule in ("last", "best"):
        kept[rule] = Selection(rule, networks(0), measured(0.01, 0.01))
        for step, values in points.items():
            kept[rule].consider(step, networks(step), values)
    assert kept["best"].parameters["w"][:, 0].tolist() == [20, 10]
    assert kept["last"].parameters["w"][:, 0].tolist() == [30, 10]
    facts = kept["best"].facts(0.2)
    assert facts["selected_step"].tolist() == [20, 10]
    assert facts["trained_steps"].tolist() == [30, 10]
    assert facts["max_ks"].tolist() == [0.2, 0.1]
    assert facts["mean_cost"].tolist() == [0.1, 0.05]
    # Not above .2, so the first is not diverged; the second is, because it stopped.
    assert facts["diverged"].tolist() == [0, 1]
    assert kept["last"].facts(0.2)["diverged"].tolist() == [1, 1]


def test_the_statistic_of_a_continuous_feature_is_that_of_two_samples() -> None:
    rng = np.random.default_rng(1)
    target, images = rng.normal(size=(400, 2)), 0.3 + 1.2 * rng.normal(size=(900, 2))
    statistics = Marginals(target).statistics(images)
    for j in range(2):
        assert abs(statistics[j] - ks_2samp(images[:, j], target[:, j]).statistic) < 1 / 400 + 1 / 900


def test_the_statistic_takes_an_image_for_the_nearest_value_of_the_target() -> None:
    target = np.repeat([0.0, 1.0, 3.0], [5, 3, 2])[:, None]
    assert Marginals(target).statistics(target + 0.4)[0] == 0
    # Values below 0, and one of five zeros that has become a three: F is .4 at 0 instead of .5.
    images = np.repeat([-7.0, 1.9, 2.1], [4, 3, 3])[:, None]
    assert Marginals(target).statistics(images)[0] == pytest.approx(0.1)
    assert np.isnan(Marginals(target).statistics(np.array([[np.inf], [0.0]]))[0])


def test_what_is_watched_are_means_over_the_rows_and_the_largest_statistic() -> None:
    rng = np.random.default_rng(0)
    rngs = generators("watch", repetitions=2)
    maps, critics = glorot_networks(rngs, (3, 10, 10, 3)), glorot_networks(rngs, (3, 10, 10, 1))
    source = [rng.normal(size=(n, 3)) for n in (90, 80)]
    target = [1 + rng.normal(size=(n, 3)) for n in (130, 150)]
    measured = Watch(source, target).measure(maps, critics)
    for t in range(2):
        image = outputs({name: values[t] for name, values in maps.items()}, source[t])
        distance = np.abs(image - source[t]).sum(axis=1)
        assert measured["mean_l1"][t] == pytest.approx(distance.mean(), rel=1e-5)
        assert measured["mean_cost"][t] == pytest.approx((distance**2).mean(), rel=1e-5)
        critic = {name: values[t] for name, values in critics.items()}
        gap = outputs(critic, target[t]).mean() - outputs(critic, image).mean()
        assert abs(gap) > 1e-2
        assert measured["critic_gap"][t] == pytest.approx(gap, abs=1e-6)
        statistics = [ks_2samp(image[:, j], target[t][:, j]).statistic for j in range(3)]
        assert measured["max_ks"][t] == pytest.approx(max(statistics), abs=0.02)


def test_only_the_first_rows_are_watched() -> None:
    rngs = generators("watch", repetitions=1)
    maps, critics = glorot_networks(rngs, (1, 4, 4, 1)), glorot_networks(rngs, (1, 4, 4, 1))
    rows = np.random.default_rng(0).normal(size=(ROWS + 500, 1))
    whole = Watch([rows], [rows]).measure(maps, critics)
    rows[ROWS:] = 1e6
    for name, values in Watch([rows], [rows]).measure(maps, critics).items():
        np.testing.assert_array_equal(values, whole[name])


def test_networks_that_are_not_finite_measure_as_nan() -> None:
    rngs = generators("watch", repetitions=2)
    maps, critics = glorot_networks(rngs, (1, 4, 4, 1)), glorot_networks(rngs, (1, 4, 4, 1))
    maps["b3"][1] = np.nan
    measured = Watch([np.ones((5, 1))] * 2, [np.zeros((5, 1))] * 2).measure(maps, critics)
    for values in measured.values():
        assert np.isfinite(values).tolist() == [True, False]
