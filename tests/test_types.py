"""Propositions about the values that flow between stages."""

import numpy as np
import pytest

from pipeline.types import Dataset


def dataset(repetitions: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    rows = [rng.permutation(40) for _ in range(repetitions)]
    return Dataset(
        name="toy",
        origin="simulated",
        features=np.column_stack([rng.normal(5, 3, 40), rng.integers(0, 2, 40)]),
        feature_names=("age", "member"),
        continuous=("age",),
        label=rng.integers(0, 2, 40),
        label_name="paid",
        protected={"sex": rng.integers(0, 2, 40)},
        levels={"sex": ("female", "male")},
        train=np.stack([r[:30] for r in rows]),
        test=np.stack([r[30:] for r in rows]),
    )


def test_continuous_columns_have_mean_zero_and_variance_one_on_each_training_split() -> None:
    train = dataset().batch("train").features
    np.testing.assert_allclose(train[..., 0].mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(train[..., 0].std(axis=1), 1)


def test_test_rows_are_standardised_by_the_training_rows_alone() -> None:
    data = dataset()
    batch = data.batch("test")
    for r in range(2):
        age = data.features[data.train[r], 0]
        np.testing.assert_allclose(batch.features[r, :, 0], (data.features[data.test[r], 0] - age.mean()) / age.std())
        np.testing.assert_array_equal(batch.features[r, :, 1], data.features[data.test[r], 1])
        np.testing.assert_array_equal(batch.protected["sex"][r], data.protected["sex"][data.test[r]])


def test_the_first_repetitions_do_not_depend_on_how_many_are_taken() -> None:
    np.testing.assert_array_equal(dataset().batch("test", 1).features[0], dataset().batch("test").features[0])


def test_features_are_not_changed_in_place() -> None:
    data = dataset()
    before = data.features.copy()
    data.batch("train")
    np.testing.assert_array_equal(data.features, before)


def test_more_repetitions_than_prepared_are_refused() -> None:
    with pytest.raises(ValueError, match="prepared with 2 repetitions, but 3 were asked for"):
        dataset().batch("train", 3)


def test_a_constant_column_is_named() -> None:
    data = dataset()
    constant = Dataset(**{**vars(data), "features": np.ones_like(data.features)})
    with pytest.raises(ValueError, match=r"columns \['age'\] of 'toy' are constant"):
        constant.batch("train")
