"""Counterfactuals keep a student's knowledge; where the causal model holds, one group becomes the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipeline.seeds import generators
from pipeline.transport import counterfactual
from pipeline.transport.between import Between, fitted, mapped, transported_columns
from pipeline.transport.counterfactual import Config, images, independent_dummies
from pipeline.transport.law_school import FittedStudents, Sampling, estimates
from pipeline.types import Array, Dataset, TransportMap

VALUES: dict[str, Any] = {
    "score": "LSAT",
    "grade": "UGPA",
    "outcome": "ZFYA",
    "inference": "map",
    "chains": 2,
    "warmup": 10,
    "draws": 10,
    "image": "sample",
}
RACE = Between(attribute="race", source="Black", given_label=None, split="train", points=None, both=True)
RACES = ("Black", "Other", "White")
GRADE = {"Black": -0.5, "Other": -0.1, "White": 0.0}
SCORE = {"Black": -0.3, "Other": -0.1, "White": 0.0}
RNGS = generators("counterfactual", repetitions=2)


def config(**values: Any) -> Config:
    return Config(**{**VALUES, **values})


def students(n: int = 2000) -> Dataset:
    """Students of the causal model with three races and two sexes; sex does nothing."""
    rng = np.random.default_rng(0)
    race, sex, u = rng.choice(3, n, p=[0.25, 0.25, 0.5]), rng.integers(0, 2, n), rng.normal(size=n)
    shift = {name: np.array([effect[r] for r in RACES])[race] for name, effect in (("g", GRADE), ("s", SCORE))}
    outcome = 0.4 * u + 2 * shift["g"] + rng.normal(size=n)
    dummies = [race == r for r in range(3)] + [sex == s for s in range(2)]
    score, grade = rng.poisson(np.exp(3.6 + 0.1 * u + shift["s"])), 3.2 + 0.35 * u + shift["g"] + rng.normal(0, 0.2, n)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    return Dataset(
        name="students",
        origin="simulated",
        features=np.column_stack([score, grade, *dummies]).astype(float),
        feature_names=("LSAT", "UGPA", *(f"race={r}" for r in RACES), "sex=F", "sex=M"),
        continuous=(),
        label=(outcome > np.median(outcome)).astype(np.int64),
        label_name="above",
        protected={"race": np.array([0, -1, 1])[race], "sex": sex},
        levels={"race": ("Black", "White"), "sex": ("F", "M")},
        train=order[:, :1500],
        test=order[:, 1500:],
        outcomes={"ZFYA": outcome},
    )


def between_groups(data: Dataset, between: Between, **values: Any) -> TransportMap:
    """The map as the transport stage completes it."""
    maps = fitted(data, between, counterfactual, config(**values), RNGS)
    columns = transported_columns(data, between.attribute)
    names = data.levels[between.attribute]
    return replace(
        maps,
        transport="counterfactual",
        attribute=between.attribute,
        source=names[0],
        target=names[1],
        features=tuple(data.feature_names[c] for c in columns),
    )


@pytest.fixture(scope="module")
def data() -> Dataset:
    return students()


@pytest.fixture(scope="module")
def maps(data: Dataset) -> TransportMap:
    return between_groups(data, RACE)


def test_where_the_model_holds_one_group_becomes_the_other(data: Dataset, maps: TransportMap) -> None:
    """u is as likely in both groups, so counterfactuals of the one are distributed as the other."""
    for direction in ("forward", "reverse"):
        for one in mapped(maps, data, "train", 2, direction):  # type: ignore[arg-type]
            for column in (0, 1):
                before, after = (
                    stats.ks_2samp(x[:, column], one.target[:, column]).pvalue for x in (one.features, one.images)
                )
                assert before < 1e-20
                assert after > 1e-3
            assert np.array_equal(one.images[:, 0], np.rint(one.images[:, 0]))


def test_race_changes_sex_stays(data: Dataset, maps: TransportMap) -> None:
    assert maps.features == ("LSAT", "UGPA", "sex=F", "sex=M")
    for one in mapped(maps, data, "test", 2):
        assert (one.features[:, 2:5] == [1, 0, 0]).all()
        assert (one.images[:, 2:5] == [0, 0, 1]).all()
        np.testing.assert_array_equal(one.images[:, 5:], one.features[:, 5:])


def test_the_mean_counterfactual_moves_everyone_s_grade_by_about_the_effect_of_race(data: Dataset) -> None:
    maps = between_groups(data, RACE, image="mean")
    for one in mapped(maps, data, "train", 2):
        shift = one.images[:, :2].mean(axis=0) - one.features[:, :2].mean(axis=0)
        assert shift[1] == pytest.approx(-GRADE["Black"], abs=0.06)
        rate = np.exp(3.6 + 0.1**2 / 2)
        assert shift[0] == pytest.approx(rate * (1 - np.exp(SCORE["Black"])), abs=0.8)
        # A mean varies less than a draw: what is not known of u, and the noise, are gone.
        assert one.images[:, 1].std() < one.target[:, 1].std()


def test_images_are_the_same_again_and_differ_between_trials_and_directions(data: Dataset, maps: TransportMap) -> None:
    rows = [data.features[:300][:, [0, 1, 5, 6]]] * 2
    once, again, back = images(maps.parameters, rows), images(maps.parameters, rows), images(maps.reverse, rows)
    for one, two in zip(once, again, strict=True):
        np.testing.assert_array_equal(one, two)
    noise = [image[:, 1] - image[:, 1].mean() for image in (*once, *back)]
    assert all(abs(np.corrcoef(noise[0], other)[0, 1]) < 0.97 for other in noise[1:])
    assert len(np.unique(np.concatenate([maps.parameters["seed"], maps.reverse["seed"]]))) == 4


def exact_parameters(**values: Any) -> dict[str, Array]:
    """A grade that tells u exactly; columns: grade, one dummy, score."""
    one = {
        "grade_column": 0,
        "score_column": 2,
        "grade_coef": [0.0, 0.2, 0.0],
        "score_coef": [0.0, 0.1, 0.0],
        "grade_mean": [3.0, 3.5],
        "score_mean": [3.0, 3.4],
        "grade_loading": 0.5,
        "score_loading": 0.0,
        "sigma": 1e-4,
        "sampled": False,
        "seed": 0,
        **values,
    }
    return {name: np.array([value]) for name, value in one.items()}


def test_a_grade_that_tells_knowledge_exactly_is_moved_by_the_difference_of_the_groups() -> None:
    rows = np.array([[2.8, 0.0, 20.0], [3.9, 1.0, 30.4]])
    (found,) = images(exact_parameters(), [rows])
    np.testing.assert_allclose(found, [[3.3, 0, np.exp(3.4)], [4.4, 1, np.exp(3.5)]], rtol=1e-6)


def test_fractions_of_a_score_are_rounded() -> None:
    parameters = exact_parameters(score_loading=0.3, sigma=0.5)
    rounded, fraction, other = (images(parameters, [np.array([[3.0, 0.0, score]])])[0] for score in (30, 30.4, 31))
    np.testing.assert_array_equal(rounded, fraction)
    assert other[0, 0] > rounded[0, 0]


def test_the_most_frequent_level_of_each_attribute_has_no_dummy(data: Dataset) -> None:
    kept = [data.feature_names[c] for c in independent_dummies(data, config())]
    assert len(kept) == 3
    assert {"race=Black", "race=Other"} < set(kept)
    frequent = max(("sex=F", "sex=M"), key=lambda name: data.features[:, data.feature_names.index(name)].mean())
    assert frequent not in kept


def test_facts_say_what_was_estimated(maps: TransportMap) -> None:
    assert set(maps.facts) == {
        "log_density",
        "iterations",
        "grade_loading",
        "score_loading",
        "outcome_loading",
        "sigma",
    }
    explained, noise = maps.facts["grade_loading"] ** 2, maps.facts["sigma"] ** 2
    np.testing.assert_allclose(explained + noise, 0.35**2 + 0.2**2, rtol=0.1)
    assert (explained > noise).all()


def test_the_posterior_is_drawn_from_where_that_is_asked_for(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def recorded(trials: list[Any], sampling: Sampling | None, seeds: list[int]) -> list[FittedStudents]:
        asked.append((sampling, len(seeds)))
        return estimates(trials, None, seeds)

    monkeypatch.setattr(counterfactual, "estimates", recorded)
    fitted(data, RACE, counterfactual, config(inference="nuts", chains=3, warmup=20, draws=30), RNGS)
    fitted(data, RACE, counterfactual, config(), RNGS)
    assert asked == [(Sampling(3, 20, 30), 2), (None, 2)]


def test_the_mode_and_the_draws_flip_nearly_the_same_people(data: Dataset) -> None:
    """One trial, the same random numbers for the images: only the coefficients differ, by parts of a standard error."""
    between, flips = replace(RACE, both=False), {}
    for inference in ("map", "nuts"):
        rngs = generators("counterfactual", repetitions=1)
        maps = fitted(data, between, counterfactual, config(inference=inference, warmup=60, draws=100), rngs)
        black = data.features[data.train[0]][data.protected["race"][data.train[0]] == 0]
        columns = transported_columns(data, "race")
        (image,) = images(maps.parameters, [black[:, columns]])
        positive = [10 * rows[:, 0] / 37 + 3 * rows[:, 1] > 18.5 for rows in (black[:, columns], image)]
        flips[inference] = ~positive[0] & positive[1]
        told = {"r_hat", "effective_size", "divergences"}
        assert told <= set(maps.facts) if inference == "nuts" else not told & set(maps.facts)
    mode, sampled = flips.values()
    assert mode.sum() > 100
    assert abs(int(mode.sum()) - int(sampled.sum())) < 0.05 * mode.sum()
    assert (mode & sampled).sum() > 0.85 * mode.sum()


def test_one_direction_is_fitted_where_one_is_asked_for(data: Dataset) -> None:
    alone = fitted(
        data, replace(RACE, both=False), counterfactual, config(), generators("counterfactual", repetitions=2)
    )
    assert alone.reverse == {}
    assert alone.parameters["seed"].shape == (2,)


@pytest.mark.parametrize(
    ("changes", "values", "message"),
    [
        ({}, {"score": "SAT"}, r"needs transport\.score among .*, found 'SAT': it is a model of the law-school data"),
        ({}, {"outcome": "FYA"}, r"needs transport\.outcome among \['ZFYA'\]"),
        ({"continuous": ("UGPA",)}, {}, r"in their own units: 'students' standardises \['UGPA'\]"),
        ({"features": -1.0}, {}, r"its smallest LSAT is -1"),
        ({"features": 0.5}, {}, r"0/1 columns besides score and grade; \['race=Black'\] of 'students' are not"),
    ],
)
def test_data_of_another_form_are_refused(
    data: Dataset, changes: Mapping[str, Any], values: Mapping[str, Any], message: str
) -> None:
    changed = dict(changes)
    if "features" in changed:
        features = data.features.copy()
        features[0, 0 if changed["features"] < 0 else 2] = changed["features"]
        changed["features"] = features
    with pytest.raises(ValueError, match=message):
        fitted(replace(data, **changed), RACE, counterfactual, config(**values), RNGS)


def test_a_part_of_the_rows_is_refused(data: Dataset) -> None:
    for between in (replace(RACE, given_label=1), replace(RACE, points=100)):
        with pytest.raises(
            ValueError, match=r"every row of the split: expected transport\.given_label and .*points null"
        ):
            fitted(data, between, counterfactual, config(), RNGS)


def test_rows_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="expected finite rows, found NaN or inf"):
        images(exact_parameters(), [np.array([[3.0, np.nan, 30.0]])])
