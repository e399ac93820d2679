"""How numbers are estimated and printed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report.numbers import Estimate, interval, number, p_value, plain, spread, symbols


def test_mean_and_spread_are_the_sample_ones() -> None:
    """Of 1, 2, 6: mean 3, standard deviation sqrt((4 + 1 + 9) / 2)."""
    found = Estimate.mean(np.array([1.0, 2.0, 6.0]))
    assert found.value == 3.0
    assert found.std == pytest.approx(np.sqrt(7.0))
    assert found.n == 3


def test_repetitions_without_a_value_do_not_count() -> None:
    assert Estimate.mean(np.array([1.0, np.nan, 3.0])).n == 2
    assert Estimate.share(np.array([1.0, np.nan, 0.0, 0.0])) == Estimate(1 / 3, n=3)


def test_one_repetition_has_no_spread_and_no_interval() -> None:
    one = Estimate.mean(np.array([2.0]))
    assert np.isnan(one.std)
    assert one.with_t_interval() is one
    assert spread(one) == "2.000"
    assert interval(one) == "\u2014"


def test_t_interval_of_two_values_is_twelve_times_as_wide_as_their_standard_error() -> None:
    """With one degree of freedom Student's t is a Cauchy variable: its 97.5 % quantile is tan(0.475 pi) = 12.706."""
    found = Estimate.mean(np.array([0.0, 2.0])).with_t_interval()
    assert found.high - 1.0 == pytest.approx(np.tan(0.475 * np.pi))
    assert found.low + found.high == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (-0.1514, 3, "\u22120.151"),
        (0.8, 3, "0.800"),
        (-0.0004, 3, "0.000"),
        (45222, 0, "45,222"),
        (float("nan"), 3, "\u2014"),
        (float("-inf"), 3, "\u2212\u221e"),
        (1.25e9 + 0.5, 3, "1.25 \u00d7 10\u2079"),
        (None, 3, "\u2014"),
    ],
)
def test_printed_numbers(value: float | None, decimals: int, text: str) -> None:
    assert number(value, decimals) == text


@given(st.floats(-1e5, 1e5), st.floats(0, 1e5), st.integers(0, 5))
def test_mean_and_spread_have_the_same_number_of_decimals(mean: float, std: float, decimals: int) -> None:
    left, right = spread(Estimate(mean, std, 10), decimals).split(" \u00b1 ")
    assert len(left.partition(".")[2]) == len(right.partition(".")[2]) == decimals


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-4, "10\u207b\u2074"),
        (2.5e-5, "2.5 \u00d7 10\u207b\u2075"),
        (8000.0, "8,000"),
        (0.005, "0.005"),
        (-4.0, "\u22124"),
        (0.0, "0"),
    ],
)
def test_parameters_are_written_as_people_write_them(value: float, text: str) -> None:
    assert plain(value) == text


def test_small_p_values_are_not_printed_as_nought() -> None:
    assert p_value(1e-9) == "< 0.001"
    assert p_value(0.0416) == "0.042"


def test_letters_of_formulas_are_spelled_out_but_not_inside_words_or_keys() -> None:
    assert symbols("T_n, T~_n and delta") == "T\u2099, T\u0303\u2099 and \u03b4"
    assert symbols("beta, audit.delta, metadata") == "beta, audit.delta, metadata"
