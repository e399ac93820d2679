"""Counterfactuals of the causal model of the law school: maps, latent knowledge, and the estimates of the model."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from fairness_audits.seeds import generators
from fairness_audits.values import Array, Dataset, TransportMap
from pipeline.causal.law_school import (
    EQUATIONS,
    LOADINGS,
    NODES,
    FittedStudents,
    Sampling,
    Students,
    compiled_slope,
    curvature,
    diagnostics,
    draws,
    estimates,
    log_marginal,
    named,
)
from pipeline.counterparts import Between, fitted, mapped
from pipeline.transport import counterfactual
from pipeline.transport.counterfactual import Config, Grades, drawn, images, independent_dummies, posterior
from tests.builders import dataset
from tests.errors import invalid

VALUES: dict[str, Any] = {"inference": "map", "chains": 2, "warmup": 10, "draws": 10}
RACE = Between(attribute="race", source="Black", given_label=None, split="train", points=None, both=True)
RACES = ("Black", "Other", "White")
GRADE = {"Black": -0.5, "Other": -0.1, "White": 0.0}
SCORE = {"Black": -0.3, "Other": -0.1, "White": 0.0}
RNGS = generators("counterfactual", repetitions=2)


def config(**values: Any) -> Config:
    return Config(**{**VALUES, **values})


def made_students(n: int = 2000) -> Dataset:
    """Students of the causal model with three races and two sexes; sex does nothing."""
    rng = np.random.default_rng(0)
    race, sex, u = rng.choice(3, n, p=[0.25, 0.25, 0.5]), rng.integers(0, 2, n), rng.normal(size=n)
    shift = {name: np.array([effect[r] for r in RACES])[race] for name, effect in (("g", GRADE), ("s", SCORE))}
    outcome = 0.4 * u + 2 * shift["g"] + rng.normal(size=n)
    dummies = [race == r for r in range(3)] + [sex == s for s in range(2)]
    score, grade = rng.poisson(np.exp(3.6 + 0.1 * u + shift["s"])), 3.2 + 0.35 * u + shift["g"] + rng.normal(0, 0.2, n)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    return dataset(
        np.column_stack([score, grade, *dummies]),
        (outcome > np.median(outcome)).astype(np.int64),
        {"race": np.array([0, -1, 1])[race], "sex": sex},
        order[:, :1500],
        order[:, 1500:],
        name="students",
        feature_names=("LSAT", "UGPA", *(f"race={r}" for r in RACES), "sex=F", "sex=M"),
        levels={"race": ("Black", "White"), "sex": ("F", "M")},
        outcomes={"ZFYA": outcome},
    )


def between_groups(data: Dataset, between: Between, **values: Any) -> TransportMap:
    return fitted(data, between, counterfactual, config(**values), RNGS, "counterfactual")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return made_students()


@pytest.fixture(scope="module")
def maps(data: Dataset) -> TransportMap:
    return between_groups(data, RACE)


def test_where_the_model_holds_one_group_becomes_the_other(data: Dataset, maps: TransportMap) -> None:
    """u is as likely in both groups, so counterfactuals of the one are distributed as the other."""
    for direction in ("forward", "reverse"):
        for one in mapped(maps, data, "train", 2, direction):  # type: ignore[arg-type]
            for column in (0, 1):
                both = (one.features, one.images)
                before, after = (stats.ks_2samp(x[:, column], one.target[:, column]).pvalue for x in both)
                assert before < 1e-20 < 1e-3 < after
            assert np.array_equal(one.images[:, 0], np.rint(one.images[:, 0]))


def test_race_changes_sex_stays(data: Dataset, maps: TransportMap) -> None:
    assert maps.features == ("LSAT", "UGPA", "sex=F", "sex=M")
    for one in mapped(maps, data, "test", 2):
        assert (one.features[:, 2:5] == [1, 0, 0]).all()
        assert (one.images[:, 2:5] == [0, 0, 1]).all()
        np.testing.assert_array_equal(one.images[:, 5:], one.features[:, 5:])


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
        **{"grade_loading": 0.5, "score_loading": 0.0, "sigma": 1e-4, "seed": 0},
        **values,
    }
    return {name: np.array([value]) for name, value in one.items()}


def test_a_grade_that_tells_all_is_moved_by_the_groups_difference_and_fractions_of_a_score_are_rounded() -> None:
    (found,) = images(exact_parameters(), [np.repeat([[2.8, 0.0, 20.0], [3.9, 1.0, 30.4]], 2000, axis=0)])
    for image, expected in zip(found.reshape(2, 2000, 3), ([3.3, 0, 3.4], [4.4, 1, 3.5]), strict=True):
        np.testing.assert_allclose(image[:, :2], [expected[:2]] * 2000, atol=1e-3)
        assert image[:, 2].mean() == pytest.approx(np.exp(expected[2]), abs=0.6)
    parameters = exact_parameters(score_loading=0.3, sigma=0.5)
    rounded, fraction, other = (
        images(parameters, [np.array([[3.0, 0.0, score]] * 300)])[0] for score in (30, 30.4, 40)
    )
    np.testing.assert_array_equal(rounded, fraction)
    assert other[:, 0].mean() > rounded[:, 0].mean() + 0.1


def test_the_most_frequent_level_of_each_attribute_has_no_dummy(data: Dataset) -> None:
    kept = [data.feature_names[c] for c in independent_dummies(data)]
    assert len(kept) == 3
    assert {"race=Black", "race=Other"} < set(kept)
    frequent = max(("sex=F", "sex=M"), key=lambda name: data.features[:, data.feature_names.index(name)].mean())
    assert frequent not in kept


def test_facts_say_what_was_estimated(maps: TransportMap) -> None:
    assert set(maps.facts) == {"log_density", "iterations", "sigma", *(f"{name}_loading" for name in EQUATIONS)}
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


def test_data_without_the_law_schools_columns_are_refused(data: Dataset) -> None:
    other = replace(data, feature_names=("SAT", *data.feature_names[1:]), outcomes={})
    with invalid(source="students", column="LSAT"):
        fitted(other, RACE, counterfactual, config(), RNGS)


def test_a_part_of_the_rows_and_rows_that_are_not_finite_are_refused(data: Dataset) -> None:
    for option, between in (("given_label", replace(RACE, given_label=1)), ("points", replace(RACE, points=100))):
        with invalid(option=option):
            fitted(data, between, counterfactual, config(), RNGS)
    with invalid(option="rows"):
        images(exact_parameters(), [np.array([[3.0, np.nan, 30.0]])])


# The posterior of the latent knowledge: Gaussian where only the grade speaks, else Bayes' rule.


def moments(grade: Array, score: Array, model: Grades) -> tuple[Array, Array]:
    u, probability = posterior(grade, score, model)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    mean = (u * probability).sum(axis=1)
    return mean, ((u - mean[:, None]) ** 2 * probability).sum(axis=1)


@pytest.mark.parametrize("score_loading", [0.0, 0.03, -0.4, 1.5])
def test_moments_are_those_of_bayes_rule_on_a_fine_grid(score_loading: float) -> None:
    rng = np.random.default_rng(0)
    grade, score = rng.normal(3, 1, 20), rng.poisson(30, 20).astype(float)
    model = Grades(np.full(20, 3.0), np.full(20, 3.4), 0.3, score_loading, 0.25)
    u = np.linspace(-12, 12, 40_001)
    log_rate = 3.4 + score_loading * u
    log_density = -(u**2) / 2 - ((grade[:, None] - 3 - 0.3 * u) / 0.25) ** 2 / 2
    log_density = log_density + score[:, None] * log_rate - np.exp(np.minimum(log_rate, 300))
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    expected = density @ u
    mean, variance = moments(grade, score, model)
    np.testing.assert_allclose(mean, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(variance, density @ u**2 - expected**2, rtol=1e-6)


def test_no_grade_and_no_score_is_too_extreme() -> None:
    grade, score = np.array([-1e3, 1e3, 3.0, 3.0]), np.array([30.0, 30.0, 0.0, 1e5])
    u, probability = posterior(grade, score, Grades(np.full(4, 3.0), np.full(4, 3.4), 0.3, 0.5, 0.25))
    assert np.isfinite(u).all()
    assert np.isfinite(probability).all()
    assert (np.diff(u, axis=1) > 0).all()
    assert (probability.argmax(axis=1) == u.shape[1] // 2).all()


def test_draws_have_the_posterior_s_moments() -> None:
    grade, score = np.full(20_000, 3.6), np.full(20_000, 25.0)
    model = Grades(np.full(20_000, 3.0), np.full(20_000, 3.4), 0.3, 0.2, 0.25)
    u, probability = posterior(grade, score, model)
    found = drawn(u, probability, np.random.default_rng(0))
    one = model._replace(grade_mean=np.array([3.0]), score_mean=np.array([3.4]))
    mean, variance = moments(grade[:1], score[:1], one)
    assert found.mean() == pytest.approx(mean[0], abs=4 * np.sqrt(variance[0] / 20_000))
    assert found.var() == pytest.approx(variance[0], rel=0.05)


# The causal model's density is the model's with u integrated out; both estimates find what was planted.


PLANTED: dict[str, Array] = {
    "grade_intercept": np.array(3.0),
    "grade_loading": np.array(0.35),
    "grade_coef": np.array([-0.4, 0.1]),
    "score_intercept": np.array(3.6),
    "score_loading": np.array(0.12),
    "score_coef": np.array([-0.25, 0.0]),
    "outcome_intercept": np.array(0.2),
    "outcome_loading": np.array(0.5),
    "outcome_coef": np.array([-1.0, 0.0]),
    "sigma": np.array(0.25),
}
N = 1500
SAMPLING = Sampling(chains=2, warmup=100, draws=150)


def simulated(seed: int, n: int = N) -> Students:
    """n students of the planted model with two independent dummies."""
    rng = np.random.default_rng(seed)
    u, a = rng.normal(size=n), (rng.random((n, 2)) < [0.3, 0.5]).astype(float)
    mean = {
        name: PLANTED[f"{name}_intercept"] + PLANTED[f"{name}_loading"] * u + a @ PLANTED[f"{name}_coef"]
        for name in EQUATIONS
    }
    return Students(
        grade=mean["grade"] + PLANTED["sigma"] * rng.normal(size=n),
        score=rng.poisson(np.exp(mean["score"])).astype(float),
        outcome=mean["outcome"] + rng.normal(size=n),
        attributes=a,
    )


def vector_of(coefficients: Mapping[str, Array]) -> Array:
    """Coefficients, with sigma, in the order of ``named``."""
    numbers = [coefficients[f"{name}_{kind}"] for kind in ("loading", "intercept") for name in EQUATIONS]
    coef = [coefficients[f"{name}_coef"] for name in EQUATIONS]
    return np.concatenate([numbers, [2 * np.log(coefficients["sigma"])], *coef])


def near(seed: int) -> Array:
    """A vector near the planted coefficients."""
    return vector_of(PLANTED) + 0.05 * np.random.default_rng(seed).normal(size=13)


def log_density(vector: Array, students: Students) -> float:
    with jax.enable_x64(True):
        return -float(compiled_slope()(vector, students)[0])


def integrated(parameters: dict[str, Array], students: Students) -> Array:
    """The log density of each student by the trapezoidal rule over u."""
    u = np.linspace(-10, 10, 2001)
    mean = {}
    for name in EQUATIONS:
        at_zero = parameters[f"{name}_intercept"] + students.attributes @ parameters[f"{name}_coef"]
        mean[name] = at_zero[:, None] + parameters[f"{name}_loading"] * u
    log_density = (
        stats.norm.logpdf(u)
        + stats.norm.logpdf(students.grade[:, None], mean["grade"], np.sqrt(parameters["variance"]))
        + stats.norm.logpdf(students.outcome[:, None], mean["outcome"], 1)
        + stats.poisson.logpmf(students.score[:, None], np.exp(mean["score"]))
    )
    return np.log(np.exp(log_density).sum(axis=1) * (u[1] - u[0]))


@pytest.fixture(scope="module")
def students() -> Students:
    return simulated(0)


@pytest.fixture(scope="module")
def modes(students: Students) -> list[FittedStudents]:
    return estimates([students, simulated(1)], None, [0, 0])


def test_the_marginal_is_the_integral_over_u() -> None:
    few = simulated(3, 12)
    with jax.enable_x64(True):
        exact, quick = (jax.jit(partial(log_marginal, nodes=nodes)) for nodes in (40, NODES))
        for seed in range(3):
            parameters = named(near(seed))
            parameters["variance"] = np.exp(parameters["variance"])
            expected = integrated(parameters, few) + gammaln(few.score + 1)
            np.testing.assert_allclose(exact(parameters, few), expected, rtol=1e-10)
            np.testing.assert_allclose(quick(parameters, few), expected, atol=1e-5)


def test_the_posterior_is_the_marginal_times_the_priors(students: Students) -> None:
    vector = near(1)
    parameters = {**named(vector), "variance": np.exp(named(vector)["variance"])}
    variance = len(LOADINGS) + len(EQUATIONS)
    prior = stats.norm.logpdf(np.delete(vector, variance)).sum() + stats.invgamma.logpdf(parameters["variance"], 1)
    rows = integrated(parameters, students) + gammaln(students.score + 1)
    # The last term is the Jacobian: the density is one of log sigma^2.
    assert log_density(vector, students) == pytest.approx(rows.sum() + prior + np.log(parameters["variance"]), rel=1e-9)


def test_turning_u_around_changes_nothing_and_rows_without_a_mode_are_refused(students: Students) -> None:
    turned = near(1)
    turned[: len(LOADINGS)] *= -1
    assert log_density(turned, students) == pytest.approx(log_density(near(1), students), rel=1e-12)
    broken = Students(students.grade * np.nan, students.score, students.outcome, students.attributes)
    with invalid(option="rows"):
        estimates([broken], None, [0])


def test_the_mode_is_what_was_planted_up_to_its_standard_error(modes: list[FittedStudents], students: Students) -> None:
    coefficients = modes[0].coefficients
    with jax.enable_x64(True):
        error = named(np.sqrt(np.diag(np.linalg.inv(curvature(students, vector_of(coefficients))))))
    for name, planted in PLANTED.items():
        allowed = coefficients["sigma"] * error["variance"] / 2 if name == "sigma" else error[name]
        assert (np.abs(coefficients[name] - planted) < 4 * allowed).all(), name
        assert (allowed < 0.2).all()


def test_a_trial_does_not_depend_on_the_others(modes: list[FittedStudents]) -> None:
    alone = estimates([simulated(1)], None, [0])[0]
    for name, value in alone.coefficients.items():
        np.testing.assert_array_equal(value, modes[1].coefficients[name])


def test_nuts_agrees_with_the_mode_and_with_itself(modes: list[FittedStudents], students: Students) -> None:
    found, again = estimates([students, students], SAMPLING, [1, 1])
    for name, value in found.coefficients.items():
        # Priors and skewness move a mean from its mode by less than the posterior is wide.
        np.testing.assert_allclose(value, modes[0].coefficients[name], atol=0.05)
        np.testing.assert_array_equal(value, again.coefficients[name])
    assert found.facts["divergences"] == 0
    assert found.facts["r_hat"] < 1.05
    assert 100 < found.facts["effective_size"] < 1500
    assert found.facts["log_density"] == modes[0].facts["log_density"]


def test_draws_are_as_wide_as_the_curvature_says_and_on_the_side_of_the_mode(
    modes: list[FittedStudents], students: Students
) -> None:
    mode = vector_of(modes[0].coefficients)
    mode[: len(LOADINGS)] *= -1
    with jax.enable_x64(True):
        drawn, diverging = draws(students, mode, SAMPLING, 0)
        width = np.sqrt(np.diag(np.linalg.inv(curvature(students, mode))))
    assert drawn.shape == (2, 150, 13)
    assert not diverging.any()
    assert (drawn[..., : len(LOADINGS)] < 0).all()
    np.testing.assert_allclose(drawn.reshape(300, 13).std(axis=0), width, rtol=0.3)


def test_chains_that_disagree_have_a_large_r_hat() -> None:
    rng = np.random.default_rng(0)
    together = rng.normal(size=(2, 200, 3))
    apart = together + np.array([0, 3])[:, None, None] * np.array([0, 0, 1])
    assert diagnostics(together)["r_hat"] < 1.05 < 1.5 < diagnostics(apart)["r_hat"]
    assert diagnostics(together)["effective_size"] > 200 > diagnostics(apart)["effective_size"]
