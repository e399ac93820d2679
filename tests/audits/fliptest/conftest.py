"""Maps of the tests' own kind are found as the project's are."""

import sys

import pytest

from tests.audits.fliptest.builders import KIND


@pytest.fixture(autouse=True)
def _shift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, KIND.__name__, KIND)
