"""Data that are drawn: closed-form moments, sizes, labels, and fresh rows in every repetition."""

from math import erf, sqrt
from typing import Any

import numpy as np
import pytest

from fairness_audits.values import Dataset
from tests.datasets.builders import configured, prepared

SMALL: dict[str, dict[str, Any]] = {
    "hiring": {"train": 30, "test": 20},
    "arrests": {"n": 25},
    "gaussian": {"n": 25, "dimension": 3, "correlation": 0.5},
    "identical": {"n": 25, "shared": 2, "extra": 1, "delta": 1.0},
    "simulated": {"n": 50},
}
LARGE = 200_000


def draw(name: str, repetitions: int = 1, **settings: Any) -> Dataset:
    data: Dataset = prepared(name, None, repetitions, **SMALL[name] | settings)
    return data


def within(found: float, expected: float, deviation: float, n: int) -> bool:
    """Whether a mean of n draws of that standard deviation is as close to its expectation as four standard errors."""
    return abs(found - expected) < 4 * deviation / sqrt(n)


@pytest.mark.parametrize("name", SMALL)
def test_every_repetition_draws_equal_groups_of_its_own_rows_and_more_of_them_change_none(name: str) -> None:
    data, alone = draw(name, repetitions=3), draw(name)
    size = len(alone.label)
    np.testing.assert_array_equal(data.features[:size], alone.features)
    np.testing.assert_array_equal(data.train[0], alone.train[0])
    (group,) = data.protected.values()
    for r, (train, test) in enumerate(zip(data.train, data.test, strict=True)):
        # Hiring alone trains on some of its rows and is tested on the others.
        own = set(range(r * size, (r + 1) * size))
        assert (set(train) | set(test), len(train) + len(test)) == (own, size if name == "hiring" else 2 * size)
        for rows in (train, test):
            assert name == "simulated" or group[rows].mean() == 0.5
    assert not np.array_equal(data.features[:size], data.features[size : 2 * size])
    # Elsewhere nothing is standardised: the fair metric of a study is given in these coordinates.
    assert (data.continuous == ()) == (name != "hiring")


@pytest.mark.parametrize("name", ["hiring", "arrests", "identical"])
def test_groups_come_in_random_order(name: str) -> None:
    """So that the first rows of a split are a sample of all of them."""
    data = draw(name, **({"train": 2_000, "test": 5} if name == "hiring" else {"n": 2_000}))
    (group,) = data.protected.values()
    assert within(group[data.train[0][:1_000]].mean(), 0.5, 0.5, 1_000)


@pytest.fixture(scope="module")
def applicants() -> Dataset:
    return draw("hiring", train=LARGE, test=1)


@pytest.mark.parametrize(("sex", "poisson", "a", "b"), [(0, 25, 2, 2), (1, 31, 2, 7)])
def test_experience_and_hair_have_poisson_and_beta_moments(
    applicants: Dataset, sex: int, poisson: int, a: int, b: int
) -> None:
    work, hair = applicants.features[applicants.protected["sex"] == sex].T
    assert applicants.levels["sex"][sex] == ("Female", "Male")[sex]
    variance = poisson + 0.2**2
    assert within(work.mean(), poisson - 20, sqrt(variance), len(work))
    # The fourth central moment of a Poisson number is m + 3 m^2.
    assert within(work.var(), variance, sqrt(poisson + 2 * poisson**2), len(work))
    deviation = 35 * sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    assert within(hair.mean(), 35 * a / (a + b), deviation, len(hair))
    assert hair.std() == pytest.approx(deviation, rel=0.01)
    assert 0 < hair.min() < hair.max() < 35


