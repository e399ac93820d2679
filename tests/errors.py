"""Expect an invalid input by what it names, whatever its sentence."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from fairness_audits.errors import InvalidInput


def fields_of(error: InvalidInput) -> dict[str, Any]:
    """The fields that are set but for the remedy; the source without its folder."""
    source = error.source and Path(error.source).name
    fields = {"source": source, "option": error.option, "column": error.column, "row": error.row}
    return {name: value for name, value in fields.items() if value is not None}


def invalid(**fields: Any) -> AbstractContextManager[pytest.ExceptionInfo[InvalidInput]]:
    """Expect an InvalidInput with these fields: ``with invalid(option="alpha"): ...``."""

    def named(error: InvalidInput) -> bool:
        found = {**fields_of(error), "remedy": error.remedy}
        assert {name: found.get(name) for name in fields} == fields, str(error)
        return True

    return pytest.raises(InvalidInput, check=named)
