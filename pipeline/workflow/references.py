"""Which studies have a reference in the repository, and its files; :mod:`pipeline.workflow.shelf` reads and writes
them."""

import json
from collections.abc import Callable, Collection
from pathlib import Path

FOLDER = "data/reference"


def whole(root: Path, study: str, blocks: Callable[[str], Collection[str]]) -> bool:
    """Whether the study has a reference of all the ``blocks`` that its scale runs."""
    path = root / FOLDER / study / "manifest.json"
    if not path.is_file():
        return False
    manifest = json.loads(path.read_text(encoding="utf-8"))
    return set(manifest["blocks"]) == set(blocks(manifest["scale"]))


def files(root: Path, study: str) -> list[str]:
    """The files of a study's reference, from the root of the project."""
    return [str(path.relative_to(root)) for path in sorted((root / FOLDER / study).rglob("*")) if path.is_file()]
