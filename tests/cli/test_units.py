"""The units of an audit: z = (x - mean) / sd, and back, for the array, the network and the user's choice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.cli.units import units

X = np.column_stack([np.arange(8.0), 1000 * np.arange(8.0) ** 2, np.arange(8) % 2, np.full(8, 3.0)])
NAMES = ("near", "far", "binary", "constant")


def test_continuous_means_more_than_two_values() -> None:
    made = units(X, NAMES, "continuous")
    assert made.standardized == ("near", "far")
    z = made.inward(X)
    np.testing.assert_allclose(z[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z[:, :2].std(axis=0), 1)
    np.testing.assert_array_equal(z[:, 2:], X[:, 2:])


def test_the_network_sees_the_columns_as_they_were() -> None:
    made = units(X, NAMES, ("far",))
    z = made.inward(X)
    np.testing.assert_allclose(made.outward(z), X, rtol=1e-12)
    np.testing.assert_allclose(made.network_input(torch.tensor(z)).numpy(), X, rtol=1e-12)


def test_kept_units_change_no_bit() -> None:
    made = units(X, NAMES, "none")
    assert made.standardized == ()
    np.testing.assert_array_equal(made.inward(X), X)
    np.testing.assert_array_equal(made.network_input(torch.tensor(X)).numpy(), X)


def test_columns_far_from_unit_scale_need_a_decision() -> None:
    with pytest.raises(ValueError, match=r"deviation far from 1: far \(1\.67e\+04\)\. .*--standardize continuous"):
        units(X, NAMES, None)
    assert units(X[:, [0, 2, 3]], ("near", "binary", "constant"), None).standardized == ()


def test_wrong_names_and_constant_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="--standardize names 'age', which is no feature"):
        units(X, NAMES, ("age",))
    with pytest.raises(ValueError, match="constant is the same in all rows"):
        units(X, NAMES, ("constant",))
