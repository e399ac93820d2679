"""How many rows a test needs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from pipeline.audits.permutation.power import detectable, power_of, rate_variance, sample_size


def test_with_power_one_half_the_difference_sits_on_the_bound() -> None:
    n_a, n_b = sample_size(0.05, (0.21, 0.21), ratio=0.5)
    deviation = np.sqrt(0.21 / n_a + 0.21 / n_b)
    assert deviation * ndtri(0.975) == pytest.approx(0.05, rel=1e-3)
    one_sided = sample_size(0.05, (0.21, 0.21), ratio=0.5, alternative="greater").n_a
    assert one_sided == pytest.approx(n_a * (1.645 / 1.96) ** 2, rel=1e-3)


def test_size_power_and_difference_are_inverses() -> None:
    variances = (float(rate_variance(0.3, 0.8)), float(rate_variance(0.2, 0.2)))
    sizes = sample_size(0.1, variances, power=0.9, ratio=2)
    assert power_of(0.1, variances, sizes) == pytest.approx(0.9, abs=1e-3)
    assert detectable(variances, sizes, power=0.9) == pytest.approx(0.1, rel=1e-3)
    assert power_of(-0.1, variances, sizes) == power_of(0.1, variances, sizes)


def test_four_times_the_rows_see_half_the_difference() -> None:
    sizes = np.array([500, 2000, 8000])
    seen = detectable((0.25, 0.25), (sizes, sizes))
    np.testing.assert_allclose(seen[:-1] / seen[1:], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difference": 0.0}, "a difference other than 0"),
        ({"difference": 0.1, "power": 1.0}, "power between 0 and 1"),
        ({"difference": 0.1, "ratio": 0.0}, "expected ratio > 0"),
        ({"difference": 0.1, "alpha": 1.5}, "expected alpha between 0 and 1"),
        ({"difference": 0.1, "power": 0.01}, "power 0.01 is below the level"),
    ],
)
def test_impossible_wishes_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample_size(variances=(0.2, 0.2), **arguments)


def test_a_rate_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a rate in \[0, 1\] and a share in \(0, 1\]"):
        rate_variance(0.5, 0.0)
