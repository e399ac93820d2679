"""The error of an input that the user can correct."""

import pickle

import pytest

from fairness_audits.errors import InvalidInput
from tests.errors import invalid


def test_the_text_is_the_problem_and_the_remedy() -> None:
    assert str(InvalidInput("a.csv has no rows")) == "a.csv has no rows"
    assert str(InvalidInput("a.csv has no rows", remedy="Add some")) == "a.csv has no rows. Add some"


def test_a_pickle_keeps_the_fields() -> None:
    error = InvalidInput("wrong", source="a.csv", option="data", column="age", row=3, remedy="Mend it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is InvalidInput
    assert copy.args == error.args
    assert vars(copy) == vars(error)


def test_an_error_within_a_place_keeps_the_fields_that_the_place_does_not_set() -> None:
    inner = InvalidInput("wrong", option="step", column="age", row=3, remedy="Mend it")
    outer = InvalidInput.within("a.yaml", inner, source="a.yaml", option="attack")
    assert str(outer) == "a.yaml: wrong. Mend it"
    assert vars(outer) == {**vars(inner), "source": "a.yaml", "option": "attack"}
    assert InvalidInput.within("map", ValueError("wrong")).option is None


def test_expecting_an_error_checks_its_fields() -> None:
    with invalid(option="alpha", row=None):
        raise InvalidInput("wrong", option="alpha")
    with pytest.raises(AssertionError), invalid(option="alpha"):
        raise InvalidInput("wrong", option="beta")
