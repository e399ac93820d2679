"""What is measured of a map, against maps whose quality is known, and where it sends two fixed people."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from pipeline.audits.fliptest import map_stability
from pipeline.audits.fliptest.map_quality import Config, run
from pipeline.seeds import generators
from pipeline.transport.quality import nearest_values
from pipeline.types import Array, Dataset, TransportMap
from tests.audits.fliptest.builders import GAP, TOY, exact_maps, rule, shift
from tests.builders import chosen, dataset

CONFIG = Config("test", 60)


@pytest.fixture
def measured() -> Callable[[TransportMap], pd.DataFrame]:
    def run_it(maps: TransportMap) -> pd.DataFrame:
        return run(TOY, rule(0.0, 0.0, 0.0), CONFIG, generators("audit", repetitions=2), maps).rows

    return run_it


def one(
    rows: pd.DataFrame, statistic: str, direction: str = "forward", feature: str = "", repetition: int = 0
) -> float:
    where = {"statistic": statistic, "direction": direction, "feature": feature, "repetition": repetition}
    (found,) = chosen(rows, **where)["value"]
    return float(found)


def in_group(dataset: Dataset, group: int, repetition: int) -> Array:
    rows = dataset.test[repetition]
    return dataset.features[rows[dataset.protected["group"][rows] == group]][:, :2]


def test_the_true_map_is_healthy_and_returns_everyone(
    measured: Callable[[TransportMap], pd.DataFrame],
) -> None:
    rows = measured(shift())
    for direction in ("forward", "reverse"):
        for repetition in (0, 1):
            assert one(rows, "healthy", direction, repetition=repetition) == 1
            assert one(rows, "round_trip_l1", direction, repetition=repetition) == pytest.approx(0, abs=1e-12)
            assert one(rows, "map_l1", direction, repetition=repetition) == pytest.approx(np.abs(GAP).sum() + 1)
            assert one(rows, "map_cost", direction, repetition=repetition) == pytest.approx(
                (np.abs(GAP).sum() + 1) ** 2
            )
            assert one(rows, "non_finite", direction, repetition=repetition) == 0


def test_the_distance_from_the_target_group_is_that_of_kolmogorov_and_smirnov(
    measured: Callable[[TransportMap], pd.DataFrame],
) -> None:
    rows = measured(shift(np.array([0.8, 1.5])))
    own, other = in_group(TOY, 0, 1) + np.array([0.8, 1.5]), in_group(TOY, 1, 1)
    for name, statistic, image in (("x", "ks_raw", own), ("z", "ks_raw", own), ("z", "ks", nearest_values(other, own))):
        j = ("x", "z").index(name)
        expected = stats.ks_2samp(other[:, j], image[:, j]).statistic
        assert one(rows, statistic, feature=name, repetition=1) == pytest.approx(expected)
    by_feature = [one(rows, "ks", feature=name, repetition=1) for name in ("x", "z")]
    assert one(rows, "ks_max", repetition=1) == max(by_feature) > 0.5
    assert one(rows, "healthy", repetition=1) == 0


def test_a_learned_map_of_a_discrete_feature_need_not_meet_its_values_exactly() -> None:
    counts = np.round(TOY.features[:, :2])
    moved = replace(TOY, features=np.column_stack([counts, TOY.features[:, 2]]))
    maps = shift(np.array([1.1, -0.4]))
    rows = run(moved, rule(0.0, 0.0, 0.0), CONFIG, generators("audit", repetitions=2), maps).rows
    assert one(rows, "ks_raw", feature="x") > 0.2 > 0.12 > one(rows, "ks", feature="x")


def test_regressions_tell_how_far_the_images_are_off_the_targets_own(
    measured: Callable[[TransportMap], pd.DataFrame],
) -> None:
    true, off = measured(shift()), measured(shift(np.array([0.8, 1.5])))
    for name in ("x", "z"):
        for rows in (true, off):
            difference = one(rows, "mse_generated", feature=name) - one(rows, "mse_real", feature=name)
            assert one(rows, "mse_difference", feature=name) == pytest.approx(difference)
    # x and z are independent with unit variance: missing z by 2 adds 4 to its error.
    assert abs(one(true, "mse_difference", feature="z")) < 0.4
    assert one(off, "mse_difference", feature="z") == pytest.approx(4, abs=1)


def test_exact_transport_is_the_best_assignment_of_the_members_both_ways(
    measured: Callable[[TransportMap], pd.DataFrame],
) -> None:
    rows = measured(shift())
    for repetition in (0, 1):
        own, other = in_group(TOY, 0, repetition)[:60], in_group(TOY, 1, repetition)[:60]
        # The column of the group itself differs by one between any two.
        distance = np.abs(own[:, None] - other[None]).sum(axis=-1) + 1
        matched = optimize.linear_sum_assignment(distance**2)
        for direction in ("forward", "reverse"):
            cost = one(rows, "exact_cost", direction, repetition=repetition)
            assert cost == pytest.approx((distance[matched] ** 2).mean())
            assert one(rows, "exact_l1", direction, repetition=repetition) == pytest.approx(distance[matched].mean())


def test_images_that_are_not_finite_are_counted_and_left_out(
    measured: Callable[[TransportMap], pd.DataFrame],
) -> None:
    rows = measured(shift(limit=0.5))
    own = in_group(TOY, 0, 0)
    assert one(rows, "non_finite") == (own[:, 0] > 0.5).sum() > 0
    assert one(rows, "map_l1") == pytest.approx(np.abs(GAP).sum() + 1)
    kept = own[own[:, 0] <= 0.5, 0] + GAP[0]
    expected = stats.ks_2samp(in_group(TOY, 1, 0)[:, 0], kept).statistic
    assert one(rows, "ks_raw", feature="x") == pytest.approx(expected)
    nobody = measured(shift(limit=-np.inf))
    assert one(nobody, "healthy") == 0
    for name in ("map_l1", "ks_max", "round_trip_l1"):
        assert np.isnan(one(nobody, name))
    assert np.isnan(one(nobody, "mse_difference", feature="z"))


def test_there_is_no_round_trip_without_a_way_back(measured: Callable[[TransportMap], pd.DataFrame]) -> None:
    one_way = measured(shift(both=False))
    assert set(one_way["direction"]) == {"forward"}
    assert np.isnan(one(one_way, "round_trip_l1"))
    # Some images have no way back: that of the others would flatter the map.
    assert np.isnan(one(measured(shift(limit_back=2.5)), "round_trip_l1"))


@pytest.mark.parametrize(("image", "women", "returned"), [("sample", 60, 0.0), ("expectation", 40, np.nan)])
def test_an_exact_map_returns_from_the_rows_it_knows_and_from_no_mixture_of_them(
    image: str,
    women: int,
    returned: float,
) -> None:
    rows = np.concatenate([np.flatnonzero(TOY.protected["group"] == g)[:size] for g, size in ((0, women), (1, 60))])
    few = replace(TOY, test=rows[None], train=rows[None])
    maps = exact_maps(few, image)
    found = run(few, rule(0.0, 0.0, 0.0, repetitions=1), CONFIG, generators("audit", repetitions=1), maps).rows
    np.testing.assert_equal(one(found, "round_trip_l1"), returned)
    if women == 60:
        assert one(found, "map_l1") == pytest.approx(one(found, "exact_l1"))
        assert one(found, "ks_max") == 0


# The images of the two fixed people, trial by trial.


@pytest.fixture
def fixed() -> Dataset:
    """Three draws of 20 people in each group; the first two of the source group are ones and zeros in every draw."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(120, 2))
    group = np.tile(np.repeat([0, 1], 20), 3)
    features[[0, 40, 80]], features[[1, 41, 81]] = 1, 0
    split = np.arange(120).reshape(3, 40)
    label, levels = rng.integers(0, 2, 120), {"group": ("F", "M")}
    return dataset(features, label, {"group": group}, split, split.copy(), levels=levels, feature_names=("x", "z"))


