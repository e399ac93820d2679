"""A page keeps its width, tears no name, and shows no empty section; JSON gets no number that it does not know."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pipeline.cli.json_numbers import finite
from pipeline.cli.page import WIDTH, line, paragraph, titled


def test_lines_keep_the_width_and_tear_no_hyphenated_name() -> None:
    text = paragraph(" ".join(["marital-status"] * 40), "  - ", "    ")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.startswith("  - marital-status ")
    assert all(row.startswith("    marital-status") for row in text.splitlines()[1:])
    assert text.count("marital-status") == 40


def test_a_named_line_hangs_beside_its_name() -> None:
    first, second = line("level", "x " * 50).splitlines()
    assert first.startswith("  level   x x")
    assert second.startswith(" " * 10 + "x x")


def test_a_section_without_lines_is_nothing() -> None:
    assert titled("Result", ["a", "b"]) == "Result\na\nb"
    assert titled("Result", []) == ""


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf")])
def test_what_json_does_not_know_is_null(value: float | None) -> None:
    assert finite(value) is None


def test_numbers_are_kept_as_plain_floats() -> None:
    for value in (0.1, np.float64(0.1), np.array([0.1])[0]):
        assert finite(value) == 0.1
        assert type(finite(value)) is float
