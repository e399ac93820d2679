"""Prepared data from verified raw files: what the prepare stage saves, for those who need it in memory."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from fairness_audits.seeds import generators
from fairness_audits.values import Dataset, ImageDataset
from pipeline import io
from pipeline.raw_data.source import fingerprint
from pipeline.values import MissingData
from pipeline.workflow import plugins
from pipeline.workflow.availability import without_files


def prepared(
    section: Mapping[str, Any], repetitions: int, manifest: Mapping[str, Any] | None
) -> Dataset | ImageDataset | MissingData:
    """The dataset that ``section`` configures, of the files in ``manifest``, split ``repetitions`` times.

    Data that need no files need no manifest.
    """
    kind = section.get("kind", section["name"])
    module = plugins.load("dataset", kind)
    manifest = manifest or without_files(kind, module)
    origin = manifest["origin"]
    config = plugins.configure(module, section)
    if origin == "absent":
        return MissingData(section["name"], manifest["reason"])
    files = manifest["files"]
    if origin == "twin":
        wanted = module.TWINS[getattr(config, "rows", "")]
        files = [file for file in files if Path(file["path"]).name in wanted]
        if len(files) < len(wanted):
            raise ValueError(f"the manifest does not list {' and '.join(wanted)}: delete it to have it written again")
    paths = [_unchanged(file) for file in files]
    rows: Any = None
    if origin == "twin":
        rows = pd.concat(map(io.load_rows, paths), ignore_index=True)
    elif origin == "bundled":
        rows = module.parse()
    elif origin != "simulated":
        # Where one of several files may be what was found, its name says how to read it.
        several = hasattr(module, "ALTERNATIVES") or hasattr(module, "recognised")
        rows = module.parse(paths[0].parent, *([paths[0].name] if several else []))
    dataset = module.prepare(rows, config, generators("prepare", kind, repetitions=repetitions), origin)
    # Nor did they change while they were read, which images are until the data are prepared.
    paths = [_unchanged(file) for file in files]
    # Images that are recognised by what they show are the same whatever file they came in.
    content = manifest.get("content")
    checksums = content or {path.name: file["sha256"] for path, file in zip(paths, files, strict=True)}
    return replace(dataset, name=section["name"], checksums=checksums)


def _unchanged(file: Mapping[str, Any]) -> Path:
    """The file's path, if it still holds what was verified when it was fetched."""
    path = Path(file["path"])
    if not path.exists():
        raise ValueError(f"{path} is missing, but was fetched before: delete the manifest beside it and run again")
    found, _ = fingerprint(path)
    if found != file["sha256"]:
        raise ValueError(
            f"{path} has changed since it was fetched: expected sha256 {file['sha256']}, found {found}. Restore it, or "
            "delete it and the dataset's manifest.json to have it fetched again"
        )
    return path
