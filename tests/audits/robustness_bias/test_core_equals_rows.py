"""The core gives the tables of the functions that it replaces, digit by digit."""

import numpy as np
import pandas as pd
import pytest

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import COUNTS, MEASURES, robustness_bias
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.audits.robustness_bias.rows import Measured, group_measures


@pytest.mark.parametrize("budget", [None, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_the_core_measures_what_the_rows_measure(seed: int, budget: float | None) -> None:
    rng = np.random.default_rng(seed)
    correct = rng.random(80) < 0.8
    distance = np.where(correct & (rng.random(80) < 0.9), rng.exponential(size=80), np.nan)
    fallback = np.where(correct & (rng.random(80) < 0.5), 3.0, np.nan)
    parts = [
        Partition("p", ("a", "b", "c"), rng.integers(-1, 3, 80)),
        Partition("q", ("x", "y"), rng.integers(2, size=80)),
    ]
    precision = Precision(0.1, 50, 49)
    for other in (None, fallback):
        measured = Measured(
            distance if other is None else np.where(np.isnan(distance), other, distance), correct, parts
        )
        limit = measured.budget(budget)
        failed = correct & np.isnan(distance)
        old = group_measures(measured, limit, precision, np.random.default_rng(seed), failed)
        new = robustness_bias(distance, correct, parts, budget, precision, np.random.default_rng(seed), fallback=other)
        assert measured.overall(limit) == {
            "budget": new.budget,
            "mean_distance": new.mean_distance,
            "median_distance": new.median_distance,
        }
        np.testing.assert_array_equal(new.distance, measured.distance)
        np.testing.assert_array_equal(new.failed, failed)
        table = pd.concat(
            [
                pd.DataFrame(
                    {"denominator": one.denominator, "partition": one.partition.name, "level": one.partition.levels}
                    | {name: getattr(one, name) for name in (*COUNTS, *MEASURES)}
                )
                for one in new.levels
            ],
            ignore_index=True,
        )
        pd.testing.assert_frame_equal(table, old, check_exact=True)
