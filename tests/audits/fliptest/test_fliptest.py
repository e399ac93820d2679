"""The audit: the right people, decided about rightly, counted by direction, flipset and feature."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import expit

from fairness_audits.seeds import generators
from fairness_audits.transport import quality
from fairness_audits.transport.quality import nearest_values
from fairness_audits.values import Array, Classifier, Dataset, TransportMap
from pipeline.audits import map_quality, map_stability
from pipeline.audits.fliptest import Config, run
from pipeline.values import AuditResult
from tests.audits.fliptest.builders import GAP, TOY, exact_maps, rule, shift
from tests.builders import chosen, dataset, number, shipped
from tests.errors import invalid

CONFIG = Config(**shipped("audit", "fliptest") | {"bootstraps": 200, "noise_people": 60, "noise_deals": 19})
BY_X = rule(1.0, 0.0, 0.0)
RNGS = generators("audit", repetitions=2)
TOSSED = replace(CONFIG, decision="randomised")


def audited(maps: TransportMap, model: Classifier = BY_X, config: Config = CONFIG, data: Dataset = TOY) -> AuditResult:
    return run(data, model, config, generators("audit", repetitions=model.repetitions), maps)


def regression(slope: float, intercept: float = 0.0, threshold: float = 0.0) -> Classifier:
    """Of an outcome on x alone."""
    parameters = {"coef": np.tile([slope, 0, 0], (2, 1)), "intercept": np.full(2, intercept)}
    parameters["threshold"] = np.full(2, threshold)
    return Classifier("linear_regression", "toy", "simulated", "linear", parameters)


def one(result: AuditResult, **where: object) -> pd.Series:
    """The statistics of one repetition, direction, flipset and feature, by name; the whole group unless said."""
    whole = {"repetition": 0, "direction": "forward", "flipset": "", "feature": ""}
    return chosen(result.rows, **{**whole, **where}).set_index("statistic")["value"]


def members(dataset: Dataset, group: int, repetition: int = 0) -> Array:
    rows = dataset.test[repetition]
    return rows[dataset.protected["group"][rows] == group]


WOMEN, MEN = members(TOY, 0), members(TOY, 1)
X = TOY.features[WOMEN, 0]


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("repetition", [0, 1])
def test_flipsets_are_the_people_between_the_boundary_and_its_preimage(direction: str, repetition: int) -> None:
    weights = np.array([1.0, 2.0])
    result = audited(shift(), rule(*weights, 0.0, intercept=-0.3))
    source, target, sign = (0, 1, 1) if direction == "forward" else (1, 0, -1)
    own, other = (members(TOY, g, repetition) for g in (source, target))
    score = TOY.features[:, :2] @ weights - 0.3
    before, after = score[own] > 0, score[own] + sign * weights @ GAP > 0
    where = {"repetition": repetition, "direction": direction}
    sizes = {"positive": (before & ~after).sum(), "negative": (after & ~before).sum()}
    for flipset, size in sizes.items():
        found = one(result, **where, flipset=flipset)
        people = (before == (flipset == "positive")).sum()
        assert (found["size"], found["share"], found["of"]) == (size, size / len(own), people)
    whole = one(result, **where)
    expected = {"n_source": len(own), "n_target": len(other), "net": sizes["positive"] - sizes["negative"]}
    expected |= {"positives_source": before.sum(), "positives_target": (score[other] > 0).sum()}
    expected |= {"positives_image": after.sum(), "non_finite": 0}
    assert {name: whole[name] for name in expected} == expected
    assert whole["net_ci_low"] < whole["net"] < whole["net_ci_high"]
    assert sum(sizes.values()) > 0
    assert set(chosen(result.rows, direction=direction)["source"]) == {"FM"[source]}


def test_the_transparency_report_has_the_papers_sign_and_leaves_the_group_itself_unranked() -> None:
    result = audited(shift())
    for name, expected, rank in (("x", -GAP[0], 1), ("z", -GAP[1], 2), ("g", -1, np.nan)):
        found = one(result, flipset="negative", feature=name)
        np.testing.assert_allclose([found["mean_shift"], one(result, feature=name)["mean_shift"]], expected)
        np.testing.assert_equal([found["rank_mean"], found["mean_sign"]], [rank, np.sign(expected)])
        assert np.isnan(found["rank_mean"]) == (name == "g")
    flipped, whole = (one(result, flipset=flipset, feature="x")["feature_mean"] for flipset in ("negative", ""))
    np.testing.assert_allclose([flipped, whole], [X[(X <= 0) & (X + GAP[0] > 0)].mean(), X.mean()])
    assert one(result, flipset="positive", feature="x").isna().all()


def test_proposition_2_holds_for_the_exact_map_of_groups_of_one_size() -> None:
    equal = np.concatenate([members(TOY, g)[:150] for g in (0, 1)])
    few = replace(TOY, test=equal[None], train=equal[None])
    maps = exact_maps(few)
    # x alone favours M and z alone F: some sum of the two accepts as many of each.
    x = few.features[equal, :2]
    accepted = {w: (x @ [1.0, w] > 0.2).reshape(2, 150).sum(axis=1) for w in np.linspace(0, 4, 81)}
    weight = next(w for w, (women, men) in accepted.items() if women == men)
    fair = audited(maps, rule(1.0, weight, 0.0, intercept=-0.2, repetitions=1), data=few)
    unfair = audited(maps, rule(1.0, 0.0, 0.0, repetitions=1), data=few)
    for result in (fair, unfair):
        whole, back = one(result), one(result, direction="reverse")
        assert whole["positives_image"] == whole["positives_target"]
        assert whole["net"] == whole["positives_source"] - whole["positives_target"] == -back["net"]
        assert whole["ks"] == 0
    assert one(fair)["net"] == 0 > one(unfair)["net"]
    assert one(fair, flipset="positive")["size"] == one(fair, flipset="negative")["size"] > 0


def test_a_persons_coin_is_tossed_once_for_them_and_their_counterpart() -> None:
    still = audited(shift(np.zeros(2)), rule(0.0, 0.0, 0.0), TOSSED)
    accepted, people = (int(one(still)[name]) for name in ("positives_source", "n_source"))
    assert stats.binomtest(accepted, people, 0.5).pvalue > 1e-4
    assert one(still, flipset="positive")["size"] == one(still, flipset="negative")["size"] == 0
    better = audited(shift(np.array([1.0, 0.0])), config=TOSSED)
    chance = expit(X + 1) - expit(X)
    assert one(better, flipset="positive")["size"] == 0
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs(one(better, flipset="negative")["size"] - chance.sum()) < 4 * spread


def test_a_person_is_decided_about_alike_as_source_and_as_target() -> None:
    result = audited(shift(), rule(1.0, -1.0, 0.0), TOSSED)
    for repetition in (0, 1):
        forward, reverse = (one(result, repetition=repetition, direction=d) for d in ("forward", "reverse"))
        assert forward["positives_target"] == reverse["positives_source"]
        assert forward["positives_source"] == reverse["positives_target"]


def test_a_regression_decides_by_its_own_threshold_and_scores_in_its_own_units() -> None:
    result = audited(shift(), regression(3.0, 7.0, 8.0))
    assert one(result, flipset="negative")["size"] == ((3 * X <= 1) & (3 * (X + GAP[0]) > 1)).sum() > 0
    np.testing.assert_allclose(result.arrays["score"], 3 * X + 7)
    np.testing.assert_allclose(result.arrays["score_image"], 3 * (X + GAP[0]) + 7)


def test_people_without_a_finite_image_are_left_out_and_counted() -> None:
    result = audited(shift(limit=0.9), rule(1.0, 0.0, 0.0, intercept=-1.0))
    whole = one(result)
    assert whole["non_finite"] == (X > 0.9).sum() > 0
    assert whole["n_source"] == (X <= 0.9).sum() == len(result.arrays["rows"])
    assert whole["positives_source"] == 0
    assert one(result, flipset="negative")["size"] == ((X <= 0.9) & (X > 0.2)).sum()
    assert np.isfinite(result.arrays["images"]).all()
    nobody = one(audited(shift(limit=-np.inf)))
    assert nobody["n_source"] == nobody["net"] == nobody["healthy"] == 0


def test_a_map_that_misses_the_target_group_is_not_healthy() -> None:
    good, bad = (one(audited(maps)) for maps in (shift(), shift(np.array([0.8, 0.0]))))
    assert (good["healthy"], bad["healthy"]) == (1, 0)
    own, other = (TOY.features[group, 1:2] for group in (WOMEN, MEN))
    np.testing.assert_allclose(bad["ks"], stats.ks_2samp(other[:, 0], nearest_values(other, own)[:, 0]).statistic)


def test_a_map_of_one_true_label_audits_the_rows_of_that_label() -> None:
    result = audited(shift(given_label=1))
    own, other = (group[TOY.label[group] == 1] for group in (WOMEN, MEN))
    whole = one(result)
    assert (whole["n_source"], whole["n_target"]) == (len(own), len(other))
    assert (TOY.label[result.arrays["rows"]] == 1).all()
    assert whole["positives_target"] == (TOY.features[other, 0] > 0).sum()


def test_as_many_repetitions_as_both_have_and_as_many_directions() -> None:
    assert set(audited(shift(trials=1)).rows["repetition"]) == {0}
    assert set(audited(shift(), rule(1.0, 0.0, 0.0, repetitions=1)).rows["repetition"]) == {0}
    both, forward = audited(shift()), audited(shift(both=False))
    assert set(forward.rows["direction"]) == {"forward"}
    same = both.rows[both.rows["direction"] == "forward"].reset_index(drop=True)
    pd.testing.assert_frame_equal(forward.rows, same)
    assert not [name for name in forward.arrays if name.endswith("_reverse")]


@pytest.mark.parametrize(("direction", "group"), [("forward", WOMEN), ("reverse", MEN)])
def test_flips_by_chance_are_those_between_halves_of_one_group(direction: str, group: Array) -> None:
    """Of 60 people on a side, counted as shares of the group; a rule that nobody comes near flips nobody."""
    result, n = audited(exact_maps(TOY)), len(group)
    nobody = audited(exact_maps(TOY), rule(1.0, 0.0, 0.0, intercept=-99.0))
    whole = one(result, direction=direction)
    assert (whole["n_source"], whole["noise_people"]) == (n, 60)
    for flipset in ("positive", "negative"):
        mean, most = one(result, direction=direction, flipset=flipset)[["noise_size", "noise_size_upper"]]
        # Mean of 19 deals and the largest, as shares of 60 times n.
        assert mean * 19 * 60 / n == pytest.approx(round(mean * 19 * 60 / n))
        assert most * 60 / n == pytest.approx(round(most * 60 / n))
        assert 0 < mean < most < 0.3 * n
        found = one(nobody, direction=direction, flipset=flipset)
        assert found["noise_size"] == found["noise_size_upper"] == 0


def test_a_rule_on_the_group_itself_flips_everyone_and_makes_no_flips_by_chance() -> None:
    result = audited(exact_maps(TOY), rule(0.0, 0.0, 1.0, intercept=-0.5))
    assert one(result, flipset="positive", direction="reverse")["share"] == 1
    assert one(result, flipset="negative")["share"] == 1
    assert one(result, flipset="negative")["noise_size_upper"] == 0


def test_chance_is_counted_once_for_exact_maps_alone_and_changes_nothing_else() -> None:
    learned = audited(shift()).rows
    assert not learned["statistic"].str.startswith("noise").any()
    dealt, none = (audited(exact_maps(TOY), config=replace(CONFIG, noise_deals=deals)).rows for deals in (19, 0))
    noise = dealt["statistic"].str.startswith("noise")
    assert set(dealt[noise]["repetition"]) == {0}
    pd.testing.assert_frame_equal(dealt[~noise].reset_index(drop=True), none)


def test_shared_people_are_counted_between_repetitions() -> None:
    result = audited(shift())
    both = np.isin(WOMEN, members(TOY, 0, 1)).sum()
    for r in (0, 1):
        assert one(result, repetition=r)["shared"] == pytest.approx(both / len(members(TOY, 0, r)))
    assert one(audited(shift(trials=1), rule(1.0, 0.0, 0.0, repetitions=1)))["shared"] == 0


def test_shifts_are_ranked_in_deviations_where_asked_and_keep_their_own_units() -> None:
    """z in hundredths moves by 50 and x by 0.8: the larger shift, but half a deviation against 0.8 of one."""
    scaled = replace(TOY, features=TOY.features * [1.0, 100.0, 1.0])
    maps = shift(GAP * [1.0, 100.0])
    plain, ranked = (
        audited(maps, config=replace(CONFIG, units=units), data=scaled) for units in ("model", "deviations")
    )
    for result, ranks in ((plain, (2, 1)), (ranked, (1, 2))):
        lines = [one(result, flipset="negative", feature=name) for name in ("x", "z")]
        assert tuple(line["rank_mean"] for line in lines) == ranks
        np.testing.assert_allclose([line["mean_shift"] for line in lines], -GAP * [1, 100])
    pooled = np.concatenate([ranked.arrays["features"], ranked.arrays["target_features"]]).std(axis=0)
    np.testing.assert_allclose(ranked.arrays["units"], [*pooled[:2], 1])
    np.testing.assert_array_equal(plain.arrays["units"], 1)


@pytest.mark.parametrize(("suffix", "own", "other", "sign"), [("", WOMEN, MEN, 1), ("_reverse", MEN, WOMEN, -1)])
def test_arrays_are_those_of_the_first_repetition(suffix: str, own: Array, other: Array, sign: int) -> None:
    found = audited(shift(), rule(1.0, 2.0, 0.0)).arrays
    arrays = {name.removesuffix("_reverse"): found[name] for name in found if name.endswith("_reverse") == bool(suffix)}
    np.testing.assert_array_equal(arrays["rows"], own)
    np.testing.assert_array_equal(arrays["features"], TOY.features[own])
    np.testing.assert_allclose(arrays["images"] - arrays["features"], np.tile([*sign * GAP, sign], (len(own), 1)))
    np.testing.assert_array_equal(arrays["decision"], arrays["score"] > 0.5)
    np.testing.assert_array_equal(arrays["target_features"], TOY.features[other])
    assert len(arrays["target_score"]) == len(other)
    assert tuple(found["feature_names"]) == TOY.feature_names


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"model": regression(1.0), "config": TOSSED}, invalid(option="coin")),
        # The map of these tests refuses with its own words.
        ({"maps": shift(limit=np.nan)}, pytest.raises(ValueError, match="this map is not defined on these rows")),
        (
            {"maps": shift(given_label=1), "data": replace(TOY, label=np.zeros_like(TOY.label))},
            invalid(source="toy", option="split", column="group"),
        ),
    ],
)
def test_what_cannot_be_audited_is_named(changes: dict[str, Any], refused: Any) -> None:
    with refused:
        audited(**{"maps": shift(), **changes})


def measured(maps: TransportMap, data: Dataset = TOY) -> pd.DataFrame:
    return map_quality.run(data, BY_X, map_quality.Config("test", 60), RNGS, maps).rows


def measure(
    rows: pd.DataFrame, statistic: str, direction: str = "forward", feature: str = "", repetition: int = 0
) -> float:
    return number(rows, statistic=statistic, direction=direction, feature=feature, repetition=repetition)


def in_group(group: int, repetition: int = 0) -> Array:
    return TOY.features[members(TOY, group, repetition)][:, :2]


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("repetition", [0, 1])
def test_the_true_map_is_healthy_and_returns_everyone(direction: str, repetition: int) -> None:
    found = chosen(measured(shift()), direction=direction, repetition=repetition, feature="")
    length = np.abs(GAP).sum() + 1
    expected = {"healthy": 1, "round_trip_l1": 0, "map_l1": length, "map_cost": length**2, "non_finite": 0}
    values = found.set_index("statistic")["value"]
    assert {name: values[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_the_distance_from_the_target_is_that_of_kolmogorov_and_smirnov() -> None:
    rows = measured(shift(np.array([0.8, 1.5])))
    own, other = in_group(0, 1) + np.array([0.8, 1.5]), in_group(1, 1)
    for name, statistic, image in (("x", "ks_raw", own), ("z", "ks_raw", own), ("z", "ks", nearest_values(other, own))):
        j = ("x", "z").index(name)
        expected = stats.ks_2samp(other[:, j], image[:, j]).statistic
        assert measure(rows, statistic, feature=name, repetition=1) == pytest.approx(expected)
    by_feature = [measure(rows, "ks", feature=name, repetition=1) for name in ("x", "z")]
    assert measure(rows, "ks_max", repetition=1) == max(by_feature) > 0.5
    assert measure(rows, "healthy", repetition=1) == 0


def test_a_learned_map_of_a_discrete_feature_need_not_meet_its_values_exactly() -> None:
    counts = np.round(TOY.features[:, :2])
    moved = replace(TOY, features=np.column_stack([counts, TOY.features[:, 2]]))
    rows = measured(shift(np.array([1.1, -0.4])), moved)
    assert measure(rows, "ks_raw", feature="x") > 0.2 > 0.12 > measure(rows, "ks", feature="x")


def test_regressions_tell_how_far_the_images_are_off_the_targets_own() -> None:
    true, off = measured(shift()), measured(shift(np.array([0.8, 1.5])))
    for name, rows in product(("x", "z"), (true, off)):
        generated, real, difference = (
            measure(rows, f"mse_{statistic}", feature=name) for statistic in ("generated", "real", "difference")
        )
        assert difference == pytest.approx(generated - real)
    # x and z are independent with unit variance: missing z by 2 adds 4 to its error.
    assert abs(measure(true, "mse_difference", feature="z")) < 0.4
    assert measure(off, "mse_difference", feature="z") == pytest.approx(4, abs=1)


def test_exact_transport_is_the_best_assignment_of_the_members_both_ways() -> None:
    rows = measured(shift())
    for repetition in (0, 1):
        own, other = (in_group(group, repetition)[:60] for group in (0, 1))
        # The column of the group itself differs by one between any two.
        distance = np.abs(own[:, None] - other[None]).sum(axis=-1) + 1
        matched = distance[optimize.linear_sum_assignment(distance**2)]
        for direction in ("forward", "reverse"):
            cost, length = (measure(rows, name, direction, "", repetition) for name in ("exact_cost", "exact_l1"))
            assert (cost, length) == pytest.approx(((matched**2).mean(), matched.mean()))


def test_images_that_are_not_finite_are_counted_and_left_out() -> None:
    rows = measured(shift(limit=0.5))
    assert measure(rows, "non_finite") == (X > 0.5).sum() > 0
    assert measure(rows, "map_l1") == pytest.approx(np.abs(GAP).sum() + 1)
    expected = stats.ks_2samp(TOY.features[MEN, 0], X[X <= 0.5] + GAP[0]).statistic
    assert measure(rows, "ks_raw", feature="x") == pytest.approx(expected)
    nobody = measured(shift(limit=-np.inf))
    assert measure(nobody, "healthy") == 0
    unknown = [measure(nobody, name) for name in ("map_l1", "ks_max", "round_trip_l1")]
    assert np.isnan([*unknown, measure(nobody, "mse_difference", feature="z")]).all()


def test_there_is_no_round_trip_without_a_way_back() -> None:
    one_way = measured(shift(both=False))
    assert set(one_way["direction"]) == {"forward"}
    assert np.isnan(measure(one_way, "round_trip_l1"))
    # Some images have no way back: that of the others would flatter the map.
    assert np.isnan(measure(measured(shift(limit_back=2.5)), "round_trip_l1"))


@pytest.mark.parametrize(("image", "women", "returned"), [("sample", 60, 0.0), ("expectation", 40, np.nan)])
def test_an_exact_map_returns_from_the_rows_it_knows_and_no_mixture_of_them(
    image: str, women: int, returned: float
) -> None:
    rows = np.concatenate([np.flatnonzero(TOY.protected["group"] == g)[:size] for g, size in ((0, women), (1, 60))])
    few = replace(TOY, test=rows[None], train=rows[None])
    found = measured(exact_maps(few, image), few)
    np.testing.assert_equal(measure(found, "round_trip_l1"), returned)
    if women == 60:
        assert measure(found, "map_l1") == pytest.approx(measure(found, "exact_l1"))
        assert measure(found, "ks_max") == 0


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


def stability(dataset: Dataset, by: Array) -> pd.DataFrame:
    """The rows of the audit of maps of which trial t moves everybody by ``by[t]``."""
    maps = shift(trials=3)
    maps = replace(maps, parameters={**maps.parameters, "by": by})
    return map_stability.run(dataset, rule(0.0, 0.0, repetitions=3), map_stability.Config(), (), maps).rows


def test_each_trial_says_where_its_map_sends_the_two(fixed: Dataset) -> None:
    rows = stability(fixed, GAP * np.array([[0.0], [1.0], [2.0]]))
    found = rows[rows["statistic"] == "image"].set_index(["repetition", "point", "feature"])["value"]
    assert set(rows["statistic"]) == {"image", "ks", "orientation"}
    assert rows.loc[rows["statistic"] == "orientation", "value"].to_numpy() == pytest.approx(np.ones(3 * 2))
    assert len(found) == 3 * 2 * 2
    for trial in range(3):
        for j, name in enumerate(("1", "2")):
            assert found[trial, "ones", name] == pytest.approx(1 + trial * GAP[j])
            assert found[trial, "zeros", name] == pytest.approx(trial * GAP[j])


def test_a_mirrored_feature_has_the_marginals_of_the_group_and_the_opposite_orientation() -> None:
    rows = np.random.default_rng(0).normal(size=(4000, 2))
    images = rows * np.array([1.0, -1.0])
    assert quality.healthy(quality.ks(rows, images))
    assert quality.orientation(rows, images) == pytest.approx([1.0, -1.0])
    assert np.isnan(quality.orientation(np.ones((3, 1)), np.ones((3, 1)))).all()


def test_a_map_that_misses_the_group_says_so_however_surely_it_does(fixed: Dataset) -> None:
    """Two draws of one law are near each other; people who are led far away all lie beyond the target group."""
    unmoved, away, none = (
        chosen(stability(fixed, np.broadcast_to(by, (3, 2))), statistic="ks")["value"] for by in (GAP, 100.0, np.nan)
    )
    assert len(unmoved) == len(away) == 3
    assert (unmoved < 0.7).all()
    assert away.tolist() == [1.0] * 3
    assert none.isna().all()


def test_a_dataset_without_the_fixed_people_is_refused() -> None:
    maps = replace(shift(np.zeros(3)), features=TOY.feature_names)
    with invalid(source="toy", option="dataset"):
        map_stability.run(TOY, BY_X, map_stability.Config(), (), maps)
