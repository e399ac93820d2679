"""Flipsets: Definition 1 and Proposition 2, decisions, the word for a line, and marginal histograms."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairness_audits as fa
from fairness_audits import models
from fairness_audits.audits.fliptest.core import Decide, People, noise_floor, sizes_between_halves
from fairness_audits.audits.fliptest.flipsets import Flipsets, RandomSplit, Sizes, halves, random_splits, upper
from fairness_audits.audits.fliptest.transparency import TransparencyReport, standing, transparency_report
from fairness_audits.transport.plan import best_plan
from fairness_audits.values import Array, Classifier
from pipeline.predictions import judged
from tests.attacks.builders import mixture, network
from tests.audits.permutation.builders import near


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=20))
def test_flipsets_are_by_definition_1_and_the_net_size_is_a_difference_of_counts(people: list[tuple[int, int]]) -> None:
    """So it is 0 exactly where a one-to-one map finds demographic parity: Proposition 2, also within a true label."""
    decision, image = np.array(people).T
    flips, inverse = Flipsets(decision, image), Flipsets(image, decision)
    np.testing.assert_array_equal(flips.positive, (decision == 1) & (image == 0))
    np.testing.assert_array_equal(flips.negative, (decision == 0) & (image == 1))
    np.testing.assert_array_equal(flips.either, decision != image)
    assert flips.net == decision.sum() - image.sum() == flips.positive.sum() - flips.negative.sum() == -inverse.net
    np.testing.assert_array_equal(inverse.positive, flips.negative)


# Scores and decisions of one evaluation are those of two.
R, D = 2, 3
rng = np.random.default_rng(11)
PARAMETERS: dict[str, dict[str, Array]] = {
    "kernel": {
        "support": rng.normal(size=(R, 9, D)),
        "dual": rng.normal(size=(R, 9)),
        "intercept": np.zeros(R),
        "gamma": np.array([0.1, 0.2]),
        "columns": np.tile(np.arange(D), (R, 1)),
    },
    "linear": {"coef": rng.normal(size=(R, D)), "intercept": rng.normal(size=R), "threshold": rng.normal(size=R)},
    "mlp": network(11, repetitions=R, d=D),
    "logistic_mixture": mixture(11, repetitions=R, d=D, members=2),
}
ROWS = np.random.default_rng(5).normal(size=(200, D))


def classifier(architecture: str) -> Classifier:
    return Classifier("given", "data", "twin", architecture, PARAMETERS[architecture])


@pytest.mark.parametrize("repetition", range(R))
@pytest.mark.parametrize("architecture", PARAMETERS)
def test_scores_and_decisions_are_the_architectures(architecture: str, repetition: int) -> None:
    model = classifier(architecture)
    module, x = models.architecture(architecture), np.stack([ROWS] * R)
    expected = module.score(model.parameters, x)[repetition]
    score, decision = judged(model, repetition, ROWS)
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    np.testing.assert_array_equal(decision, module.predict(model.parameters, x)[repetition])
    assert set(np.unique(decision)) == {0, 1}


@pytest.mark.parametrize("architecture", ["mlp", "logistic_mixture"])
def test_coins_are_tossed_against_the_score(architecture: str) -> None:
    model, coin = classifier(architecture), np.random.default_rng(6).random(len(ROWS))
    score, decision = judged(model, 1, ROWS, coin=coin)
    np.testing.assert_array_equal(score, judged(model, 1, ROWS)[0])
    np.testing.assert_array_equal(decision, coin < score)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.4, 0.6, "stands out"),
        (-0.6, -0.4, "stands out"),
        (1.3, 1.3, "stands out"),
        (-0.1, 0.6, "noise"),
        (0.0, 0.6, "noise"),
        (-0.6, 0.0, "noise"),
        (np.nan, np.nan, "noise"),
    ],
)
def test_noise_is_an_interval_over_zero_or_none(low: float, high: float, word: str) -> None:
    assert standing(low, high) == word


# Definition 2, its rankings, and what stands beside each line.


def reported(features: Array, shift: Any, members: Array, seed: int = 0, **how: Any) -> TransparencyReport:
    """Of people whose images are their features less the shift."""
    return transparency_report(features, features - shift, members, 200, 0.05, np.random.default_rng(seed), **how)


def test_a_report_by_hand() -> None:
    features = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 2.0], [9.0, 9.0, 9.0]])
    shift = np.array([[1.0, -2.0, 0.0], [2.0, -3.0, -1.0], [9.0, 9.0, 9.0]])
    report = reported(features, shift, np.array([True, True, False]))
    np.testing.assert_array_equal(report.mean_shift, [1.5, -2.5, -0.5])
    np.testing.assert_array_equal(report.mean_sign, [1, -1, -0.5])
    np.testing.assert_array_equal(report.rank_mean, [2, 1, 3])
    np.testing.assert_array_equal(report.rank_sign, [1, 1, 3])
    np.testing.assert_array_equal(report.feature_mean, [2, 5, 1])


def test_the_shift_of_everyone_is_that_of_any_flipset() -> None:
    rng = np.random.default_rng(1)
    shift = np.array([0.5, -1.0, 0.0])
    report = reported(rng.normal(size=(400, 3)), shift, rng.random(400) < 0.2)
    for found in (report.mean_shift, report.mean_shift_ci_low, report.mean_shift_ci_high):
        np.testing.assert_allclose(found, shift, atol=1e-12)


def test_a_shift_of_the_members_alone_leads_and_leaves_out_zero() -> None:
    rng = np.random.default_rng(2)
    features, members = rng.normal(size=(600, 4)), rng.random(600) < 0.15
    shift = rng.normal(size=(600, 4))
    shift[members, 2] += 2
    report = reported(features, shift, members)
    assert report.rank_mean[2] == report.rank_sign[2] == 1
    assert report.mean_shift_ci_low[2] > 1.5
    assert (report.mean_shift_ci_low < report.mean_shift).all()
    assert (report.mean_shift_ci_high > report.mean_shift).all()


def test_a_feature_that_is_no_line_is_measured_but_not_ranked() -> None:
    features, lines = np.random.default_rng(4).normal(size=(50, 3)), np.array([False, True, True])
    report = reported(features, [100.0, 2.0, 1.0], np.arange(50) < 9, lines=lines)
    np.testing.assert_allclose(report.mean_shift, [100, 2, 1])
    np.testing.assert_array_equal(report.rank_mean, [np.nan, 1, 2])
    np.testing.assert_array_equal(np.isnan(report.rank_sign), ~lines)


def test_an_empty_flipset_has_an_empty_report_and_one_member_no_interval() -> None:
    features = np.random.default_rng(5).normal(size=(20, 2))
    empty = reported(features, 2 * features, np.zeros(20, bool))
    assert all(np.isnan(values).all() and values.shape == (2,) for values in vars(empty).values())
    one = reported(features, 2 * features, np.arange(20) == 3)
    np.testing.assert_allclose(one.mean_shift, 2 * features[3])
    assert np.isnan(one.mean_shift_ci_low).all()


def test_every_deal_gives_each_person_one_place() -> None:
    splits = random_splits(3, 5, 200, np.random.default_rng(1))
    for split in splits:
        assert (len(split.source), len(split.target)) == (3, 5)
        assert sorted([*split.source, *split.target]) == list(range(8))
    assert near(float(np.mean([0 in split.source for split in splits])), 3 / 8, 200)


def seeded() -> np.random.Generator:
    return np.random.default_rng(1)


def between(features: Array, decide: Decide, most: int, times: int, moved: Array | None = None) -> tuple[Sizes, int]:
    """The flipsets between halves of people, all of whose columns are moved unless said."""
    n, d = features.shape
    people = decide(features, np.arange(n))
    return sizes_between_halves(people, np.arange(d) if moved is None else moved, decide, most, times, seeded())


def test_halves_are_of_one_size_and_nobody_is_in_both() -> None:
    for people, most, side in ((9, 100, 4), (50, 10, 10), (1, 5, 0)):
        for split in halves(people, most, 20, np.random.default_rng(2)):
            assert len(split.source) == len(split.target) == side
            assert len({*split.source, *split.target}) == 2 * side
    used = [person for split in halves(50, 10, 200, np.random.default_rng(3)) for person in split.source]
    assert np.bincount(used, minlength=50).min() > 0


def test_sizes_are_those_of_the_flipsets_and_the_p_value_counts_the_observed_groups_among_the_deals() -> None:
    null = Sizes(np.array([1, 2, 0, 4]), np.array([1, 0, 0, 3]))
    np.testing.assert_array_equal(null.either, [2, 2, 0, 7])
    np.testing.assert_array_equal(null.net, [0, 2, 0, 1])
    assert null.p_value(null.either, 2) == 4 / 5
    assert null.p_value(null.either, 3) == 2 / 5
    assert null.p_value(null.either, 8) == 1 / 5
    assert null.p_value(null.either, 0) == 1
    # Shares in splits of 500 times 390 people: 3 of 500 and 6 of 1000 are the same size.
    scaled = Sizes(np.array([50, 100]), np.zeros(2)).scaled(390 / 500).positive
    assert Sizes(scaled, 0 * scaled).p_value(np.nextafter(scaled, 0), 78) == 2 / 3
    splits = [RandomSplit(np.array(source), np.array([])) for source in ([4, 3, 2, 1], [1, 2, 3, 4])]
    images = np.array([[0, 0, 1, 0], [0, -1, 0, -1]])
    found = noise_floor(np.array([9, 0, 0, 1, 1]), splits, images)
    assert (found.positive.tolist(), found.negative.tolist()) == ([2, 1], [1, 0])


def test_the_upper_end_is_the_largest_of_nineteen_and_exceeded_as_rarely_as_promised() -> None:
    sizes = np.random.default_rng(5).permutation(40)
    assert upper(sizes[:19], 0.05) == sizes[:19].max()
    assert np.isnan(upper(sizes[:18], 0.05))
    assert upper(sizes[:39], 0.05) == np.sort(sizes[:39])[37]
    rng = np.random.default_rng(4)
    beyond = np.mean([row[-1] > upper(row[:-1], 0.05) for row in rng.normal(size=(20_000, 20))])
    assert beyond == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 20_000))


def above_zero(features: Array, _: Array) -> People:
    return People(features, features[:, 0], (features[:, 0] > 0).astype(int))


def test_along_a_line_the_halves_are_matched_in_order_and_one_person_has_none() -> None:
    features = np.random.default_rng(0).normal(size=(81, 1))
    found, side = between(features, above_zero, 30, 25)
    assert side == 30
    for k, split in enumerate(halves(81, 30, 25, seeded())):
        own, other = (np.sort(features[end, 0]) > 0 for end in (split.source, split.target))
        assert found.positive[k] == (own > other).sum()
        assert found.negative[k] == (own < other).sum()
    assert found.either.sum() > 0
    found, side = between(np.ones((1, 1)), above_zero, 9, 19)
    assert (side, len(found.either)) == (0, 0)


def test_matches_cost_no_more_than_exact_transport() -> None:
    """The people and the counterparts that are decided about are at the distance of the best plan."""
    features, seen = np.random.default_rng(2).normal(size=(60, 3)), []

    def remembered(points: Array, whom: Array) -> People:
        seen.append((features[whom], points))
        return above_zero(points, whom)

    between(features, remembered, 30, 1)
    people, counterparts = seen[-1]
    paid = (np.abs(people - counterparts).sum(axis=1) ** 2).mean()
    assert paid == pytest.approx(best_plan(people, counterparts, "squared_l1").cost)
    assert len(np.unique(np.vstack([people, counterparts]), axis=0)) == 60


@pytest.mark.parametrize("by", [lambda x, whom: whom % 2, lambda x, whom: x[:, 1]], ids=["a coin", "what stays"])
def test_a_person_keeps_the_coin_and_the_columns_that_no_map_moves(by: Any) -> None:
    """Equal people with coins of their own: a decision by the coin, or by the column that stays, flips nobody."""
    rng = np.random.default_rng(4)
    features = np.column_stack([rng.normal(size=50), rng.integers(0, 2, 50)])
    decide = lambda x, whom: People(x, whom, by(x, whom).astype(int))  # noqa: E731
    found, _ = between(features, decide, 500, 10, np.array([0]))
    assert found.either.tolist() == [0] * 10


@pytest.mark.parametrize("kind", ["entropic", "exact"])
def test_the_shares_of_equal_people_in_refitted_maps_differ_by_chance_alone(kind: str) -> None:
    """140 equal people, of whom about 60 flip in each of 20 maps: by chance, nobody flips in 18 of them."""
    rows = pd.DataFrame({"town": np.where(np.r_[np.arange(200) < 60, np.arange(200) < 120], "x", "y")})
    call: dict[str, Any] = {"source": "a", "target": "b", "map": kind, "null_draws": 0, "refits": 20}
    found = fa.fliptest(lambda frame: (frame["town"] == "x") * 1, rows, np.repeat(["a", "b"], 200), **call)
    share = found.to_frame("people")["share"][60:]
    assert share.mean() == pytest.approx(60 / 140, abs=0.05)
    assert share.std() < 1.3 * np.sqrt(share.mean() * (1 - share.mean()) / 20)
    assert found.facts["results"][0]["refits"]["held"] == {"positive": 0, "negative": 0}


def test_a_result_does_not_keep_the_model() -> None:
    """Otherwise it could not be pickled, because a function that is defined here cannot."""
    rows = pd.DataFrame({"x": np.arange(60.0)})
    call: dict[str, Any] = {"source": "a", "target": "b", "map": "exact", "null_draws": 0, "refits": 0}
    found = fa.fliptest(lambda frame: (frame["x"] > 30) * 1, rows, np.tile(["a", "b"], 30), **call)
    assert pickle.loads(pickle.dumps(found)).summary() == found.summary()
