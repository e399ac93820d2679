"""The word for a line."""

from __future__ import annotations

import pytest

from pipeline.audits.fliptest.transparency import standing

NAN = float("nan")


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [
        (0.4, 0.6, 0.01, "stands out"),
        (-0.6, -0.4, 0.05, "stands out"),
        (0.4, 0.6, 0.051, "as the whole group"),
        (1.3, 1.3, 1.0, "as the whole group"),
        (0.4, 0.6, NAN, "as the whole group"),
        (-0.1, 0.6, 0.01, "noise"),
        (0.0, 0.6, 0.01, "noise"),
        (-0.6, 0.0, 0.9, "noise"),
        (NAN, NAN, 0.01, "noise"),
    ],
)
def test_noise_is_an_interval_over_zero_and_a_certain_shift_never_is(
    low: float, high: float, p: float, word: str
) -> None:
    assert standing(low, high, p, 0.05) == word
