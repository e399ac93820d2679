"""Which studies have a reference in the repository, and its files; :mod:`pipeline.workflow.shelf` reads and writes
them."""

import json
from collections.abc import Iterable
from pathlib import Path

FOLDER = "data/reference"


def whole(root: Path, study: str, grid: Iterable[str]) -> bool:
    """Whether the study has a reference of every block of its grid."""
    manifest = root / FOLDER / study / "manifest.json"
    return manifest.is_file() and set(json.loads(manifest.read_text(encoding="utf-8"))["blocks"]) == set(grid)


def files(root: Path, study: str) -> list[str]:
    """The files of a study's reference, from the root of the project."""
    return [str(path.relative_to(root)) for path in sorted((root / FOLDER / study).rglob("*")) if path.is_file()]
