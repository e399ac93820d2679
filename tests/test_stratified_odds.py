"""The odds ratio of Mantel and Haenszel and its error: another implementation, a bootstrap of people, limit cases."""

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable

from fairness_audits.values import Array
from pipeline.stratified_odds import Influenced, error_of_mean, log_odds_ratio, ratio


def people(n: int, partitions: int, seed: int = 0, noise: float = 0.7) -> tuple[Array, Array, Array]:
    """Marks (B, n) of people whose own inclinations come back in every partition, and strata (n,)."""
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, 6, n)
    common = rng.normal(size=n) + 0.3 * stratum
    own = common + rng.normal(size=(2, n))
    one, other = (inclined + noise * rng.normal(size=(partitions, n)) > 1 for inclined in own)
    return one, other, stratum


def test_the_odds_ratio_of_two_strata_by_hand() -> None:
    """OR = (4 * 5 / 15 + 2 * 6 / 12) / (3 * 3 / 15 + 1 * 3 / 12) = (4/3 + 1) / (3/5 + 1/4)."""
    cells = [[(1, 1, 4), (1, 0, 3), (0, 1, 3), (0, 0, 5)], [(1, 1, 2), (1, 0, 1), (0, 1, 3), (0, 0, 6)]]
    rows = [(f, g, k) for k, table in enumerate(cells) for f, g, count in table for _ in range(count)]
    one, other, stratum = np.array(rows).T
    found = log_odds_ratio(one, other, stratum)
    assert np.exp(found.value) == pytest.approx((4 / 3 + 1) / (3 / 5 + 1 / 4))
    # People with a negative stratum do not count.
    more = [np.append(column, value) for column, value in ((one, 1), (other, 0), (stratum, -1))]
    assert log_odds_ratio(*more).value == found.value
    assert log_odds_ratio(*more).influence[-1] == 0


def test_value_and_error_are_those_of_statsmodels() -> None:
    """Its error is that of Robins, Breslow and Greenland; with one mark per person, both estimate the same variance."""
    one, other, stratum = people(6000, 1)
    tables = [
        [[np.sum((one[0] == f) & (other[0] == g) & (stratum == k)) for g in (1, 0)] for f in (1, 0)] for k in range(6)
    ]
    expected = StratifiedTable(np.moveaxis(np.array(tables, float), 0, -1))
    found = log_odds_ratio(one[0], other[0], stratum)
    assert found.value == pytest.approx(expected.logodds_pooled)
    error = error_of_mean(Influenced(found.value[None], found.influence[None]))
    assert error == pytest.approx(expected.logodds_pooled_se, rel=0.03)


def test_the_influence_is_the_derivative_in_the_weight_of_a_person() -> None:
    """A person who counts twice moves the odds ratio by the influence, up to the square of the weight."""
    one, other, stratum = people(3000, 1)
    found = log_odds_ratio(one[0], other[0], stratum)
    assert found.influence.sum() == pytest.approx(0, abs=1e-9)
    for person in range(0, 3000, 300):
        twice = np.append(np.arange(3000), person)
        moved = log_odds_ratio(one[0][twice], other[0][twice], stratum[twice]).value - found.value
        assert moved == pytest.approx(found.influence[person], rel=0.05)


@pytest.mark.parametrize("noise", [0.0, 0.7, 3.0])
def test_the_error_over_people_is_that_of_a_bootstrap_of_people(noise: float) -> None:
    """People keep all their marks. Errors that ignore this are too small, by up to the root of the partitions."""
    one, other, stratum = people(1500, 4, noise=noise)
    found = Influenced.stacked([log_odds_ratio(f, g, stratum) for f, g in zip(one, other, strict=True)])
    rng, means = np.random.default_rng(1), []
    for _ in range(400):
        drawn = rng.integers(0, 1500, 1500)
        again = (log_odds_ratio(f[drawn], g[drawn], stratum[drawn]) for f, g in zip(one, other, strict=True))
        means.append(np.mean([each.value for each in again]))
    clustered = error_of_mean(found, left_out=np.zeros(4))
    assert clustered == pytest.approx(np.std(means), rel=0.1)
    single = error_of_mean(Influenced(found.value[:1], found.influence[:1]))
    assert (clustered > 0.9 * single) == (noise == 0)


def test_the_error_of_a_share_and_of_a_mean_over_partitions() -> None:
    rng = np.random.default_rng(0)
    counted = rng.random((1, 800)) < 0.6
    mark = (rng.random((1, 800)) < 0.3) & counted
    share = ratio(mark, counted)
    p, n = mark.sum() / counted.sum(), counted.sum()
    assert share.value[0] == pytest.approx(p)
    assert error_of_mean(share) == pytest.approx(np.sqrt(p * (1 - p) / n), rel=0.01)
    # Without any influence of people, the error is that of a mean of independent partitions.
    values = np.array([1.0, 2.0, 4.0, 5.0])
    alone = error_of_mean(Influenced(values, np.zeros((4, 10))))
    assert alone == pytest.approx(values.std(ddof=1) / 2)


def test_marks_that_never_meet_have_no_odds_ratio() -> None:
    one, other = np.array([1, 1, 0, 0]), np.array([0, 0, 1, 0])
    for pair in ((one, other), (one, one), (one, 0 * one)):
        found = log_odds_ratio(*pair, np.zeros(4, int))
        assert np.isnan(found.value)
        assert np.isnan(error_of_mean(Influenced(found.value[None], found.influence[None])))
