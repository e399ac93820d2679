"""The JSON is as its schema in the documentation says."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairness_audits as fa
from tests.cli.places import json_of

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


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize("asked", [(), ("--map", "entropic", "--null-draws", "3", "--refits", "2", "--reverse")])
def test_the_json_has_every_key_of_its_schema_and_no_value_against_it(asked: tuple[str, ...]) -> None:
    made = partial(json_of, "fliptest")(*asked)
    assert made["schema"] == SCHEMA["properties"]["schema"]["const"]
    assert lacking(made, SCHEMA) + lacking(made, SCHEMA["then"]) == []
    if validator := _validator():
        validator(SCHEMA).validate(made)
        del made["results"][0]["refits"]
        assert not validator(SCHEMA).is_valid(made)


def test_groups_of_images_and_of_rows_are_counted_under_one_key() -> None:
    rng = np.random.default_rng(0)
    x, sex = rng.normal(size=(40, 4)), np.repeat([0, 1], [25, 15])
    audit = partial(fa.robustness_bias, groups=sex, permutations=99, bootstraps=20)
    rows = audit(lambda rows: rows @ np.arange(4.0), x, attack="exact")
    pixels = rng.random((40, 2, 2)).astype(np.float32)
    images = audit(lambda x: x.flatten(1).sum(1) - 2, pixels, attack="exact")
    for result, unit in ((rows, "row"), (images, "image")):
        made = result.to_dict()
        assert lacking(made, SCHEMA) + lacking(made, SCHEMA["else"]["then"]) == []
        (found,) = made["results"]
        assert (found["unit"], found["points"]) == (unit, 40)
        assert {one["level"]: one["points"] for one in found["groups"]} == {"0": 25, "1": 15}
        assert result.to_frame("groups")["points"].tolist() == [25, 15, 25, 15]
        assert "Groups by exact distance, " in result.summary()
        if validator := _validator():
            validator(SCHEMA).validate(made)
            del found["groups"][0]["points"]
            assert not validator(SCHEMA).is_valid(made)


def _validator() -> Any:
    """The validator of jsonschema, None where it is not installed."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return None
    return Draft202012Validator