def test_who_is_hired_follows_the_stated_law_of_experience_which_is_a_whole_number_but_for_its_noise(
    applicants: Dataset,
) -> None:
    """The fractions of years come from N(20, .2^2) alone, so their spread about whole years is .2."""
    work, hair = applicants.features.T
    probability = 1 / (1 + np.exp(25.5 - 2.5 * work))
    for group in (work < 9, (work >= 9) & (work < 10), (work >= 10) & (work < 10.4), (work >= 10.4) & (work < 12)):
        for long in (False, True):
            rows = group & ((hair > 14) == long)
            expected = probability[rows]
            assert within(applicants.label[rows].mean(), expected.mean(), 0.5, int(rows.sum()))
    assert applicants.label[work > 20].all()
    assert not applicants.label[work < 1].any()
    work = applicants.features[:, 0]
    assert (work - np.rint(work)).std() == pytest.approx(0.2, abs=0.01)


def test_hiring_is_standardised_over_women_and_men_together() -> None:
    data = draw("hiring", repetitions=2, train=500, test=400)
    assert data.continuous == data.feature_names == ("work_experience", "hair_length")
    assert (data.train.shape, data.test.shape) == ((2, 1_000), (2, 800))
    batch = data.batch("train")
    np.testing.assert_allclose(batch.features.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(batch.features.std(axis=1), 1)
    women = batch.features[batch.protected["sex"] == 0]
    assert women[:, 0].mean() < -0.3
    assert women[:, 1].mean() > 0.3


@pytest.mark.parametrize(("group", "p"), [(0, 1 / 2), (1, 1 / 4)])
def test_arrests_are_geometric_less_one(group: int, p: float) -> None:
    data = draw("arrests", n=LARGE)
    arrests = data.features[data.protected["group"] == group, 0]
    assert within(arrests.mean(), (1 - p) / p, sqrt(1 - p) / p, LARGE)
    for k in range(4):
        mass = p * (1 - p) ** k
        assert within((arrests == k).mean(), mass, sqrt(mass * (1 - mass)), LARGE)
    assert data.levels["group"][group] == ("S'", "S")[group]
    assert not data.label.any()


@pytest.mark.parametrize(("dimension", "correlation"), [(1, 0.0), (1, 0.5), (4, 0.5), (4, -0.3), (3, 1.0)])
def test_features_have_unit_variance_and_the_stated_correlation(dimension: int, correlation: float) -> None:
    data = draw("gaussian", n=LARGE, dimension=dimension, correlation=correlation)
    expected = (1 - correlation) * np.eye(dimension) + correlation * np.ones((dimension, dimension))
    for group in (0, 1):
        x = data.features[data.protected["group"] == group]
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=4 / sqrt(LARGE))
        np.testing.assert_allclose(x.T @ x / LARGE, expected, atol=4 * sqrt(2 / LARGE))


def test_the_fixed_points_are_the_first_two_rows_of_the_source_group_in_every_repetition() -> None:
    data = draw("gaussian", repetitions=4)
    for rows in data.train:
        source = rows[data.protected["group"][rows] == data.levels["group"].index("S")]
        np.testing.assert_array_equal(data.features[source[:2]], [[1, 1, 1], [0, 0, 0]])
    # Everything else differs from draw to draw.
    others = np.delete(data.features, [r * 50 + i for r in range(4) for i in (0, 1)], axis=0)
    assert len(np.unique(others[:, 0])) == 4 * 48


def test_shared_features_have_one_law_and_extra_ones_tell_the_groups_apart() -> None:
    data = draw("identical", n=LARGE, shared=2, extra=1, delta=1.5)
    group = data.protected["group"]
    assert data.feature_names == ("x1", "x2", "extra1")
    for g in (0, 1):
        means = data.features[group == g].mean(axis=0)
        np.testing.assert_allclose(means, [0, 0, 1.5 * g], atol=4 / sqrt(LARGE))
        np.testing.assert_allclose(np.cov(data.features[group == g].T), np.eye(3), atol=4 * sqrt(2 / LARGE))
    assert draw("identical", extra=0).feature_names == ("x1", "x2")


