"""Derived rows of the permutation tests."""

import math

import pandas as pd

from pipeline.report.permutation_tests.comparison import _in_larger_samples


def test_a_split_detects_a_smaller_difference_in_larger_samples_if_its_median_is_smaller() -> None:
    """A sample without a detected difference counts as infinite, so a median of two such samples is infinite."""
    place = dict.fromkeys(
        ("study", "scale", "origin", "block", "dataset", "method", "attribute", "metric", "test"), "x"
    )
    none = math.nan
    values = {  # By split: the smallest detected differences in three samples of 1,000 and of 4,000 rows.
        0: ((0.3, 0.1, 0.2), (0.1, 0.1, 0.4)),
        1: ((0.1, 0.1, 0.4), (0.2, 0.2, 0.1)),
        2: ((none, none, 0.1), (0.3, 0.3, none)),
        3: ((0.3, 0.3, 0.3), (none, none, 0.1)),
        4: ((none, none, none), (none, none, none)),
    }
    rows = [
        {**place, "statistic": "minimum_difference", "repetition": split, "n": n, "sample": sample, "value": value}
        for split, sides in values.items()
        for n, side in zip((1000, 4000), sides, strict=True)
        for sample, value in enumerate(side)
    ]
    found = _in_larger_samples(pd.DataFrame(rows))
    assert set(found["statistic"]) == {"detects_smaller"}
    assert dict(zip(found["repetition"], found["value"], strict=True)) == {0: 1, 1: 0, 2: 1, 3: 0, 4: 0}
    assert _in_larger_samples(pd.DataFrame(rows).query("n == 1000")).empty
    assert _in_larger_samples(pd.DataFrame(rows).drop(columns="sample")).empty
