"""Messages name the nearest column, count what a long list leaves out, and take one line of a library's error."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from pipeline.messages import check_columns, listed, reason


def test_a_missing_column_gets_the_nearest_name() -> None:
    table = pd.DataFrame({"income": [1], "age": [2]})
    with pytest.raises(ValueError, match=r"--label names 'incom', but t\.csv .*did you mean 'income'.*income, age"):
        check_columns(table, ["incom"], "--label", "t.csv")
    with pytest.raises(ValueError, match="separated by something other than commas"):
        check_columns(pd.DataFrame({"a;b": [1]}), ["a"], "--label", "t.csv")
    # Anything with columns will do.
    check_columns(SimpleNamespace(columns=("income", "age")), ["age", "income"], "group", "the counts")
    with pytest.raises(ValueError, match=r"group names 'ages', but the counts has no such column.*'age'"):
        check_columns(SimpleNamespace(columns=("income", "age")), ["ages"], "group", "the counts")


def test_long_lists_end_in_a_count_and_long_errors_after_a_line() -> None:
    assert listed([1, 2, 3], 2) == "1, 2 and 1 more"
    assert listed([1, 2], 2) == "1, 2"
    assert reason(RuntimeError("first.\nsecond")) == "RuntimeError: first"
    scripted = "The following operation failed in the TorchScript interpreter.\nTraceback\nRuntimeError: sizes differ\n"
    assert reason(RuntimeError(scripted)) == "RuntimeError: sizes differ"
    assert reason(KeyError()) == "KeyError: no further text"
