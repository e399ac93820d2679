"""Expect an invalid input by what it names, whatever its sentence."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from fairness_audits.errors import InvalidInput


def invalid(**fields: Any) -> AbstractContextManager[pytest.ExceptionInfo[InvalidInput]]:
    """Expect an InvalidInput with these fields: ``with invalid(option="alpha"): ...``."""

    def named(error: InvalidInput) -> bool:
        assert {name: getattr(error, name) for name in fields} == fields, str(error)
        return True

    return pytest.raises(InvalidInput, check=named)
