"""Prepare the arrays and splits of a data set from verified raw files or a twin: ``files -> Dataset``.

The result is an ``ImageDataset`` for images, and :class:`pipeline.values.MissingData` with the reason if there are no
files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.files import load_json
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset, ImageDataset
from pipeline import io
from pipeline.raw_data.source import fingerprint
from pipeline.raw_data.tabular import folded
from pipeline.values import MissingData
from pipeline.workflow import plugins
from pipeline.workflow.availability import manifest_without_files

LISTED = 20
"""Largest number of unreadable files that are listed by name."""


def make(
    config: Mapping[str, Any], inputs: Mapping[str, Sequence[str]], _resume: object = None
) -> Dataset | ImageDataset | MissingData:
    """Return the data set. Data that need no files have no manifest among the ``inputs``."""
    manifest = load_json(*inputs["manifest"]) if inputs["manifest"] else None
    dataset = prepared(config["dataset"], config["repetitions"], manifest)
    if isinstance(dataset, MissingData):
        print(f"{dataset.name} is missing. Its audits are listed as not run.\n{dataset.reason}")
    else:
        print("\n".join(_lines(dataset)))
    return dataset


def prepared(
    section: Mapping[str, Any], repetitions: int, manifest: Mapping[str, Any] | None
) -> Dataset | ImageDataset | MissingData:
    """Return the data set of ``section`` from the files in ``manifest``, with ``repetitions`` splits.

    The manifest is None for data that need no files.
    """
    kind = section.get("kind", section["name"])
    module = plugins.load("dataset", kind)
    manifest = manifest or manifest_without_files(kind, module)
    origin = manifest["origin"]
    config = plugins.configure(module, section)
    if origin == "absent":
        return MissingData(section["name"], manifest["reason"])
    files = manifest["files"]
    if origin == "twin":
        wanted = module.TWINS[getattr(config, "rows", "")]
        files = [file for file in files if Path(file["path"]).name in wanted]
        if len(files) < len(wanted):
            raise InvalidInput(
                f"The manifest does not list {' and '.join(wanted)}", remedy="Delete the manifest and run again"
            )
    paths = [_unchanged(file) for file in files]
    rows: Any = None
    if origin == "twin":
        import pandas as pd

        rows = pd.concat(map(io.load_rows, paths), ignore_index=True)
    elif origin == "bundled":
        rows = module.parse()
    elif origin != "simulated":
        # If several files are possible, the name of the file determines how to read it.
        several = hasattr(module, "ALTERNATIVES") or hasattr(module, "recognised")
        rows = module.parse(paths[0].parent, *([paths[0].name] if several else []))
    first = getattr(config, "first_repetition", 0)
    trainings, folds = getattr(config, "trainings", 1), getattr(config, "folds", 1)
    rngs = generators("prepare", kind, repetitions=-(-repetitions // (trainings * folds)), first=first)
    dataset = module.prepare(rows, config, rngs, origin)
    if trainings * folds > 1:
        sides = folded(dataset.train, dataset.test, folds) if folds > 1 else (dataset.train, dataset.test)
        train, test = (np.repeat(side, trainings, axis=0)[:repetitions] for side in sides)
        dataset = replace(dataset, train=train, test=test)
    check(dataset)
    # Check again: the files must not have changed while they were read.
    paths = [_unchanged(file) for file in files]
    # Images that are identified by their pixels have the same checksums in every file format.
    content = manifest.get("content")
    checksums = content or {path.name: file["sha256"] for path, file in zip(paths, files, strict=True)}
    return replace(dataset, name=section["name"], checksums=checksums, first_repetition=first)


def check(dataset: Dataset | ImageDataset) -> None:
    """Raise InvalidInput for splits whose training and test rows overlap, and for features of the same name.

    A data set may have the same training and test rows: studies of all people, and of simulated data, hold nothing out.
    """
    for repetition, (train, test) in enumerate(zip(dataset.train, dataset.test, strict=True)):
        both = np.intersect1d(train, test)
        if len(both) and not np.array_equal(np.sort(train), np.sort(test)):
            problem = f"Split {repetition} of {dataset.name!r} trains and tests on the same {len(both):,} rows"
            remedy = "Make the training and test rows of each split disjoint, or all the same"
            raise InvalidInput(
                f"{problem} (first: row {both[0]})", source=dataset.name, row=int(both[0]), remedy=remedy
            )
    names = dataset.feature_names if isinstance(dataset, Dataset) else ()
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problem = f"{dataset.name!r} has several features of the name {', '.join(map(repr, twice))}"
        raise InvalidInput(problem, source=dataset.name, column=twice[0], remedy="Give each feature its own name")


def _unchanged(file: Mapping[str, Any]) -> Path:
    """Return the path of a file. Raises InvalidInput if the file has changed since it was fetched."""
    path = Path(file["path"])
    if not path.exists():
        problem = f"{path} is missing but was fetched before"
        raise InvalidInput(problem, source=path, remedy="Delete manifest.json of the data set and run again")
    found, _ = fingerprint(path)
    if found != file["sha256"]:
        problem = f"{path} has changed since it was fetched: expected sha256 {file['sha256']}, found {found}"
        remedy = "Restore it, or delete it and manifest.json of the data set to fetch it again"
        raise InvalidInput(problem, source=path, remedy=remedy)
    return path


def _lines(dataset: Dataset | ImageDataset) -> list[str]:
    of = f"{dataset.name} ({dataset.origin}):"
    parts = f"{dataset.train.shape[1]:,} to train and {dataset.test.shape[1]:,} to test;"
    dropped = "; ".join(f"{count:,} {reason}" for reason, count in dataset.dropped.items()) or "none"
    if isinstance(dataset, Dataset):
        n, d = dataset.features.shape
        return [f"{of} {n:,} rows of {d} features, {dataset.repetitions} splits of {parts} rows dropped: {dropped}"]
    n, channels, height, width = dataset.images.shape
    shape = f"{n:,} images of {channels} x {height} x {width} in {len(dataset.classes)} classes"
    odd = dataset.unreadable
    more = [f"  ... and {len(odd) - LISTED:,} more"] if len(odd) > LISTED else []
    listed = [f"unreadable or odd, {len(odd):,}:", *(f"  {name}" for name in odd[:LISTED]), *more] if odd else []
    return [f"{of} {shape}, {parts} dropped: {dropped}", *listed]
