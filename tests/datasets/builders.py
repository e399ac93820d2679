"""Datasets as shipped but for a few settings."""

import json
from pathlib import Path
from typing import Any

import yaml

from fairness_audits.seeds import generators
from pipeline import io
from pipeline.stages import fetch, prepare
from pipeline.workflow import plugins

ROOT = Path(__file__).resolve().parents[2]


def configured(name: str, **changes: Any) -> Any:
    """The settings of a dataset as shipped, with changes."""
    section = yaml.safe_load((ROOT / "conf" / "dataset" / f"{name}.yaml").read_text())
    return plugins.configure(plugins.load("dataset", section.get("kind", name)), section | changes)


def prepared(name: str, data: Any, repetitions: int = 1, **changes: Any) -> Any:
    """The dataset made of what its ``parse`` gave, None for what is drawn."""
    rngs = generators("t", name, repetitions=repetitions)
    return plugins.load("dataset", name).prepare(data, configured(name, **changes), rngs, "official")


def fetched(raw: Path, source: str, name: str) -> dict[str, Any]:
    """The manifest that the fetch stage writes beside ``raw``."""
    output = raw.parent / "manifest.json"
    fetch.main(["--dataset", name, "--source", source, "--raw", str(raw), "--output", str(output)])
    manifest: dict[str, Any] = json.loads(output.read_text())
    return manifest


def staged(folder: Path, section: dict[str, Any], repetitions: int = 2, source: str = "twin") -> Path:
    """The file of the dataset that both stages make below ``folder``; what was fetched is not fetched again."""
    manifest, output = folder / "manifest.json", folder / "prepared.npz"
    if not manifest.exists():
        fetched(folder / section["kind"], source, section["kind"])
    config = {"dataset": section, "repetitions": repetitions}
    io.save(prepare.make(config, {"manifest": [str(manifest)]}), output)
    return output
