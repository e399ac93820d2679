"""Settings that several audits share are the same in all of their files."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "audit"
ATTACKS = ("learned_metric", "model_agreement", "same_people", "verdict_sources")


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def first(value: Any) -> Any:
    """The published value stands first."""
    return value[0] if isinstance(value, list) else value


@pytest.mark.parametrize("dataset", ["adult", "compas"])
@pytest.mark.parametrize("audit", ATTACKS)
def test_an_audit_has_the_published_penalty_and_step_size_of_the_attack(audit: str, dataset: str) -> None:
    published, own = (one | one.get("per_dataset", {}).get(dataset, {}) for one in (read("loss_ratio"), read(audit)))
    for key in ("regularization", "step_size"):
        assert first(own[key]) == published[key]
    for key in {"delta", "alpha"} & own.keys():
        assert own[key] == published[key]
