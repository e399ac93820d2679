"""Fetch and verify the raw files of a data set and write a manifest of their provenance.

The manifest is JSON with the keys

- ``dataset``;
- ``origin``: ``official``, ``re-encoded`` (images), ``twin``, ``absent`` (no files and no twin),
  ``simulated`` or ``bundled`` (no files needed);
- ``files``: ``path``, ``sha256``, ``size`` and ``place`` (the source) of each file;
- ``reason``: why the official files are not used, or null;
- ``replaced``: how often better files have replaced those of an earlier manifest;
- ``content``, only for images that are identified by their pixels: the digest of each split.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.files import save_json
from pipeline.raw_data.download import TWIN, fetch
from pipeline.raw_data.source import Unavailable, fingerprint
from pipeline.workflow import plugins, stage
from pipeline.workflow.availability import (
    DATA_SOURCES,
    MIRROR,
    choices,
    copies,
    manifest_without_files,
    reachable,
    sources,
    twins,
)

TWINS = Path(__file__).resolve().parents[2] / "data" / "twins"
NOTHING = {
    "simulated": "nothing to fetch: simulated",
    "bundled": "nothing to fetch: part of a dependency",
    "absent": "its audits are listed as not run",
}
WITHOUT = "continue without it (DATA_SOURCE=auto): its audits are then listed as not run"


def main(arguments: Sequence[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        dataset={"help": "name of a module in pipeline/datasets"},
        source={"choices": DATA_SOURCES, "default": "auto", "help": "auto: official files or a substitute"},
        replaced={"type": int, "default": 0, "help": "how often better files have replaced these"},
        raw={"type": Path, "help": "folder of the raw files"},
        output={"type": Path, "help": "file for the manifest (.json)"},
    )
    try:
        module = plugins.load("dataset", options.dataset)
        manifest = obtain(options.dataset, module, options.source, options.raw, os.environ.get(MIRROR))
    except (ValueError, OSError) as error:
        sys.exit(f"fetch {options.dataset}: {error}")
    if manifest["reason"] and options.source == "auto":
        print(_warning(manifest), file=sys.stderr, flush=True)
    save_json({**manifest, "replaced": options.replaced} if options.replaced else manifest, options.output)
    places = ", ".join(file["place"] for file in manifest["files"]) or NOTHING[manifest["origin"]]
    print(f"{options.dataset}: {manifest['origin']} ({places})")


def obtain(name: str, module: ModuleType, source: str, raw: Path, mirror: str | None) -> dict[str, Any]:
    """Fetch the files of a data set from ``source`` and return the manifest.

    ``auto`` takes the official files, then image files with the same content, then a re-encoded copy, then the twin. A
    data set without a twin is then absent, also with the source ``twin``. A *wrong* file is always an error. Raises
    Unavailable if the source is ``official`` and its files are unavailable.
    """
    if not sources(module):
        return manifest_without_files(name, module)
    if source == "twin":
        return _stand_in(name, module, "asked for (DATA_SOURCE=twin)")
    copy = None if reachable(module.SOURCES, raw) == "there" else _copied(name, module, raw)
    if copy is not None and copy["origin"] == "official":
        return copy
    missing = []
    for wanted in choices(module):
        try:
            fetched = fetch(wanted, raw, mirror, dataset=name, otherwise=TWIN if twins(module) else WITHOUT)
        except Unavailable as error:
            missing.append(str(error))
            continue
        files = [{"path": str(f.path), "sha256": f.sha256, "size": f.size, "place": f.place} for f in fetched]
        recognised = module.recognised(fetched[0].path) if hasattr(module, "recognised") else None
        return _manifest(name, "official", files, content=recognised and recognised[1])
    reason = "\n".join(missing)
    if source == "official":
        raise Unavailable(reason)
    return _stand_in(name, module, reason) if copy is None else {**copy, "reason": reason}


def _copied(name: str, module: ModuleType, raw: Path) -> dict[str, Any] | None:
    """Return the manifest of the best archive or folder with the images, used in place, or None if there is none."""
    best = None
    for path in copies(name, module, raw):
        if (recognised := module.recognised(path)) is None:
            continue
        origin, content = recognised
        if best is None or origin == "official":
            sha256, size = fingerprint(path)
            file = {"path": str(path), "sha256": sha256, "size": size, "place": str(path)}
            best = _manifest(name, origin, [file], content=content)
        if origin == "official":
            break
    return best


def _stand_in(name: str, module: ModuleType, reason: str) -> dict[str, Any]:
    """Return the manifest of the twins of all selections of rows of a data set, or of its absence."""
    if files := [file for part in twins(module).values() for file in part]:
        return _manifest(name, "twin", [_twin(file) for file in files], reason)
    needed = "; or else of ".join(", ".join(file.filename for file in files) for files in choices(module))
    return _manifest(name, "absent", [], f"{name} has no twin and is made of {needed}.\n{reason}")


def _twin(filename: str) -> dict[str, Any]:
    path = TWINS / filename
    if not path.is_file():
        raise InvalidInput(f"{path} is missing", source=path, remedy="Restore it from the repository")
    sha256, size = fingerprint(path)
    return {"path": os.path.relpath(path), "sha256": sha256, "size": size, "place": f"data/twins/{filename}"}


def _manifest(
    name: str,
    origin: str,
    files: Sequence[Mapping[str, Any]],
    reason: str | None = None,
    content: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    manifest = {"dataset": name, "origin": origin, "files": list(files), "reason": reason}
    return {**manifest, "content": content} if content else manifest


def _warning(manifest: Mapping[str, Any]) -> str:
    line = "=" * 88
    name = manifest["dataset"]
    what = {
        "twin": f"{name} is a SYNTHETIC TWIN in this run, not the official data. All numbers from it\ndescribe "
        "the twin and are marked.",
        "absent": f"{name} is MISSING in this run. Its audits are listed as not run.",
    }.get(
        manifest["origin"],
        f"{name} is a {manifest['origin']} copy in this run, not the official data. All numbers from it\nare marked.",
    )
    return f"{line}\nWARNING: {what}\n\n{manifest['reason']}\n{line}"


if __name__ == "__main__":
    main()
