"""Rows made of distances: each measure once, what is counted without one, and levels that have none."""

import logging

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.precision import Precision
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.audits.robustness_bias.rows import Measured, rows

PRECISION = Precision(alpha=0.1, bootstraps=100, permutations=99)
WHERE = "deepfool, epoch 3"


def measured() -> Measured:
    """Level ``a``: three distances, a failure and a misclassified point; ``b``: two distances; ``c``: all wrong."""
    distance = np.array([1.0, 2.0, 3.0, np.nan, np.nan, 4.0, 8.0, np.nan, np.nan])
    correct = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0], dtype=bool)
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2])
    side = Partition("side", ("l", "r"), np.array([0, 1, 0, 1, 0, 1, 0, 1, -1]))
    return Measured(distance, correct, [Partition("group", ("a", "b", "c"), codes), side])


def table(budget: float | None = None, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(rows(measured(), budget, PRECISION, np.random.default_rng(seed), WHERE))


def value(frame: pd.DataFrame, statistic: str, level: str = "", denominator: str = "") -> float:
    wanted = (frame["statistic"] == statistic) & (frame["level"] == level) & (frame["denominator"] == denominator)
    (found,) = frame.loc[wanted, "value"]
    return float(found)


def test_every_row_says_something_else() -> None:
    frame = table()
    assert not frame.duplicated(subset=[name for name in frame if name != "value"]).any()
    assert frame["value"].dtype == float


def test_all_points_together_are_counted() -> None:
    frame = table()
    found = {name: value(frame, name) for name in ("points", "accuracy", "failed", "budget", "median_distance")}
    assert found == {"points": 9, "accuracy": 6 / 9, "failed": 1, "budget": 8, "median_distance": 3}
    assert value(frame, "mean_distance") == pytest.approx(18 / 5)


def test_failures_and_correct_points_are_counted_level_by_level() -> None:
    frame = table()
    assert [value(frame, "failed", level) for level in ("a", "b", "c")] == [1, 0, 0]
    assert [value(frame, "n_correct", level) for level in ("a", "b", "c", "l", "r")] == [4, 2, 0, 3, 3]


@pytest.mark.parametrize(
    ("denominator", "n", "areas", "medians"),
    [("paper", (4, 2, 2), (6 / 4, 6, 0), (1.5, 6, 0)), ("correct", (3, 2, 0), (2, 6, np.nan), (2, 6, np.nan))],
)
def test_a_denominator_says_whose_mean_it_is(
    denominator: str, n: tuple[float, ...], areas: tuple[float, ...], medians: tuple[float, ...]
) -> None:
    frame = table()
    levels = ("a", "b", "c")
    assert tuple(value(frame, "n", level, denominator) for level in levels) == n
    np.testing.assert_allclose([value(frame, "auc", level, denominator) for level in levels], areas)
    np.testing.assert_allclose([value(frame, "mean_distance", level, denominator) for level in levels], areas)
    np.testing.assert_allclose([value(frame, "median_distance", level, denominator) for level in levels], medians)


def test_a_budget_cuts_the_area_and_leaves_the_distances() -> None:
    frame = table(budget=2.5)
    assert value(frame, "budget") == 2.5
    assert value(frame, "auc", "a", "correct") == pytest.approx((1 + 2 + 2.5) / 3)
    assert value(frame, "sigma", "a", "correct") == pytest.approx(5.5 / 3 / 2.5 - 1)
    assert value(frame, "mean_distance", "a", "correct") == pytest.approx(2)


def test_a_level_without_correct_points_has_no_sigma_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        frame = table()
    for statistic in ("sigma", "sigma_ci_low", "sigma_p", "auc"):
        assert np.isnan(value(frame, statistic, "c", "correct"))
    # Where misclassified points count, they are the least robust of all.
    assert value(frame, "sigma", "c", "paper") == -1
    assert 0 < value(frame, "sigma_p", "c", "paper") <= value(frame, "sigma_p_adjusted", "c", "paper") <= 1
    # No error can be read off lengths that are all alike.
    assert np.isnan(value(frame, "sigma_ci_low", "c", "paper"))
    assert caplog.messages == [
        f"{WHERE}, denominator correct: no point of group c counts, so sigma does not exist there"
    ]


def test_the_interval_goes_around_sigma_and_two_complements_have_one_test() -> None:
    frame = table()
    low, sigma, high = (value(frame, name, "a", "correct") for name in ("sigma_ci_low", "sigma", "sigma_ci_high"))
    assert low < sigma < high
    for denominator in ("paper", "correct"):
        assert value(frame, "sigma_p", "l", denominator) == value(frame, "sigma_p", "r", denominator) < 1
        assert value(frame, "sigma_p_adjusted", "l", denominator) >= value(frame, "sigma_p", "l", denominator)


def test_the_same_stream_gives_the_same_rows() -> None:
    pd.testing.assert_frame_equal(table(seed=1), table(seed=1))
    assert not table(seed=1).equals(table(seed=2))


def test_where_everything_failed_counts_are_all_there_is() -> None:
    nothing = Measured(np.full(3, np.nan), np.ones(3, dtype=bool), [Partition("p", ("a", "b"), np.array([0, 1, 1]))])
    frame = pd.DataFrame(rows(nothing, None, PRECISION, np.random.default_rng(0), WHERE))
    assert value(frame, "failed") == 3
    assert np.isnan([value(frame, name) for name in ("budget", "median_distance", "mean_distance")]).all()
    assert frame.loc[frame["statistic"].str.startswith("sigma"), "value"].isna().all()