def test_each_trial_says_where_its_map_sends_the_two(
    fixed: Dataset,
) -> None:
    maps = shift(trials=3)
    maps = replace(maps, parameters={**maps.parameters, "by": GAP * np.array([[0.0], [1.0], [2.0]])})
    rows = map_stability.run(
        fixed, rule(0.0, 0.0, repetitions=3), map_stability.Config(), generators("audit", repetitions=3), maps
    ).rows
    found = rows[rows["statistic"] == "image"].set_index(["repetition", "point", "feature"])["value"]
    assert set(rows["statistic"]) == {"image", "ks"}
    assert len(found) == 3 * 2 * 2
    for trial in range(3):
        for j, name in enumerate(("1", "2")):
            assert found[trial, "ones", name] == pytest.approx(1 + trial * GAP[j])
            assert found[trial, "zeros", name] == pytest.approx(trial * GAP[j])


def test_a_map_that_misses_the_group_says_so_however_surely_it_does(
    fixed: Dataset,
) -> None:
    """Two draws of one law are near each other; people who are led far away all lie beyond the target group."""
    maps = shift(trials=3)
    still = map_stability.run(
        fixed, rule(0.0, 0.0, repetitions=3), map_stability.Config(), generators("audit", repetitions=3), maps
    ).rows
    far = replace(maps, parameters={**maps.parameters, "by": np.full_like(maps.parameters["by"], 100.0)})
    gone = map_stability.run(
        fixed, rule(0.0, 0.0, repetitions=3), map_stability.Config(), generators("audit", repetitions=3), far
    ).rows
    lost = replace(maps, parameters={**maps.parameters, "by": np.full_like(maps.parameters["by"], np.nan)})
    nowhere = map_stability.run(
        fixed, rule(0.0, 0.0, repetitions=3), map_stability.Config(), generators("audit", repetitions=3), lost
    ).rows
    unmoved, away, none = (rows.loc[rows["statistic"] == "ks", "value"] for rows in (still, gone, nowhere))
    assert len(unmoved) == len(away) == 3
    assert (unmoved < 0.7).all()
    assert away.tolist() == [1.0] * 3
    assert none.isna().all()


def test_a_dataset_without_the_fixed_people_is_refused() -> None:
    maps = replace(shift(np.zeros(3)), features=TOY.feature_names)
    with pytest.raises(ValueError, match="first people of 'F' in repetition 0 of 'toy' to be ones and zeros"):
        map_stability.run(TOY, rule(0.0, 0.0, 0.0), map_stability.Config(), generators("audit", repetitions=2), maps)
