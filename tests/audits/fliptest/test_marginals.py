"""Marginal histograms of named groups share their bins and lose nobody."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.audits.fliptest.marginals import marginal


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
