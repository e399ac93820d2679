"""Definition 2, its rankings, and what stands beside each line."""

import numpy as np
import pytest

from pipeline.audits.correction import corrected
from pipeline.audits.fliptest.transparency import transparency_report
from pipeline.audits.precision import Precision

PRECISION = Precision(alpha=0.05, bootstraps=200, permutations=199)


def test_a_report_by_hand() -> None:
    features = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 2.0], [9.0, 9.0, 9.0]])
    images = np.array([[0.0, 7.0, 0.0], [1.0, 8.0, 3.0], [0.0, 0.0, 0.0]])
    report = transparency_report(features, images, np.array([True, True, False]), PRECISION, np.random.default_rng(0))
    np.testing.assert_array_equal(report.mean_shift, [1.5, -2.5, -0.5])
    np.testing.assert_array_equal(report.mean_sign, [1, -1, -0.5])
    np.testing.assert_array_equal(report.rank_mean, [2, 1, 3])
    np.testing.assert_array_equal(report.rank_sign, [1, 1, 3])
    np.testing.assert_array_equal(report.feature_mean, [2, 5, 1])


def test_the_shift_of_everyone_is_that_of_any_flipset() -> None:
    rng = np.random.default_rng(1)
    features, shift = rng.normal(size=(400, 3)), np.array([0.5, -1.0, 0.0])
    report = transparency_report(features, features - shift, rng.random(400) < 0.2, PRECISION, rng)
    np.testing.assert_allclose(report.mean_shift, shift, atol=1e-12)
    np.testing.assert_allclose(report.mean_shift_ci_low, shift, atol=1e-12)
    np.testing.assert_allclose(report.mean_shift_ci_high, shift, atol=1e-12)
    np.testing.assert_array_equal(report.mean_shift_p, 1)


def test_a_line_that_tells_the_flipset_from_its_group_is_found() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(600, 4))
    members = rng.random(600) < 0.15
    images = features + rng.normal(size=(600, 4))
    images[members, 2] -= 2
    report = transparency_report(features, images, members, PRECISION, rng)
    others = [0, 1, 3]
    assert report.rank_mean[2] == report.rank_sign[2] == 1
    assert report.mean_shift_p[2] == report.mean_sign_p[2] == 1 / 200
    assert report.mean_shift_p_adjusted[2] <= 0.05
    assert (report.mean_shift_p_adjusted[others] > 0.05).all()
    assert report.mean_shift_ci_low[2] > 1.5
    assert (report.mean_shift_ci_low < report.mean_shift).all()
    assert (report.mean_shift_ci_high > report.mean_shift).all()


def test_the_family_of_holm_is_both_rankings_of_the_report() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(90, 3))
    report = transparency_report(features, rng.normal(size=(90, 3)), np.arange(90) < 20, PRECISION, rng)
    adjusted = corrected(np.concatenate([report.mean_shift_p, report.mean_sign_p]), "holm")
    np.testing.assert_allclose(np.concatenate([report.mean_shift_p_adjusted, report.mean_sign_p_adjusted]), adjusted)
    assert (report.mean_shift_p_adjusted > report.mean_shift_p).any()


def test_a_feature_that_is_no_line_is_measured_but_neither_ranked_nor_tested() -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(50, 3))
    images = features - [100.0, 2.0, 1.0]
    lines = np.array([False, True, True])
    report = transparency_report(features, images, np.arange(50) < 9, PRECISION, rng, lines)
    np.testing.assert_allclose(report.mean_shift, [100, 2, 1])
    np.testing.assert_array_equal(report.rank_mean, [np.nan, 1, 2])
    np.testing.assert_array_equal(np.isnan(report.mean_shift_p), ~lines)
    np.testing.assert_array_equal(np.isnan(report.mean_sign_p_adjusted), ~lines)


def test_units_change_the_ranks_of_shifts_and_nothing_else() -> None:
    rng = np.random.default_rng(8)
    features, members = rng.normal(size=(60, 2)) * [10.0, 1.0], np.arange(60) < 20
    images = features - [5.0, 2.0]
    plain, scaled = (
        transparency_report(features, images, members, PRECISION, np.random.default_rng(9), units=units)
        for units in (None, np.array([10.0, 1.0]))
    )
    assert (plain.rank_mean.tolist(), scaled.rank_mean.tolist()) == ([1, 2], [2, 1])
    for name, values in vars(plain).items():
        if name != "rank_mean":
            np.testing.assert_array_equal(getattr(scaled, name), values)


def test_an_empty_flipset_has_an_empty_report_and_one_member_no_interval() -> None:
    features = np.random.default_rng(5).normal(size=(20, 2))
    empty = transparency_report(features, -features, np.zeros(20, bool), PRECISION, np.random.default_rng(6))
    assert all(np.isnan(values).all() and values.shape == (2,) for values in vars(empty).values())
    one = transparency_report(features, -features, np.arange(20) == 3, PRECISION, np.random.default_rng(6))
    np.testing.assert_allclose(one.mean_shift, 2 * features[3])
    assert np.isnan(one.mean_shift_ci_low).all()
    assert np.isfinite(one.mean_shift_p).all()


def test_what_cannot_be_reported_is_refused() -> None:
    x, members, rng = np.ones((4, 2)), np.ones(4, bool), np.random.default_rng(7)
    with pytest.raises(ValueError, match=r"found \(4, 2\), \(4, 3\) and \(4,\)"):
        transparency_report(x, np.ones((4, 3)), members, PRECISION, rng)
    with pytest.raises(ValueError, match="not finite: leave those people out"):
        transparency_report(x, np.where(np.eye(4, 2) > 0, np.nan, 1.0), members, PRECISION, rng)
    with pytest.raises(ValueError, match=r"expected a positive unit for each of 2 features, found \[1\. 0\.\]"):
        transparency_report(x, x, members, PRECISION, rng, units=np.array([1.0, 0.0]))
