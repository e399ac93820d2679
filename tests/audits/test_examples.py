"""The examples in docstrings of the statistics give what they show."""

import doctest
import importlib

import pytest

PERMUTATION = ("exact", "permutation_test", "statistics")
MODULES = ("inference", "loss_ratio.ratio_tests", *(f"permutation.{name}" for name in PERMUTATION))


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"fairness_audits.audits.{name}"))
    assert (found.failed, found.attempted > 0) == (0, True)
