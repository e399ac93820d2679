"""The audit: the right people, decided about rightly, counted by direction, flipset and feature."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline.audits.fliptest.fliptest import Config, run
from pipeline.audits.fliptest.transparency import TransparencyReport
from pipeline.seeds import generators
from pipeline.transport.quality import nearest_values
from pipeline.types import Array, AuditResult, Classifier, Dataset, TransportMap
from tests.audits.fliptest.builders import GAP, TOY, exact_maps, rule, shift
from tests.builders import chosen

CONFIG = Config(
    "test", "threshold", None, alpha=0.05, bootstraps=200, permutations=199, units="model", noise_deals=19,
    noise_people=60,
)  # fmt: skip
TOSSED = replace(CONFIG, decision="randomised")


def audited(dataset: Dataset, classifier: Classifier, maps: TransportMap, config: Config = CONFIG) -> AuditResult:
    return run(dataset, classifier, config, generators("audit", repetitions=classifier.repetitions), maps)


def one(result: AuditResult, **where: object) -> pd.Series:
    """The statistics of one repetition, direction, flipset and feature, by name; the whole group unless said."""
    whole = {"repetition": 0, "direction": "forward", "flipset": "", "feature": ""}
    return chosen(result.rows, **{**whole, **where}).set_index("statistic")["value"]


def members(dataset: Dataset, group: int, repetition: int = 0, split: str = "test") -> Array:
    rows = getattr(dataset, split)[repetition]
    return rows[dataset.protected["group"][rows] == group]


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("repetition", [0, 1])
def test_flipsets_are_the_people_between_the_boundary_and_its_preimage(
    direction: str,
    repetition: int,
) -> None:
    weights = np.array([1.0, 2.0])
    result = audited(TOY, rule(*weights, 0.0, intercept=-0.3), shift())
    own, other = (members(TOY, g, repetition) for g in ((0, 1) if direction == "forward" else (1, 0)))
    score = TOY.features[:, :2] @ weights - 0.3
    gain = weights @ GAP * (1 if direction == "forward" else -1)
    expected = {
        "positive": ((score[own] > 0) & (score[own] + gain <= 0)).sum(),
        "negative": ((score[own] <= 0) & (score[own] + gain > 0)).sum(),
    }
    where = {"repetition": repetition, "direction": direction}
    whole = one(result, **where)
    for flipset, size in expected.items():
        found = one(result, **where, flipset=flipset)
        assert found["size"] == size
        assert found["share"] == size / len(own)
        assert found["of"] == ((score[own] > 0) == (flipset == "positive")).sum()
    assert sum(expected.values()) > 0
    assert whole["net"] == expected["positive"] - expected["negative"]
    assert whole["net_ci_low"] < whole["net"] < whole["net_ci_high"]
    assert whole["n_source"] == len(own)
    assert whole["n_target"] == len(other)
    assert whole["positives_source"] == (score[own] > 0).sum()
    assert whole["positives_target"] == (score[other] > 0).sum()
    assert whole["positives_image"] == (score[own] + gain > 0).sum()
    assert whole["non_finite"] == 0
    assert set(result.rows[result.rows["direction"] == direction]["source"]) == {"F" if direction == "forward" else "M"}


def test_the_transparency_report_has_the_papers_sign_and_leaves_the_group_itself_unranked() -> None:
    result = audited(TOY, rule(1.0, 0.0, 0.0), shift())
    for name, expected, rank in (("x", -GAP[0], 1), ("z", -GAP[1], 2), ("g", -1, np.nan)):
        found = one(result, flipset="negative", feature=name)
        np.testing.assert_allclose(found["mean_shift"], expected)
        np.testing.assert_equal(found["rank_mean"], rank)
        assert found["mean_sign"] == np.sign(expected)
        assert np.isnan(found["mean_shift_p"]) == (name == "g")
        np.testing.assert_allclose(one(result, feature=name)["mean_shift"], expected)
    own = members(TOY, 0)
    x = TOY.features[own, 0]
    flipped = (x <= 0) & (x + GAP[0] > 0)
    np.testing.assert_allclose(one(result, flipset="negative", feature="x")["feature_mean"], x[flipped].mean())
    np.testing.assert_allclose(one(result, feature="x")["feature_mean"], x.mean())
    assert one(result, flipset="positive", feature="x").isna().all()


def test_proposition_2_holds_for_the_exact_map_of_groups_of_one_size() -> None:
    equal = np.concatenate([members(TOY, g)[:150] for g in (0, 1)])
    few = replace(TOY, test=equal[None], train=equal[None])
    maps = exact_maps(few)
    # x alone favours M and z alone F: some sum of the two accepts as many of each.
    x = few.features[equal, :2]
    accepted = {w: (x @ [1.0, w] > 0.2).reshape(2, 150).sum(axis=1) for w in np.linspace(0, 4, 81)}
    weight = next(w for w, (women, men) in accepted.items() if women == men)
    fair = audited(few, rule(1.0, weight, 0.0, intercept=-0.2, repetitions=1), maps)
    unfair = audited(few, rule(1.0, 0.0, 0.0, repetitions=1), maps)
    for result in (fair, unfair):
        whole, back = one(result), one(result, direction="reverse")
        assert whole["positives_image"] == whole["positives_target"]
        assert whole["net"] == whole["positives_source"] - whole["positives_target"] == -back["net"]
        assert whole["ks"] == 0
    assert one(fair)["net"] == 0 > one(unfair)["net"]
    assert one(fair, flipset="positive")["size"] == one(fair, flipset="negative")["size"] > 0


def test_the_given_threshold_decides_instead_of_the_models_own() -> None:
    classifier = rule(1.0, 0.0, 0.0)
    own, half, strict = (
        one(audited(TOY, classifier, shift(), replace(CONFIG, threshold=threshold)))["positives_source"]
        for threshold in (None, 0.5, 0.8)
    )
    assert own == half == (TOY.features[members(TOY, 0), 0] > 0).sum()
    assert strict == (TOY.features[members(TOY, 0), 0] > np.log(4)).sum() < half


def test_a_persons_coin_is_tossed_once_for_them_and_their_counterpart() -> None:
    still = audited(TOY, rule(0.0, 0.0, 0.0), shift(np.zeros(2)), TOSSED)
    n = one(still)["n_source"]
    assert stats.binomtest(int(one(still)["positives_source"]), int(n), 0.5).pvalue > 1e-4
    assert one(still, flipset="positive")["size"] == one(still, flipset="negative")["size"] == 0
    better = audited(TOY, rule(1.0, 0.0, 0.0), shift(np.array([1.0, 0.0])), TOSSED)
    x = TOY.features[members(TOY, 0), 0]
    chance = 1 / (1 + np.exp(-x - 1)) - 1 / (1 + np.exp(-x))
    assert one(better, flipset="positive")["size"] == 0
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs(one(better, flipset="negative")["size"] - chance.sum()) < 4 * spread


def test_a_person_is_decided_about_alike_as_source_and_as_target() -> None:
    result = audited(TOY, rule(1.0, -1.0, 0.0), shift(), TOSSED)
    for repetition in (0, 1):
        forward, reverse = (one(result, repetition=repetition, direction=d) for d in ("forward", "reverse"))
        assert forward["positives_target"] == reverse["positives_source"]
        assert forward["positives_source"] == reverse["positives_target"]


def test_a_coin_needs_a_probability() -> None:
    parameters = {"coef": np.ones((2, 3)), "intercept": np.zeros(2), "threshold": np.zeros(2)}
    classifier = Classifier("linear_regression", "toy", "simulated", "linear", parameters)
    with pytest.raises(ValueError, match=r"randomised decision needs probabilities, .*'linear'"):
        audited(TOY, classifier, shift(), TOSSED)


def test_a_regression_decides_by_its_own_threshold_and_scores_in_its_own_units() -> None:
    parameters = {"coef": np.tile([3.0, 0, 0], (2, 1)), "intercept": np.full(2, 7.0), "threshold": np.full(2, 8.0)}
    classifier = Classifier("linear_regression", "toy", "simulated", "linear", parameters)
    result = audited(TOY, classifier, shift())
    x = TOY.features[members(TOY, 0), 0]
    assert one(result, flipset="negative")["size"] == ((3 * x <= 1) & (3 * (x + GAP[0]) > 1)).sum() > 0
    np.testing.assert_allclose(result.arrays["score"], 3 * x + 7)
    np.testing.assert_allclose(result.arrays["score_image"], 3 * (x + GAP[0]) + 7)


def test_people_without_a_finite_image_are_left_out_and_counted() -> None:
    result = audited(TOY, rule(1.0, 0.0, 0.0, intercept=-1.0), shift(limit=0.9))
    x = TOY.features[members(TOY, 0), 0]
    whole = one(result)
    assert whole["non_finite"] == (x > 0.9).sum() > 0
    assert whole["n_source"] == (x <= 0.9).sum() == len(result.arrays["rows"])
    assert whole["positives_source"] == 0
    assert one(result, flipset="negative")["size"] == ((x <= 0.9) & (x > 0.2)).sum()
    assert np.isfinite(result.arrays["images"]).all()
    nobody = one(audited(TOY, rule(1.0, 0.0, 0.0), shift(limit=-np.inf)))
    assert nobody["n_source"] == nobody["net"] == nobody["healthy"] == 0


def test_a_map_that_misses_the_target_group_is_not_healthy() -> None:
    good, bad = (one(audited(TOY, rule(1.0, 0.0, 0.0), maps)) for maps in (shift(), shift(np.array([0.8, 0.0]))))
    assert (good["healthy"], bad["healthy"]) == (1, 0)
    own, other = (TOY.features[members(TOY, g), 1:2] for g in (0, 1))
    expected = stats.ks_2samp(other[:, 0], nearest_values(other, own)[:, 0]).statistic
    np.testing.assert_allclose(bad["ks"], expected)


def test_a_map_of_one_true_label_audits_the_rows_of_that_label() -> None:
    result = audited(TOY, rule(1.0, 0.0, 0.0), shift(given_label=1))
    own, other = (members(TOY, g) for g in (0, 1))
    assert one(result)["n_source"] == TOY.label[own].sum()
    assert one(result)["n_target"] == TOY.label[other].sum()
    assert (TOY.label[result.arrays["rows"]] == 1).all()
    x = TOY.features[other[TOY.label[other] == 1], 0]
    assert one(result)["positives_target"] == (x > 0).sum()


def test_as_many_repetitions_as_both_have_and_as_many_directions() -> None:
    assert set(audited(TOY, rule(1.0, 0.0, 0.0), shift(trials=1)).rows["repetition"]) == {0}
    assert set(audited(TOY, rule(1.0, 0.0, 0.0, repetitions=1), shift()).rows["repetition"]) == {0}
    classifier = rule(1.0, 0.0, 0.0)
    both, forward = audited(TOY, classifier, shift()), audited(TOY, classifier, shift(both=False))
    assert set(forward.rows["direction"]) == {"forward"}
    same = both.rows[both.rows["direction"] == "forward"].reset_index(drop=True)
    pd.testing.assert_frame_equal(forward.rows, same)
    assert not [name for name in forward.arrays if name.endswith("_reverse")]


def test_rows_are_tidy_and_complete() -> None:
    rows = audited(TOY, rule(1.0, 2.0, 0.0), shift()).rows
    keys = ["repetition", "direction", "source", "target", "flipset", "feature", "statistic", "alpha"]
    assert set(rows.columns) == {*keys, "value"}
    assert not rows.duplicated(subset=keys).any()
    assert rows["value"].dtype == float
    for flipset in ("positive", "negative"):
        own = rows[(rows["flipset"] == flipset) & (rows["feature"] == "x")]
        assert set(own["statistic"]) == set(TransparencyReport.__dataclass_fields__)
        own = rows[(rows["flipset"] == flipset) & (rows["feature"] == "")]
        assert set(own["statistic"]) == {"size", "size_ci_low", "size_ci_high", "share", "of"}


def test_flips_by_chance_are_those_between_halves_of_one_group() -> None:
    """Of 60 people on a side, counted as shares of the group; a rule that nobody comes near flips nobody."""
    result = audited(TOY, rule(1.0, 0.0, 0.0), exact_maps(TOY))
    for direction, group in (("forward", 0), ("reverse", 1)):
        whole = one(result, direction=direction)
        n = len(members(TOY, group))
        assert (whole["n_source"], whole["noise_people"]) == (n, 60)
        for flipset in ("positive", "negative"):
            found = one(result, direction=direction, flipset=flipset)
            # Mean of 19 deals and the largest, as shares of 60 times n.
            assert found["noise_size"] * 19 * 60 / n == pytest.approx(round(found["noise_size"] * 19 * 60 / n))
            assert found["noise_size_upper"] * 60 / n == pytest.approx(round(found["noise_size_upper"] * 60 / n))
            assert 0 < found["noise_size"] < found["noise_size_upper"] < 0.3 * n
    nobody = audited(TOY, rule(1.0, 0.0, 0.0, intercept=-99.0), exact_maps(TOY))
    for flipset in ("positive", "negative"):
        found = one(nobody, flipset=flipset)
        assert found["noise_size"] == found["noise_size_upper"] == 0


def test_a_rule_on_the_group_itself_flips_everyone_and_makes_no_flips_by_chance() -> None:
    result = audited(TOY, rule(0.0, 0.0, 1.0, intercept=-0.5), exact_maps(TOY))
    assert one(result, flipset="positive", direction="reverse")["share"] == 1
    assert one(result, flipset="negative")["share"] == 1
    assert one(result, flipset="negative")["noise_size_upper"] == 0


def test_chance_is_counted_once_for_exact_maps_alone_and_changes_nothing_else() -> None:
    learned = audited(TOY, rule(1.0, 0.0, 0.0), shift()).rows
    assert not learned["statistic"].str.startswith("noise").any()
    dealt, none = (
        audited(TOY, rule(1.0, 0.0, 0.0), exact_maps(TOY), replace(CONFIG, noise_deals=deals)).rows for deals in (19, 0)
    )
    noise = dealt["statistic"].str.startswith("noise")
    assert set(dealt[noise]["repetition"]) == {0}
    pd.testing.assert_frame_equal(dealt[~noise].reset_index(drop=True), none)


def test_shared_people_are_counted_between_repetitions() -> None:
    result = audited(TOY, rule(1.0, 0.0, 0.0), shift())
    first, second = (set(members(TOY, 0, r).tolist()) for r in (0, 1))
    for r, own in enumerate((first, second)):
        assert one(result, repetition=r)["shared"] == pytest.approx(len(first & second) / len(own))
    assert one(audited(TOY, rule(1.0, 0.0, 0.0, repetitions=1), shift(trials=1)))["shared"] == 0


def test_shifts_are_ranked_in_deviations_where_asked_and_keep_their_own_units() -> None:
    """z in hundredths moves by 50 and x by 0.8: the larger shift, but half a deviation against 0.8 of one."""
    scaled = replace(TOY, features=TOY.features * [1.0, 100.0, 1.0])
    maps = shift(GAP * [1.0, 100.0])
    plain, ranked = (
        audited(scaled, rule(1.0, 0.0, 0.0), maps, replace(CONFIG, units=units)) for units in ("model", "deviations")
    )
    for result, ranks in ((plain, (2, 1)), (ranked, (1, 2))):
        lines = [one(result, flipset="negative", feature=name) for name in ("x", "z")]
        assert tuple(line["rank_mean"] for line in lines) == ranks
        np.testing.assert_allclose([line["mean_shift"] for line in lines], -GAP * [1, 100])
    pooled = np.concatenate([ranked.arrays["features"], ranked.arrays["target_features"]]).std(axis=0)
    np.testing.assert_allclose(ranked.arrays["units"], [*pooled[:2], 1])
    np.testing.assert_array_equal(plain.arrays["units"], 1)


def test_arrays_are_those_of_the_first_repetition() -> None:
    result = audited(TOY, rule(1.0, 2.0, 0.0), shift())
    for suffix, group, sign in (("", 0, 1), ("_reverse", 1, -1)):
        own = members(TOY, group)
        arrays = {
            name: result.arrays[f"{name}{suffix}"] for name in ("rows", "features", "images", "decision", "score")
        }
        np.testing.assert_array_equal(arrays["rows"], own)
        np.testing.assert_array_equal(arrays["features"], TOY.features[own])
        np.testing.assert_allclose(arrays["images"] - arrays["features"], np.tile([*sign * GAP, sign], (len(own), 1)))
        np.testing.assert_array_equal(arrays["decision"], arrays["score"] > 0.5)
        np.testing.assert_array_equal(result.arrays[f"target_features{suffix}"], TOY.features[members(TOY, 1 - group)])
        assert len(result.arrays[f"target_score{suffix}"]) == len(members(TOY, 1 - group))
    assert tuple(result.arrays["feature_names"]) == TOY.feature_names


def test_a_map_that_is_not_defined_on_a_row_stops_the_audit() -> None:
    with pytest.raises(ValueError, match="this map is not defined on these rows"):
        audited(TOY, rule(1.0, 0.0, 0.0), shift(limit=np.nan))


def test_a_group_without_rows_is_named() -> None:
    unlabelled = replace(TOY, label=np.zeros_like(TOY.label))
    with pytest.raises(ValueError, match="no test rows with true label 1: there is no one to map"):
        audited(unlabelled, rule(1.0, 0.0, 0.0), shift(given_label=1))
