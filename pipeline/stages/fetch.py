"""See that a dataset's raw files are at hand, verified, and write down where they came from: a manifest.

The manifest (JSON) holds ``dataset``, ``origin``, ``files`` (``path``, ``sha256``, ``size`` and ``place``, where each
came from) and ``reason`` (why the official files are not what is used, otherwise null). Origins are ``official``;
``jpeg``, a copy in its place; ``twin``; ``absent``, where the files of a dataset without a twin cannot be had;
and of datasets that need no files ``simulated`` or ``bundled``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline import io
from pipeline.datasets.download import TWIN, Unavailable, fetch
from pipeline.workflow import plugins, stage
from pipeline.workflow.availability import MIRROR, choices, optional, without_files

SOURCES = ("auto", "official", "twin")
TWINS = Path(__file__).resolve().parents[2] / "data" / "twins"
NOTHING = {
    "simulated": "nothing to fetch, it is drawn",
    "bundled": "nothing to fetch, it comes with a dependency",
    "absent": "what needs it is listed as not run",
}
WITHOUT = "go on without it (DATA_SOURCE=auto): what needs it is then listed as not run"


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch, write the manifest, say what happened in one line."""
    options = stage.options(
        __doc__,
        arguments,
        dataset={"help": "a dataset of conf/dataset"},
        source={"choices": SOURCES, "default": "auto", "help": "auto: official files, else what there is"},
        raw={"type": Path, "help": "folder of the dataset's raw files"},
        output={"type": Path, "help": "where the manifest goes (.json)"},
    )
    try:
        module = plugins.load("dataset", options.dataset)
        manifest = obtain(options.dataset, module, options.source, options.raw, os.environ.get(MIRROR))
    except (ValueError, OSError) as error:
        sys.exit(f"fetch {options.dataset}: {error}")
    if manifest["reason"] and options.source == "auto":
        print(_warning(manifest), file=sys.stderr, flush=True)
    io.save_json(manifest, options.output)
    places = ", ".join(file["place"] for file in manifest["files"]) or NOTHING[manifest["origin"]]
    print(f"{options.dataset}: {manifest['origin']} ({places})")


def obtain(name: str, module: ModuleType, source: str, raw: Path, mirror: str | None) -> dict[str, Any]:
    """The manifest of what ``source`` asks for.

    ``auto`` takes the official files, else those that the dataset names in their place, else its twin; a dataset that
    is optional and has no twin is absent. A *wrong* file is an error all the same. Images have no twin: ``twin`` makes
    them absent. Raises FetchError when the official files cannot be had, ValueError when a twin is asked for that is
    not.
    """
    if not module.SOURCES:
        return without_files(name, module)
    if source == "twin":
        return _stand_in(name, module, "asked for (DATA_SOURCE=twin)")
    missing = []
    for origin, sources in choices(module):
        if source == "official" and origin != "official":
            continue
        try:
            fetched = fetch(sources, raw, mirror, dataset=name, otherwise=WITHOUT if optional(module) else TWIN)
        except Unavailable as error:
            missing.append(str(error))
            continue
        files = [{"path": str(f.path), "sha256": f.sha256, "size": f.size, "place": f.place} for f in fetched]
        return _manifest(name, origin, files, None if origin == "official" else "\n".join(missing))
    reason = "\n".join(missing)
    if source == "official" or (module.TWIN is None and not optional(module)):
        raise Unavailable(reason)
    return _stand_in(name, module, reason)


def _stand_in(name: str, module: ModuleType, reason: str) -> dict[str, Any]:
    """The manifest of a dataset's twin, of the twins of its several selections of rows, or of its absence."""
    if optional(module):
        needed = "; or else of ".join(", ".join(file.filename for file in files) for _, files in choices(module))
        return _manifest(name, "absent", [], f"{name} has no twin and is made of {needed}.\n{reason}")
    if module.TWIN is None:
        raise ValueError(f"dataset {name!r} has no twin: use DATA_SOURCE=official")
    files = getattr(module, "TWINS", {"": module.TWIN}).values()
    return _manifest(name, "twin", [_twin(name, file) for file in files], reason)


def _twin(name: str, filename: str) -> dict[str, Any]:
    path = TWINS / filename
    if not path.is_file():
        raise ValueError(
            f"the twin's model {path} is missing: restore it from the repository, or fit it with "
            f"python -m pipeline.datasets.twins.fit {name} --raw <folder of the official files>"
        )
    content = path.read_bytes()
    file = {"path": os.path.relpath(path), "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return {**file, "place": f"data/twins/{filename}"}


def _manifest(name: str, origin: str, files: Sequence[Mapping[str, Any]], reason: str | None = None) -> dict[str, Any]:
    return {"dataset": name, "origin": origin, "files": list(files), "reason": reason}


def _warning(manifest: Mapping[str, Any]) -> str:
    line = "=" * 88
    name = manifest["dataset"]
    what = {
        "twin": f"{name} is a SYNTHETIC TWIN in this run, not the official data. Every number made from it\ndescribes "
        "the twin, and is marked so.",
        "absent": f"{name} is ABSENT in this run. What needs it is listed as not run.",
    }.get(
        manifest["origin"],
        f"{name} is a copy in this run ({manifest['origin']}), not the official data. Every number made from it is\n"
        "marked so.",
    )
    return f"{line}\nWARNING: {what}\n\n{manifest['reason']}\n{line}"


if __name__ == "__main__":
    main()