def test_labels_depend_on_nothing() -> None:
    data = draw("identical", n=LARGE)
    assert within(data.label.mean(), 0.5, 0.5, 2 * LARGE)
    correlations = np.corrcoef(data.label, np.column_stack([data.features, data.protected["group"]]).T)[0, 1:]
    assert (np.abs(correlations) < 4 / sqrt(2 * LARGE)).all()


def test_groups_and_features_have_the_stated_moments() -> None:
    data = draw("simulated", n=LARGE)
    assert (data.feature_names, data.levels) == (("x1", "x2"), {"group": ("majority", "minority")})
    group = data.protected["group"]
    assert within(group.mean(), 0.1, sqrt(0.1 * 0.9), LARGE)
    for g, mean in ((0, [-1.5, 0.0]), (1, [1.5, 0.0])):
        x = data.features[group == g]
        np.testing.assert_allclose(x.mean(axis=0), mean, atol=4 * 0.25 / sqrt(len(x)))
        np.testing.assert_allclose(np.cov(x.T), 0.25**2 * np.eye(2), atol=4 * 0.25**2 * sqrt(2 / len(x)))


def test_labels_follow_the_groups_own_weights_as_a_probit() -> None:
    """P(Y = 1 | X = x) = Phi(w_G . (x - mu_G) / s), so the two agree bin by bin."""
    data = draw("simulated", n=2 * LARGE, labels="centred")
    group = data.protected["group"]
    for g, (mean, weights) in enumerate(zip(([-1.5, 0.0], [1.5, 0.0]), ([-0.2, -0.01], [0.2, -0.01]), strict=True)):
        score = (data.features[group == g] - mean) @ np.array(weights) / 0.01
        label = data.label[group == g]
        assert within(label.mean(), 0.5, 0.5, len(label))
        for low in np.arange(-2.0, 2.0, 0.5):
            bin_ = (score >= low) & (score < low + 0.5)
            expected = float(np.mean([0.5 * (1 + erf(s / sqrt(2))) for s in score[bin_]]))
            assert within(label[bin_].mean(), expected, 0.5, int(bin_.sum()))


def test_the_two_kinds_of_labels_differ_in_labels_alone_and_as_the_equation_is_printed_every_label_is_one() -> None:
    """w_G . mu_G = .3 against a standard deviation of .051: P(Y = 0) = Phi(-5.9) = 2e-9."""
    stated, centred = (draw("simulated", n=2 * LARGE, labels=labels) for labels in ("stated", "centred"))
    np.testing.assert_array_equal(stated.features, centred.features)
    np.testing.assert_array_equal(stated.protected["group"], centred.protected["group"])
    assert stated.label.all()


def test_without_noise_the_label_is_the_side_of_the_groups_own_line() -> None:
    weights: dict[str, Any] = {"majority_weights": [1.0, 0.0], "minority_weights": [0.0, -1.0]}
    data = draw("simulated", label_noise=0.0, labels="stated", n=1_000, **weights)
    x, group = data.features, data.protected["group"]
    np.testing.assert_array_equal(data.label, np.where(group == 1, -x[:, 1] > 0, x[:, 0] > 0))


PUBLISHED: dict[str, dict[str, Any]] = {
    "hiring": {"train": 10_000, "test": 10_000},
    "arrests": {"n": 10_000},
    "gaussian": {"n": 500},
    "identical": {"n": 10_000},
    "simulated": {
        "n": 400, "minority_probability": 0.1, "sigma": 0.25, "label_noise": 0.01, "majority_mean": [-1.5, 0.0],
        "minority_mean": [1.5, 0.0], "majority_weights": [-0.2, -0.01], "minority_weights": [0.2, -0.01],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_shipped_settings_of_what_is_drawn_are_the_papers(name: str) -> None:
    config = configured(name)
    assert {key: getattr(config, key) for key in PUBLISHED[name]} == PUBLISHED[name]
