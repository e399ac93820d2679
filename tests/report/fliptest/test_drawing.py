"""What the figures compute before they draw, and that they can be drawn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from fairness_audits.audits.fliptest import bars
from fairness_audits.audits.fliptest.bars import Group, Line
from pipeline.report.fliptest import which_map
from pipeline.report.fliptest.methods import largest


def line(feature: str, value: float) -> Line:
    """A line whose interval does not cover 0."""
    low, high = sorted((0.9 * value, 1.1 * value))
    return Line(feature, value, low, high, np.array([value]))


def test_a_few_far_values_do_not_stretch_the_axis_and_an_interval_that_dwarfs_the_bars_is_an_arrow() -> None:
    group = np.concatenate([np.linspace(0, 1, 999), [500.0]])
    assert bars.limits([group, np.array([0.2, 0.9])]) == pytest.approx((0.0, 1.0), abs=0.01)
    axes = Figure().subplots()
    bars.draw(axes, [replace(line("age", 0.5), low=-30.0, high=31.0)], "mean_shift", "#0072B2")
    assert max(abs(end) for end in axes.get_xlim()) < 1
    assert [mark.get_marker() for mark in axes.lines if mark.get_marker() in ("<", ">")] == ["<", ">"]


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_short_lists_lose_nobody(values: list[int]) -> None:
    low, high = bars.limits([np.array(values, float), np.zeros(0)])
    assert (low, high) == (min(values), max(values))


@pytest.mark.parametrize(("shares", "some"), [(False, [0, 20, 20]), (True, [0, 50, 50])])
def test_bars_of_a_marginal_hold_everyone_on_one_scale(shares: bool, some: list[float]) -> None:
    """Counts, or percentages of each group; every value of a count has its own bin."""
    values = np.repeat([0.0, 1.0, 2.0], [50, 30, 20])[:, None]
    groups = [Group("all", values, "#000000"), Group("some", values[60:], "#ff0000", "positive")]
    axes = Figure().subplots()
    bars.draw_marginal(axes, groups, 0, shares)
    heights = [bar.get_data().values.tolist() for bar in axes.patches]  # type: ignore[attr-defined]
    assert heights == [[50, 30, 20], some]
    assert axes.figure.axes == [axes]


def test_stability_by_hand() -> None:
    """Two draws of two features: variances with n - 1, and means."""
    rows = pd.DataFrame(
        {"repetition": [0, 0, 1, 1], "feature": ["1", "2"] * 2, "point": "zeros", "value": [1.0, 0.0, 3.0, 0.5]}
    )
    image = which_map.images(rows, "zeros")
    assert which_map.variances(image) == pytest.approx([2.0, 0.125])
    assert which_map.means(image) == pytest.approx([2.0, 0.25])
    with pytest.raises(ValueError, match="expected the rows of one map"):
        which_map.images(pd.concat([rows, rows]), "zeros")


def test_the_error_of_a_log_variance_is_that_of_normal_draws() -> None:
    """The log of a sample variance of n normal draws has the variance 2 / (n - 1), and a mean of d of them a d-th."""
    rng = np.random.default_rng(0)
    errors = [which_map.jackknife(which_map.log_variance, rng.normal(size=(60, 4))) for _ in range(200)]
    assert np.mean(errors) == pytest.approx(np.sqrt(2 / 59 / 4), rel=0.05)
    assert np.isnan(which_map.jackknife(which_map.log_variance, np.ones((2, 4))))


def test_the_features_that_stand_out_come_first_then_the_noise_by_size() -> None:
    noise = replace(line("noise", 9.0), low=-1.0)
    reports = [[line("age", 0.2), noise], [line("age", -0.9), line("hours", 0.5)], []]
    assert largest(reports, 3) == ["age", "hours", "noise"]
    assert largest(reports, 1) == ["age"]
