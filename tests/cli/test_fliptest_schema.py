"""The JSON is as its schema in the documentation says."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.places import json_of

pytestmark = pytest.mark.usefixtures("office")
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schema/audit.json").read_text())


def lacking(value: Any, schema: dict[str, Any]) -> list[str]:
    """The required keys that a value lacks, at any depth that the schema describes."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return [key for one in value for key in lacking(one, schema.get("items", {}))]
    if not isinstance(value, dict):
        return []
    missing = [key for key in schema.get("required", ()) if key not in value]
    known = schema.get("properties", {})
    return missing + [key for name, one in value.items() for key in lacking(one, known.get(name, {}))]


@pytest.mark.parametrize("asked", [(), ("--map", "entropic", "--null-draws", "3", "--refits", "2", "--reverse")])
def test_the_json_has_every_key_of_its_schema_and_no_value_against_it(asked: tuple[str, ...]) -> None:
    made = partial(json_of, "fliptest")(*asked)
    assert made["schema"] == SCHEMA["properties"]["schema"]["const"]
    assert lacking(made, SCHEMA) + lacking(made, SCHEMA["then"]) == []
    if validator := _validator():
        validator(SCHEMA).validate(made)
        del made["results"][0]["refits"]
        assert not validator(SCHEMA).is_valid(made)


def _validator() -> Any:
    """The validator of jsonschema, None where it is not installed."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return None
    return Draft202012Validator
