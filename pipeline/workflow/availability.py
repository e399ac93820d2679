"""Whether a dataset's files can be had, as far as that is known before anything is fetched.

``python -m pipeline.workflow.availability`` ends with status 1 where only an attempt to download can tell: `make
reproduce` then fetches first, so that the plan of the rest leaves out what cannot be had.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.workflow.plugins import load

RAW = Path("data/raw")
RECORD = "manifest.json"
MIRROR = "DATA_MIRROR"
ASKED = ("auto", "official", "twin")
"""What ``DATA_SOURCE`` may ask for."""
STAND_INS = ("twin", "absent", "lossy")
"""Origins that the published files take the place of."""
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


def sources(module: ModuleType) -> Sequence[Any]:
    """The official files of a dataset; none where it is drawn, or comes with a dependency."""
    return getattr(module, "SOURCES", ())


def choices(module: ModuleType) -> list[Sequence[Any]]:
    """The official files, and those that hold the same, best first."""
    return [module.SOURCES, *((file,) for file in getattr(module, "ALTERNATIVES", ()))]


def twins(module: ModuleType) -> Mapping[str, Sequence[str]]:
    """The files of a dataset's twins by the selection of rows that each is of; none where it has none."""
    return getattr(module, "TWINS", {})


def copies(kind: str, module: ModuleType, raw: Path) -> list[Path]:
    """What may hold the content of a dataset that is recognised by it: archives and folders beside the official files.

    In the dataset's own raw folder and in its folder of the mirror they may have any name, or be that folder itself; in
    the mirror they are named after the dataset.
    """
    if not hasattr(module, "recognised"):
        return []
    named = re.compile(re.sub(r"(?<=\D)(?=\d)", "[-_]?", kind) + r"(?![0-9a-z])", re.IGNORECASE)
    known = {*folders(raw), *(folder / file.filename for folder in folders(raw) for file in module.SOURCES)}
    found: list[Path] = []
    for folder in filter(Path.is_dir, folders(raw)):
        own = folder.name == raw.name
        if own and (folder / "train").is_dir():
            found.append(folder)
            continue
        inside = (path for path in sorted(folder.iterdir()) if (own or named.match(path.name)) and path not in known)
        found += [path for path in inside if path.is_dir() or path.name.lower().endswith(ARCHIVES)]
    return found


def needs_files(kind: str) -> bool:
    """Whether a dataset is made of raw files: others are drawn, or come with a dependency."""
    return bool(sources(load("dataset", kind)))


def without_files(kind: str, module: ModuleType) -> dict[str, Any]:
    """The manifest of a dataset that needs no files."""
    return {"dataset": kind, "origin": getattr(module, "ORIGIN", "simulated"), "files": [], "reason": None}


def folders(raw: Path) -> list[Path]:
    """Where a dataset's files may lie: its raw folder, and a mirror that is a folder."""
    mirror = os.environ.get(MIRROR, "")
    return [raw, *([Path(mirror) / raw.name, Path(mirror)] if mirror and "://" not in mirror else [])]


def standing(kind: str, source: str, raw: Path) -> str:
    """``"there"``, ``"absent"``, or ``"undecided"`` where files without a twin may be to be downloaded.

    ``source`` is auto, official or twin; ``raw`` the dataset's raw folder, whose manifest tells, if there is one and
    nothing better has come to hand. A dataset that has to be there, or has a twin, is there: fetching reports an error
    if it is not.
    """
    module = load("dataset", kind)
    if source == "official" or not sources(module) or twins(module):
        return "there"
    if source == "twin":
        return "absent"
    if (raw / RECORD).is_file() and not superseded(kind, raw):
        return "absent" if json.loads((raw / RECORD).read_text(encoding="utf-8"))["origin"] == "absent" else "there"
    found = {reachable(files, raw) for files in choices(module)}
    if "there" in found or copies(kind, module, raw):
        return "there"
    return "undecided" if "undecided" in found else "absent"


def reachable(files: Iterable[Any], raw: Path) -> str:
    """The same of files that are needed together: at hand, to be had from an address, or neither."""
    elsewhere = "://" in os.environ.get(MIRROR, "")
    missing = [file for file in files if not any((folder / file.filename).is_file() for folder in folders(raw))]
    if not missing:
        return "there"
    return "undecided" if all(file.urls or elsewhere for file in missing) else "absent"


def superseded(kind: str, raw: Path) -> bool:
    """Return whether a dataset's manifest is of substituted or absent data, and better files have come to hand."""
    if not (raw / RECORD).is_file():
        return False
    manifest = json.loads((raw / RECORD).read_text(encoding="utf-8"))
    if (origin := manifest["origin"]) not in STAND_INS:
        return False
    module = load("dataset", kind)
    better = [file.filename for files in choices(module)[: None if origin == "absent" else 1] for file in files]
    used = {file["place"] for file in manifest.get("files", ())}
    images = any(str(path) not in used for path in copies(kind, module, raw))
    return images or any((folder / name).is_file() for folder in folders(raw) for name in better)


def main(environment: Mapping[str, str]) -> int:
    """1 where a dataset's standing is undecided."""
    source = environment.get("DATA_SOURCE") or "auto"
    kinds = [path.stem for path in Path(__file__).parents[1].joinpath("datasets").glob("*.py")]
    modules = [kind for kind in kinds if hasattr(load("dataset", kind), "prepare")]
    return int(any(standing(kind, source, RAW / kind) == "undecided" for kind in modules))


if __name__ == "__main__":
    sys.exit(main(os.environ))
