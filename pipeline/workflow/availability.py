"""Whether a dataset's files can be had, as far as that is known before anything is fetched.

``python -m pipeline.workflow.availability`` ends with status 1 where only an attempt to download can tell: `make
reproduce` then fetches first, so that the plan of the rest leaves out what cannot be had.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.workflow.plugins import load

RAW = Path("data/raw")
RECORD = "manifest.json"
MIRROR = "DATA_MIRROR"


def choices(module: ModuleType) -> list[tuple[str, Sequence[Any]]]:
    """The official files and what may be used in their place, best first, each with the origin that it gives."""
    return [("official", module.SOURCES), *((origin, (file,)) for origin, file in getattr(module, "ALTERNATIVES", ()))]


def optional(module: ModuleType) -> bool:
    """Whether the dataset may be absent."""
    return module.TWIN is None and bool(getattr(module, "OPTIONAL", False))


def needs_files(kind: str) -> bool:
    """Whether a dataset is made of raw files: others are drawn, or come with a dependency."""
    return bool(load("dataset", kind).SOURCES)


def without_files(kind: str, module: ModuleType) -> dict[str, Any]:
    """The manifest of a dataset that needs no files."""
    return {"dataset": kind, "origin": getattr(module, "ORIGIN", "simulated"), "files": [], "reason": None}


def folders(raw: Path) -> list[Path]:
    """Where a dataset's files may lie: its raw folder, and a mirror that is a folder."""
    mirror = os.environ.get(MIRROR, "")
    return [raw, *([Path(mirror) / raw.name, Path(mirror)] if mirror and "://" not in mirror else [])]


def standing(kind: str, source: str, raw: Path) -> str:
    """``"there"``, ``"absent"``, or ``"undecided"`` where the files of an optional dataset may be to be downloaded.

    ``source`` is auto, official or twin; ``raw`` the dataset's raw folder, whose manifest, if there is one, tells. A
    dataset that has to be there is there: that it is not is an error, which fetching reports.
    """
    module = load("dataset", kind)
    if source == "official" or not optional(module):
        return "there"
    if source == "twin":
        return "absent"
    if (raw / RECORD).is_file():
        return "absent" if json.loads((raw / RECORD).read_text(encoding="utf-8"))["origin"] == "absent" else "there"
    found = [_reachable(files, raw) for _, files in choices(module)]
    return "there" if "there" in found else "undecided" if "undecided" in found else "absent"


def _reachable(files: Iterable[Any], raw: Path) -> str:
    """The same of files that are needed together."""
    elsewhere = "://" in os.environ.get(MIRROR, "")
    missing = [file for file in files if not any((folder / file.filename).is_file() for folder in folders(raw))]
    if not missing:
        return "there"
    return "undecided" if all(file.urls or elsewhere for file in missing) else "absent"


def main(environment: Mapping[str, str]) -> int:
    """1 where a dataset's standing is undecided."""
    source = environment.get("DATA_SOURCE") or "auto"
    kinds = [path.stem for path in Path(__file__).parents[1].joinpath("datasets").glob("*.py")]
    modules = [kind for kind in kinds if hasattr(load("dataset", kind), "prepare")]
    return int(any(standing(kind, source, RAW / kind) == "undecided" for kind in modules))


if __name__ == "__main__":
    sys.exit(main(os.environ))
