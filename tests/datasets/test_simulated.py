"""The draws of equation (E.1): moments, labels and the independence of repetitions."""

from __future__ import annotations

from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from pipeline.datasets import simulated
from pipeline.seeds import generators
from pipeline.types import Dataset

CONF = Path(__file__).resolve().parents[2] / "conf" / "dataset" / "simulated.yaml"


def config(**changes: Any) -> simulated.Config:
    values = yaml.safe_load(CONF.read_text())
    values.pop("name")
    return simulated.Config(**{**values, **changes})


def draw(repetitions: int = 1, **changes: Any) -> Dataset:
    return simulated.prepare(None, config(**changes), generators("t", repetitions=repetitions), "simulated")


def test_groups_and_features_have_the_stated_moments() -> None:
    n = 200_000
    data = draw(n=n)
    group = data.protected["group"]
    assert abs(group.mean() - 0.1) < 4 * sqrt(0.1 * 0.9 / n)
    for g, mean in ((0, [-1.5, 0.0]), (1, [1.5, 0.0])):
        x = data.features[group == g]
        tolerance = 4 * 0.25 / sqrt(len(x))
        np.testing.assert_allclose(x.mean(axis=0), mean, atol=tolerance)
        np.testing.assert_allclose(np.cov(x.T), 0.25**2 * np.eye(2), atol=4 * 0.25**2 * sqrt(2 / len(x)))


def test_labels_follow_the_groups_own_weights_as_a_probit() -> None:
    """P(Y = 1 | X = x) = Phi(w_G . (x - mu_G) / s), so the two agree bin by bin."""
    data = draw(n=400_000, labels="centred")
    group = data.protected["group"]
    for g, (mean, weights) in enumerate(zip(([-1.5, 0.0], [1.5, 0.0]), ([-0.2, -0.01], [0.2, -0.01]), strict=True)):
        score = (data.features[group == g] - mean) @ np.array(weights) / 0.01
        label = data.label[group == g]
        for low in np.arange(-2.0, 2.0, 0.5):
            within = (score >= low) & (score < low + 0.5)
            expected = np.mean([0.5 * (1 + erf(s / sqrt(2))) for s in score[within]])
            assert abs(label[within].mean() - expected) < 4 * 0.5 / sqrt(within.sum())


def test_as_the_equation_is_printed_every_label_is_one_and_centred_half_are() -> None:
    """w_G . mu_G = .3 against a standard deviation of .051: P(Y = 0) = Phi(-5.9) = 2e-9."""
    assert draw(n=400_000, labels="stated").label.all()
    centred = draw(n=400_000, labels="centred")
    for g in (0, 1):
        label = centred.label[centred.protected["group"] == g]
        assert abs(label.mean() - 0.5) < 4 * 0.5 / sqrt(len(label))


def test_the_two_kinds_of_labels_differ_in_labels_alone() -> None:
    stated, centred = draw(labels="stated"), draw(labels="centred")
    np.testing.assert_array_equal(stated.features, centred.features)
    np.testing.assert_array_equal(stated.protected["group"], centred.protected["group"])
    assert (stated.label >= centred.label).all()


def test_without_noise_the_label_is_the_side_of_the_groups_own_line() -> None:
    data = draw(label_noise=0.0, majority_weights=[1.0, 0.0], minority_weights=[0.0, -1.0], labels="stated", n=1_000)
    x, group = data.features, data.protected["group"]
    np.testing.assert_array_equal(data.label, np.where(group == 1, -x[:, 1] > 0, x[:, 0] > 0))


def test_repetitions_are_independent_draws_that_train_and_test_on_all_their_own_rows() -> None:
    data = draw(repetitions=3, n=50)
    assert data.features.shape == (150, 2)
    np.testing.assert_array_equal(data.train, np.arange(150).reshape(3, 50))
    np.testing.assert_array_equal(data.test, data.train)
    assert len(np.unique(data.features[:, 0])) == 150
    np.testing.assert_array_equal(draw(repetitions=1, n=50).features, data.features[:50])
    # Nothing is standardised: the fair metric of the study is given in these coordinates.
    np.testing.assert_array_equal(data.batch("test").features[1], data.features[50:100])
    assert (data.feature_names, data.origin, data.levels) == (
        ("x1", "x2"),
        "simulated",
        {"group": ("majority", "minority")},
    )
