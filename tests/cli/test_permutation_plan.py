"""The command that plans a comparison."""

from pathlib import Path

import pytest

import fairness_audits as fa
from tests.cli.places import json_of, run


def test_the_command_is_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = "--metric tpr --value 0.75 --gap=-0.1 --shares 0.3,0.7 --of-rows 0.2"
    made = json_of("plan", *asked.split())
    called = fa.plan(metric="tpr", value=0.75, gap=-0.1, shares=(0.3, 0.7), of_rows=0.2).facts
    assert {name: made[name] for name in called} == called
    assert made["exact"]
    assert run("plan", *asked.split(), "--output", "out")[0] == 0
    assert "of both groups together" in Path("out/plan.html").read_text()
