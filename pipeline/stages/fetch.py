"""See that a dataset's raw files are at hand, verified, and write down where they came from: a manifest.

The manifest (JSON) holds ``dataset``, ``origin`` (``official``, ``twin`` or ``simulated``), ``files`` (``path``,
``sha256``, ``size`` and ``place``, where each came from) and ``reason`` (why a twin stands in, otherwise null).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline import io, plugins
from pipeline.datasets.download import Unavailable, fetch

SOURCES = ("auto", "official", "twin")
TWINS = Path(__file__).resolve().parents[2] / "data" / "twins"
MIRROR = "DATA_MIRROR"


def main(arguments: Sequence[str] | None = None) -> None:
    """Fetch, write the manifest, say what happened in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", required=True, help="a dataset of conf/dataset")
    parser.add_argument("--source", choices=SOURCES, default="auto", help="auto: official files, else the twin")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the dataset's raw files")
    parser.add_argument("--output", type=Path, required=True, help="where the manifest goes (.json)")
    options = parser.parse_args(arguments)
    try:
        module = plugins.load("dataset", options.dataset)
        manifest = obtain(options.dataset, module, options.source, options.raw, os.environ.get(MIRROR))
    except (ValueError, OSError) as error:
        sys.exit(f"fetch {options.dataset}: {error}")
    if manifest["origin"] == "twin" and options.source == "auto":
        print(_warning(manifest), file=sys.stderr, flush=True)
    io.save_json(manifest, options.output)
    places = ", ".join(file["place"] for file in manifest["files"]) or "nothing to fetch, it is drawn"
    print(f"{options.dataset}: {manifest['origin']} ({places})")


def obtain(name: str, module: ModuleType, source: str, raw: Path, mirror: str | None) -> dict[str, Any]:
    """The manifest of what ``source`` asks for.

    ``auto`` falls back to the twin when nobody has the official files; a *wrong* official file is an error all the
    same. Raises FetchError when the official files cannot be had, ValueError when a twin is asked for that is not.
    """
    if not module.SOURCES:
        return _manifest(name, "simulated", [])
    if source == "twin":
        return _twins(name, module, "asked for (DATA_SOURCE=twin)")
    try:
        fetched = fetch(module.SOURCES, raw, mirror, dataset=name)
    except Unavailable as error:
        if source == "official" or module.TWIN is None:
            raise
        return _twins(name, module, str(error))
    files = [{"path": str(f.path), "sha256": f.sha256, "size": f.size, "place": f.place} for f in fetched]
    return _manifest(name, "official", files)


def _twins(name: str, module: ModuleType, reason: str) -> dict[str, Any]:
    """The manifest of a dataset's twin, or of the twins of its several selections of rows."""
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
    return (
        f"{line}\nWARNING: {manifest['dataset']} is a SYNTHETIC TWIN in this run, not the official data. Every number "
        f"made from it\ndescribes the twin, and is marked so.\n\n{manifest['reason']}\n{line}"
    )


if __name__ == "__main__":
    main()
