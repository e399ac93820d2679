"""A given rule decides as its weights and its threshold say, in the units that the dataset prepares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.methods import given
from pipeline.methods.given import Config
from pipeline.models import linear, logistic_mixture
from pipeline.seeds import generators
from pipeline.types import Dataset

RNGS = generators("given", repetitions=2)


def test_the_rule_is_the_same_in_every_repetition_and_its_units_are_the_batch_s(
    population: Callable[..., Dataset],
) -> None:
    data = population()
    found = given.fit(data, Config({"skill": 2.0, "proxy_sex": -1.0}, 0.3, None), RNGS)
    assert (found.architecture, found.repetitions) == ("linear", 2)
    x = data.batch("test").features
    column = {name: x[..., j] for j, name in enumerate(data.feature_names)}
    expected = 2 * column["skill"] - column["proxy_sex"]
    np.testing.assert_allclose(linear.score(found.parameters, x), expected, rtol=1e-12)
    np.testing.assert_array_equal(linear.predict(found.parameters, x), expected > 0.3)


def test_a_random_rule_has_even_odds_at_its_threshold_and_is_certain_elsewhere(
    population: Callable[..., Dataset],
) -> None:
    data = population()
    found = given.fit(data, Config({"degree": 1.0}, 1.0, 50.0), RNGS)
    arrests = np.zeros((2, 4, 5))
    arrests[..., data.feature_names.index("degree")] = [0, 1, 2, 7]
    probability = logistic_mixture.score(found.parameters, arrests)
    np.testing.assert_allclose(probability, np.tile([0, 0.5, 1, 1], (2, 1)), atol=1e-20)
    # Odds at a threshold that is no fraction of two leave nothing to rounding either.
    assert (probability[:, 1] == 0.5).all()


def test_a_feature_that_is_not_there_is_named(population: Callable[..., Dataset]) -> None:
    message = r"method\.weights among the features of 'population', proxy_sex, .*; found \['age', 'height'\]"
    with pytest.raises(ValueError, match=message):
        given.fit(population(), Config({"height": 1.0, "skill": 1.0, "age": 1.0}, 0.0, None), RNGS)
