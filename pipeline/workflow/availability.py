"""Availability of the raw files of data sets before anything is fetched.

``python -m pipeline.workflow.availability`` exits with status 2 if only a download can tell whether data are available.
`make reproduce` then fetches first and plans the rest without the data that are unavailable.
"""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.files import load_json
from pipeline.workflow.plugins import load

RAW = Path("data/raw")
RECORD = "manifest.json"
MIRROR = "DATA_MIRROR"
WAIT = 20
"""Seconds to wait for the answer of a mirror."""
DATA_SOURCES = ("auto", "official", "twin")
"""Values of ``DATA_SOURCE``."""
SUBSTITUTES = ("twin", "absent", "re-encoded")
"""Origins that are replaced as soon as published files are available."""
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


def sources(module: ModuleType) -> Sequence[Any]:
    """Return the official files of a data set. Simulated and bundled data have none."""
    return getattr(module, "SOURCES", ())


def choices(module: ModuleType) -> list[Sequence[Any]]:
    """Return the official files, followed by alternatives with the same content."""
    return [module.SOURCES, *((file,) for file in getattr(module, "ALTERNATIVES", ()))]


def twins(module: ModuleType) -> Mapping[str, Sequence[str]]:
    """Return the twin files for each selection of rows."""
    return getattr(module, "TWINS", {})


def copies(kind: str, module: ModuleType, raw: Path) -> list[Path]:
    """Return archives and folders, other than the official files, that may hold the images of a data set.

    In the raw folder of the data set and in its folder of the mirror they may have any name, or be the folder itself.
    Elsewhere in the mirror their names start with the name of the data set.
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
    """Return whether a data set needs raw files. Simulated and bundled data do not."""
    return bool(sources(load("dataset", kind)))


def manifest_without_files(kind: str, module: ModuleType) -> dict[str, Any]:
    """Return the manifest of a data set that needs no files."""
    return {"dataset": kind, "origin": getattr(module, "ORIGIN", "simulated"), "files": [], "reason": None}


def folders(raw: Path) -> list[Path]:
    """Return the folders to search: the raw folder, and the mirror if it is a folder."""
    mirror = os.environ.get(MIRROR, "")
    return [raw, *([Path(mirror) / raw.name, Path(mirror)] if mirror and "://" not in mirror else [])]


def check_mirror(environment: Mapping[str, str], source: str) -> None:
    """Raise InvalidInput if the mirror does not exist. Otherwise a misspelt name would give twins for official data."""
    mirror = environment.get(MIRROR, "")
    if not mirror or source == "twin":
        return
    problem = "" if "://" in mirror or Path(mirror).is_dir() else "there is no such folder"
    if "://" in mirror:
        import requests

        try:
            # Any answer will do: an address can have the files without a page of its own.
            requests.head(mirror, timeout=WAIT)
        except requests.RequestException as error:
            problem = f"the address does not answer ({type(error).__name__})"
    if problem:
        remedy = f"Correct {MIRROR}, or unset it to do without a mirror"
        raise InvalidInput(f"{MIRROR}={mirror}: {problem}", source=mirror, option=MIRROR, remedy=remedy)


def status(kind: str, source: str, raw: Path) -> str:
    """Return ``"there"``, ``"absent"``, or ``"undecided"`` if only a download can tell.

    ``source`` is auto, official or twin. ``raw`` is the raw folder. Its manifest decides unless better files are now
    available. A data set that is required or has a twin counts as there; fetching reports an error otherwise.
    """
    module = load("dataset", kind)
    if source == "official" or not sources(module) or twins(module):
        return "there"
    if source == "twin":
        return "absent"
    if (manifest := recorded(raw)) and not superseded(kind, raw):
        return "absent" if manifest["origin"] == "absent" else "there"
    found = {reachable(files, raw) for files in choices(module)}
    if "there" in found or copies(kind, module, raw):
        return "there"
    return "undecided" if "undecided" in found else "absent"


def reachable(files: Iterable[Any], raw: Path) -> str:
    """Return ``"there"``, ``"undecided"`` or ``"absent"`` for files that are needed together."""
    elsewhere = "://" in os.environ.get(MIRROR, "")
    missing = [file for file in files if not any((folder / file.filename).is_file() for folder in folders(raw))]
    if not missing:
        return "there"
    return "undecided" if all(file.urls or elsewhere for file in missing) else "absent"


def recorded(raw: Path) -> dict[str, Any]:
    """Return the manifest of the raw files; empty if there is none."""
    return dict(load_json(raw / RECORD)) if (raw / RECORD).is_file() else {}


def replaced(raw: Path) -> int:
    """Return how often better files have replaced what the manifest records."""
    return int(recorded(raw).get("replaced", 0))


def superseded(kind: str, raw: Path) -> bool:
    """Return whether the manifest records a substitute or missing data, and better files are now available."""
    manifest = recorded(raw)
    if (origin := manifest.get("origin")) not in SUBSTITUTES:
        return False
    module = load("dataset", kind)
    better = [file.filename for files in choices(module)[: None if origin == "absent" else 1] for file in files]
    used = {file["place"] for file in manifest.get("files", ())}
    images = any(str(path) not in used for path in copies(kind, module, raw))
    return images or any((folder / name).is_file() for folder in folders(raw) for name in better)


def main(environment: Mapping[str, str]) -> int:
    """Return 2 if the status of a data set is undecided, otherwise 0. Exit with status 1 for a wrong mirror."""
    source = environment.get("DATA_SOURCE") or "auto"
    try:
        check_mirror(environment, source)
    except InvalidInput as error:
        sys.exit(str(error))
    kinds = [path.stem for path in Path(__file__).parents[1].joinpath("datasets").glob("*.py")]
    modules = [kind for kind in kinds if hasattr(load("dataset", kind), "prepare")]
    return 2 * any(status(kind, source, RAW / kind) == "undecided" for kind in modules)


if __name__ == "__main__":
    sys.exit(main(os.environ))
