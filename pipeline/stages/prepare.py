"""Turn verified raw files, or a sampled twin, into prepared arrays with their splits: ``files -> Dataset``.

Of images: ``files -> ImageDataset``; and :class:`pipeline.types.Absent`, with the reason, where there are no files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline import io, plugins
from pipeline.datasets.twins import kinds
from pipeline.seeds import generators
from pipeline.types import Absent, Dataset, ImageDataset

LISTED = 20
"""So many names of unreadable files are printed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read what the manifest names, prepare, save, say what was made in one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="JSON: the resolved dataset and the number of repetitions")
    parser.add_argument("--manifest", required=True, help="what the fetch stage wrote (.json)")
    parser.add_argument("--output", required=True, help="where the prepared dataset goes (.npz)")
    options = parser.parse_args(arguments)
    config = json.loads(options.config)
    try:
        dataset = prepared(config["dataset"], config["repetitions"], io.load_json(options.manifest))
    except (ValueError, OSError) as error:
        sys.exit(f"prepare {config['dataset']['name']}: {error}")
    if isinstance(dataset, Absent):
        io.save_absent(dataset, options.output)
        print(f"{dataset.name} is absent: what needs it is listed as not run.\n{dataset.reason}")
        return
    io.save_dataset(dataset, options.output)
    print(_line(dataset) if isinstance(dataset, Dataset) else _line_of_images(dataset))


def prepared(
    section: Mapping[str, Any], repetitions: int, manifest: Mapping[str, Any]
) -> Dataset | ImageDataset | Absent:
    """The dataset that ``section`` configures, of the files in ``manifest``, split ``repetitions`` times."""
    kind, origin = section.get("kind", section["name"]), manifest["origin"]
    if manifest["dataset"] != kind:
        raise ValueError(
            f"the manifest is of {manifest['dataset']!r}, expected {kind!r}: give the manifest of {kind!r}"
        )
    module = plugins.load("dataset", kind)
    config = plugins.configure(module, section)
    if origin == "absent":
        return Absent(section["name"], manifest["reason"])
    files = manifest["files"]
    if origin == "twin" and hasattr(module, "TWINS"):
        wanted = module.TWINS[config.rows]
        files = [file for file in files if Path(file["path"]).name == wanted]
        if not files:
            raise ValueError(f"the manifest does not list the twin {wanted}: delete it to have it written again")
    paths = [_unchanged(file) for file in files]
    rows: Any = None
    if origin == "twin":
        rows = kinds.sampled(io.load_json(paths[0]), generators("twin", kind, repetitions=1)[0])
    elif origin == "bundled":
        rows = module.parse()
    elif origin != "simulated":
        # Where one of several files may be what was found, its name says how to read it.
        rows = module.parse(paths[0].parent, *([paths[0].name] if hasattr(module, "ALTERNATIVES") else []))
    dataset = module.prepare(rows, config, generators("prepare", kind, repetitions=repetitions), origin)
    checksums = {path.name: file["sha256"] for path, file in zip(paths, files, strict=True)}
    return replace(dataset, name=section["name"], checksums=checksums)


def _unchanged(file: Mapping[str, Any]) -> Path:
    """The file's path, if it still holds what was verified when it was fetched."""
    path = Path(file["path"])
    if not path.is_file():
        raise ValueError(f"{path} is missing, but was fetched before: delete the manifest beside it and run again")
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if found != file["sha256"]:
        raise ValueError(
            f"{path} has changed since it was fetched: expected sha256 {file['sha256']}, found {found}. Restore it, or "
            "delete it and the dataset's manifest.json to have it fetched again"
        )
    return path


def _line(dataset: Dataset) -> str:
    n, d = dataset.features.shape
    dropped = "; ".join(f"{count:,} {reason}" for reason, count in dataset.dropped.items()) or "none"
    return (
        f"{dataset.name} ({dataset.origin}): {n:,} rows of {d} features, {dataset.repetitions} splits of "
        f"{dataset.train.shape[1]:,} to train and {dataset.test.shape[1]:,} to test; rows dropped: {dropped}"
    )


def _line_of_images(dataset: ImageDataset) -> str:
    n, channels, height, width = dataset.images.shape
    dropped = "; ".join(f"{count:,} {reason}" for reason, count in dataset.dropped.items()) or "none"
    odd = dataset.unreadable
    more = [f"  ... and {len(odd) - LISTED:,} more"] if len(odd) > LISTED else []
    listed = [f"unreadable or odd, {len(odd):,}:", *(f"  {name}" for name in odd[:LISTED]), *more] if odd else []
    first = (
        f"{dataset.name} ({dataset.origin}): {n:,} images of {channels} x {height} x {width} in "
        f"{len(dataset.classes)} classes, {dataset.train.shape[1]:,} to train and {dataset.test.shape[1]:,} to test; "
        f"dropped: {dropped}"
    )
    return "\n".join([first, *listed])


if __name__ == "__main__":
    main()
