"""Agreement of two measures: counted, with an interval, and with what could not be compared."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from pipeline.audits.robustness_bias.agreement import sigma_difference, sign_agreement

ONE = np.array([0.5, -0.2, 0.0, 0.3, np.nan, -1.0, 0.0])
OTHER = np.array([0.1, 0.2, 0.0, np.nan, 0.3, -0.1, 0.4])


def test_equal_signs_are_counted_among_the_groups_where_both_exist() -> None:
    found = sign_agreement(ONE, OTHER)
    assert (found.agreeing, found.total, found.undefined) == (3, 5, 2)
    assert found.share == pytest.approx(0.6)
    assert sign_agreement(OTHER, ONE) == found


def test_the_published_125_of_151_have_wilsons_interval() -> None:
    one = np.ones(151)
    found = sign_agreement(one, np.where(np.arange(151) < 125, 1.0, -1.0))
    assert found.agreeing == 125
    assert (found.low, found.high) == pytest.approx(proportion_confint(125, 151, method="wilson"))


def test_without_groups_there_is_no_share() -> None:
    found = sign_agreement(np.full(2, np.nan), np.ones(2))
    assert (found.total, found.undefined) == (0, 2)
    assert np.isnan([found.share, found.low, found.high]).all()


def test_the_difference_is_signed_and_has_the_sample_variance() -> None:
    found = sigma_difference(ONE, OTHER)
    gaps = np.array([0.4, -0.4, 0.0, -0.9, -0.4])
    assert (found.total, found.undefined) == (5, 2)
    assert found.mean == pytest.approx(gaps.mean())
    assert found.variance == pytest.approx(((gaps - gaps.mean()) ** 2).sum() / 4)
    assert sigma_difference(OTHER, ONE).mean == pytest.approx(-found.mean)


def test_one_group_has_no_variance_and_none_no_mean() -> None:
    single, none = sigma_difference(np.ones(1), np.zeros(1)), sigma_difference(np.full(1, np.nan), np.ones(1))
    assert (single.mean, none.total) == (1.0, 0)
    assert np.isnan([single.variance, none.mean, none.variance]).all()


def test_groups_in_different_numbers_are_refused() -> None:
    for compare in (sign_agreement, sigma_difference):
        with pytest.raises(ValueError, match=r"found shapes \(2,\) and \(3,\): list the groups of both in one order"):
            compare(np.ones(2), np.ones(3))
