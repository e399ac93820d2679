"""What is said of a map's quality has closed forms; POT imports no array library that nothing here needs of it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import ks_2samp

from pipeline.transport import quality


@pytest.mark.parametrize("whole", [False, True])
def test_ks_is_scipys_of_every_feature(whole: bool) -> None:
    rng = np.random.default_rng(0)
    real, generated = rng.normal(size=(300, 3)), rng.normal(size=(170, 3)) * [1, 2, 1] + [0, 0, 0.5]
    if whole:
        real, generated = np.round(real), np.round(generated)
    expected = [ks_2samp(real[:, j], generated[:, j]).statistic for j in range(3)]
    np.testing.assert_allclose(quality.ks(real, generated), expected, atol=1e-12)
    assert quality.ks(real, real).tolist() == [0, 0, 0]


def test_generated_rows_that_break_a_relation_by_three_have_an_error_larger_by_nine() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=(200, 2))
    real = np.column_stack([first, 2 * first[:, 0] - first[:, 1] + 4])
    broken = real + np.array([0, 0, 3])
    errors = quality.regression_errors(real, broken, rng)
    np.testing.assert_allclose(errors.real, 0, atol=1e-20)
    # A change of 3 in the third is one of 3/2 in what the first should be, and of -3 for the second.
    np.testing.assert_allclose(errors.difference, [2.25, 9, 9])


def test_of_real_rows_the_error_is_out_of_sample() -> None:
    """With k coefficients from h rows it is s^2 (1 + k/h) to first order, and s^2 (1 - k/h) in the sample."""
    rng = np.random.default_rng(2)
    draws = [quality.regression_errors(real, real, rng) for real in rng.normal(size=(200, 40, 5))]
    out, all_rows = (np.mean([getattr(errors, name) for errors in draws]) for name in ("real", "generated"))
    assert out == pytest.approx(1 + 5 / 15 * 1.0, abs=0.12)
    assert all_rows < out - 0.1


def test_too_few_real_rows_for_a_regression_are_an_error() -> None:
    with pytest.raises(ValueError, match="regressions of 4 features need more than 8 real rows, found 8"):
        quality.regression_errors(np.ones((8, 4)), np.ones((8, 4)), np.random.default_rng(0))


def test_exact_distances_are_of_the_plan_that_the_cost_chooses() -> None:
    x, y = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[4.0, 0.0], [9.0, 0.0]])
    found = quality.exact_distances(x, y)
    # Squared: 4 and 5 rather than 0 and 9.
    assert found == {"l1": 4.5, "squared_l1": 20.5}
    assert quality.mean_distance(x, y) == 20.5
    assert quality.mean_distance(x, y, "l1") == 4.5


def test_exact_distances_of_unequal_groups_weigh_both_equally() -> None:
    found = quality.exact_distances(np.array([[0.0]]), np.array([[1.0], [3.0]]), report=("l1",))
    assert found == {"l1": 2.0}


def test_a_round_trip_is_how_far_rows_come_back_from_where_they_were() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    assert quality.round_trip(rows, rows) == 0
    assert quality.round_trip(rows, rows + np.array([1, -2])) == 3


def test_a_map_is_healthy_up_to_the_limit_in_every_feature() -> None:
    assert quality.healthy(np.array([0.0, 0.12]))
    assert not quality.healthy(np.array([0.0, 0.1201]))


def test_generated_values_become_the_nearest_real_ones() -> None:
    real = np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0], [1.0, 5.0]])
    generated = np.array([[-3.0, 5.1], [0.6, 4.0], [2.4, 5.0], [2.6, 5.0], [99.0, 5.0]])
    expected = [[0, 5], [1, 5], [1, 5], [4, 5], [4, 5]]
    np.testing.assert_array_equal(quality.nearest_values(real, generated), expected)


def test_images_that_are_not_finite_are_counted_in_the_error() -> None:
    rows = np.zeros((4, 2))
    broken = np.array([[0, np.nan], [np.inf, 0], [0, 0], [np.nan, np.nan]])
    for function in (quality.ks, quality.mean_distance, quality.nearest_values, quality.exact_distances):
        with pytest.raises(ValueError, match="3 of 4 rows hold NaN or infinite values"):
            function(rows, broken)


# POT imports no array library that nothing here needs of it.


def test_pot_imports_no_array_library_that_nobody_imported() -> None:
    """In a process of its own: what is imported once stays imported."""
    program = (
        "import sys; from pipeline.transport.pot import ot; sys.exit(not {'torch', 'jax'}.isdisjoint(sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POT_BACKEND")}
    assert subprocess.run([sys.executable, "-c", program], check=False, env=environment).returncode == 0


def test_a_right_map_is_beyond_chance_about_as_often_as_it_may_be() -> None:
    rng, sizes = np.random.default_rng(2), (300, 200, 150, 250)
    found = []
    for _ in range(600):
        x, y, held, there = (rng.normal(size=n) for n in sizes)
        image = np.quantile(y, np.clip((np.searchsorted(np.sort(x), held) + 0.5) / (len(x) + 1), 0, 1))
        found.append(quality.ks(there[:, None], image[:, None])[0])
    beyond = np.mean(np.array(found) > quality.chance_ks(sizes, 1, 0.05))
    assert 0.01 <= beyond <= 0.07
