"""Flipsets: Definition 1 and Proposition 2, decisions, the word for a line, and marginal histograms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import models
from pipeline.audits.fliptest.flipsets import Flipsets, judged
from pipeline.audits.fliptest.marginals import marginal
from pipeline.audits.fliptest.transparency import standing
from pipeline.models import kernel
from pipeline.types import Array, Classifier


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=20))
def test_flipsets_are_by_definition_1_and_the_net_size_is_a_difference_of_counts_whatever_the_map(
    people: list[tuple[int, int]],
) -> None:
    """So it is 0 exactly where a one-to-one map finds demographic parity: Proposition 2, also within a true label."""
    decision, image = np.array(people).T
    flips, inverse = Flipsets(decision, image), Flipsets(image, decision)
    np.testing.assert_array_equal(flips.positive, (decision == 1) & (image == 0))
    np.testing.assert_array_equal(flips.negative, (decision == 0) & (image == 1))
    np.testing.assert_array_equal(flips.either, decision != image)
    assert flips.net == decision.sum() - image.sum() == flips.positive.sum() - flips.negative.sum() == -inverse.net
    np.testing.assert_array_equal(inverse.positive, flips.negative)


def test_what_is_no_decision_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected decision_image in \{0, 1\}, found .*apply a threshold first"):
        Flipsets(np.array([0, 1]), np.array([0.2, 0.7]))
    with pytest.raises(ValueError, match="expected one decision_image for each of 2 people, found shape \\(3,\\)"):
        Flipsets(np.array([0, 1]), np.array([0, 1, 1]))


# Scores and decisions of one evaluation are those of two.


R, D = 2, 3
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "kernel": {"support": (R, 9, D), "dual": (R, 9)},
    "linear": {"coef": (R, D), "intercept": (R,), "threshold": (R,)},
    "mlp": {"w1": (R, D, 4), "b1": (R, 4), "w2": (R, 4, 2), "b2": (R, 2)},
    "logistic_mixture": {"coef": (R, 2, D), "intercept": (R, 2)},
}
WITH_PROBABILITIES = ("mlp", "logistic_mixture")


def classifier(architecture: str) -> Classifier:
    rng = np.random.default_rng(11)
    parameters: dict[str, Array] = {name: rng.normal(size=shape) for name, shape in SHAPES[architecture].items()}
    if architecture == "kernel":
        parameters |= {
            "intercept": np.zeros(R),
            "gamma": np.array([0.1, 0.2]),
            "columns": np.tile(np.arange(D), (R, 1)),
        }
    if architecture == "mlp":
        parameters |= {"b1": np.zeros((R, 4)), "b2": np.zeros((R, 2))}
    if architecture == "logistic_mixture":
        parameters["weight"] = np.array([[0.3, 0.7], [1.0, 0.0]])
    return Classifier("given", "data", "twin", architecture, parameters)


@pytest.fixture
def rows() -> Array:
    return np.random.default_rng(5).normal(size=(200, D))


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("repetition", range(R))
@pytest.mark.parametrize("architecture", SHAPES)
def test_scores_and_decisions_are_the_architectures_own(
    architecture: str, repetition: int, own: bool, rows: Array
) -> None:
    model = classifier(architecture)
    module, x = models.architecture(architecture), np.stack([rows] * R)
    expected = module.score(model.parameters, x)[repetition]
    threshold = None if own else float(np.median(expected))
    score, decision = judged(model, repetition, rows, threshold)
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    decided = module.predict(model.parameters, x)[repetition] if own else score >= threshold
    np.testing.assert_array_equal(decision, decided)
    assert set(np.unique(decision)) == {0, 1}


@pytest.mark.parametrize("architecture", WITH_PROBABILITIES)
def test_coins_are_tossed_against_the_score(architecture: str, rows: Array) -> None:
    model, coin = classifier(architecture), np.random.default_rng(6).random(len(rows))
    score, decision = judged(model, 1, rows, coin=coin)
    np.testing.assert_array_equal(score, judged(model, 1, rows)[0])
    np.testing.assert_array_equal(decision, coin < score)


def test_a_kernel_is_evaluated_once(monkeypatch: pytest.MonkeyPatch, rows: Array) -> None:
    evaluated, evaluate = [], kernel.score

    def watched(own: Any, x: Array) -> Array:
        evaluated.append(x.shape)
        return evaluate(own, x)

    monkeypatch.setattr(kernel, "score", watched)
    judged(classifier("kernel"), 0, rows)
    assert evaluated == [(1, *rows.shape)]


# The word for a line.


NAN = float("nan")


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [
        (0.4, 0.6, 0.01, "stands out"),
        (-0.6, -0.4, 0.05, "stands out"),
        (0.4, 0.6, 0.051, "as the whole group"),
        (1.3, 1.3, 1.0, "as the whole group"),
        (0.4, 0.6, NAN, "as the whole group"),
        (-0.1, 0.6, 0.01, "noise"),
        (0.0, 0.6, 0.01, "noise"),
        (-0.6, 0.0, 0.9, "noise"),
        (NAN, NAN, 0.01, "noise"),
    ],
)
def test_noise_is_an_interval_over_zero_and_a_certain_shift_never_is(
    low: float, high: float, p: float, word: str
) -> None:
    assert standing(low, high, p, 0.05) == word


# Marginal histograms of named groups share their bins and lose nobody.


def test_every_person_is_counted_once_in_bins_that_all_groups_share() -> None:
    rng = np.random.default_rng(0)
    groups = {"women": rng.normal(size=1000), "negative flipset": rng.normal(2, 1, size=70), "nobody": np.empty(0)}
    found = marginal(groups, 25)
    assert list(found.counts) == list(groups)
    assert {name: count.sum() for name, count in found.counts.items()} == found.sizes
    assert len(found.edges) == 26
    np.testing.assert_allclose(np.diff(found.edges), np.diff(found.edges)[0])
    np.testing.assert_array_equal(found.counts["women"], np.histogram(groups["women"], found.edges)[0])
    assert found.shares["negative flipset"].sum() == pytest.approx(1)
    assert found.shares["nobody"].sum() == 0


def test_counts_have_a_bin_around_each_value_even_when_standardised() -> None:
    arrests = np.array([0, 0, 0, 1, 1, 3, 6])
    found = marginal({"all": (arrests - arrests.mean()) / arrests.std()}, 30)
    np.testing.assert_array_equal(found.counts["all"], [3, 2, 0, 1, 0, 0, 1])


def test_a_few_measurements_are_no_counts() -> None:
    assert len(marginal({"all": np.array([0.0, 0.001, 1.0])}, 10).edges) == 11


def test_one_value_is_one_bin() -> None:
    np.testing.assert_array_equal(marginal({"all": np.full(5, 2.0)}, 10).edges, [1.5, 2.5])


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="found 2 of which 1 are not"):
        marginal({"all": np.array([1.0, np.inf])}, 3)
    with pytest.raises(ValueError, match="found 0 of which 0 are not"):
        marginal({}, 3)
    with pytest.raises(ValueError, match="expected at least 1 bin, found 0"):
        marginal({"all": np.ones(2)}, 0)
