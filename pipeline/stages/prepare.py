"""Turn verified raw files, or a sampled twin, into prepared arrays with their splits: ``files -> Dataset``."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import io, plugins
from pipeline.datasets.twins import model
from pipeline.seeds import generators
from pipeline.types import Dataset

if TYPE_CHECKING:
    import pandas as pd


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
    io.save_dataset(dataset, options.output)
    print(_line(dataset))


def prepared(section: Mapping[str, Any], repetitions: int, manifest: Mapping[str, Any]) -> Dataset:
    """The dataset that ``section`` configures, of the files in ``manifest``, split ``repetitions`` times."""
    kind, origin = section.get("kind", section["name"]), manifest["origin"]
    if manifest["dataset"] != kind:
        raise ValueError(
            f"the manifest is of {manifest['dataset']!r}, expected {kind!r}: give the manifest of {kind!r}"
        )
    module = plugins.load("dataset", kind)
    config = plugins.configure(module, section)
    files = manifest["files"]
    if origin == "twin" and hasattr(module, "TWINS"):
        wanted = module.TWINS[config.rows]
        files = [file for file in files if Path(file["path"]).name == wanted]
        if not files:
            raise ValueError(f"the manifest does not list the twin {wanted}: delete it to have it written again")
    paths = [_unchanged(file) for file in files]
    rows: pd.DataFrame | None = None
    if origin == "twin":
        twin = model.from_json(io.load_json(paths[0]))
        rows = model.sample(twin, twin.rows, generators("twin", kind, repetitions=1)[0])
    elif origin == "official":
        rows = module.parse(paths[0].parent)
    dataset = module.prepare(rows, config, generators("prepare", kind, repetitions=repetitions), origin)
    checksums = {path.name: file["sha256"] for path, file in zip(paths, files, strict=True)}
    return replace(dataset, name=section["name"], checksums=checksums)


def _unchanged(file: Mapping[str, Any]) -> Path:
    """The file's path, if it still holds what was verified when it was fetched."""
    path = Path(file["path"])
    if not path.is_file():
        raise ValueError(f"{path} is missing, but was fetched before: delete the manifest beside it and run again")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
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


if __name__ == "__main__":
    main()
