"""References on disk: ``data/reference/<study>/``, in files of at most one megabyte.

- ``manifest.json``: provenance, see :func:`pipeline.stages.record.manifest_of`.
- ``config.json.gz``: the resolved configuration of every point.
- ``rows/<block>.parquet`` or ``rows/<block>_1.parquet``, ...: the tidy rows of a block.
- ``datasets_1.zip``, ``classifiers_1.zip``, ``audits_1.zip``, ...: files of :mod:`pipeline.io`. Data sets are stored as
  summaries.
"""

from __future__ import annotations

import gzip
import json
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.files import load_json, save_json, written
from fairness_audits.values import Classifier
from pipeline import io
from pipeline.report.inputs import Inputs, as_text
from pipeline.values import DatasetSummary

LIMIT = 1_000_000
"""Largest size of a file in bytes."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Date of all members of an archive, so that the same values give the same bytes."""


def save_reference(inputs: Inputs, manifest: Mapping[str, Any], folder: Path | str) -> None:
    """Replace the reference of a study. The manifest is written last.

    Raises InvalidInput for a value that is larger than a file.
    """
    folder = Path(folder)
    (folder / "manifest.json").unlink(missing_ok=True)
    _save_rows(inputs.rows, folder / "rows")
    _save_archives(inputs.datasets, folder / "datasets")
    _save_archives(inputs.classifiers, folder / "classifiers")
    _save_archives(inputs.audits, folder / "audits")
    with written(folder / "config.json.gz") as temporary:
        temporary.write_bytes(gzip.compress(json.dumps(inputs.config).encode(), mtime=0))
    save_json(manifest, folder / "manifest.json")


def load_reference(folder: Path | str) -> tuple[Inputs, dict[str, Any]]:
    """Load the reference of a study and its manifest. Raises InvalidInput if there is none."""
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        problem = f"{folder} holds no reference"
        remedy = f"Make one from a complete run with `make reference STUDY={folder.name}`"
        raise InvalidInput(problem, source=folder, remedy=remedy)
    manifest = load_json(folder / "manifest.json")
    config = json.loads(gzip.decompress((folder / "config.json.gz").read_bytes()))
    inputs = Inputs(
        study=manifest["study"],
        scale=config["scale"]["name"],
        rows=pd.concat(map(io.load_rows, sorted((folder / "rows").glob("*.parquet"))), ignore_index=True),
        config=config,
        datasets=_load_archives(folder / "datasets", lambda path: io.load(path, DatasetSummary)),
        classifiers=_load_archives(folder / "classifiers", lambda path: io.load(path, Classifier)),
        audits=_load_archives(folder / "audits", io.load_audit),
    )
    return inputs, manifest


def _save_rows(rows: pd.DataFrame, folder: Path) -> None:
    for old in folder.glob("*.parquet"):
        old.unlink()
    for block, part in as_text(rows).groupby("block", sort=True):
        # Sorted columns: the file of a block does not depend on the blocks beside it.
        known, pieces = part.dropna(axis=1, how="all").sort_index(axis=1), 1
        while max(map(len, files := _parquets(known, pieces))) > LIMIT:
            pieces += 1
        for number, content in enumerate(files, start=1):
            with written(folder / (f"{block}_{number}.parquet" if pieces > 1 else f"{block}.parquet")) as temporary:
                temporary.write_bytes(content)


def _parquets(rows: pd.DataFrame, pieces: int) -> list[bytes]:
    """Return the rows split into ``pieces`` Parquet files, as bytes."""
    ends = [len(rows) * piece // pieces for piece in range(pieces + 1)]
    parts = (rows.iloc[start:end] for start, end in pairwise(ends))
    return [part.to_parquet(None, index=False, compression="zstd", compression_level=9) for part in parts]


def _save_archives(values: Mapping[str, Any], stem: Path) -> None:
    """Write archives ``stem``_1.zip, ``stem``_2.zip, ... in the order of the values, each as full as possible."""
    for old in stem.parent.glob(f"{stem.name}_*.zip"):
        old.unlink()
    archives: list[list[tuple[str, bytes]]] = [[]]
    with tempfile.TemporaryDirectory() as temporary:
        for number, (key, value) in enumerate(values.items()):
            path = Path(temporary, f"{number}.npz")
            io.save(value, path)
            content = path.read_bytes()
            # An archive stores the name of each member twice, with a few hundred bytes of metadata.
            if archives[-1] and sum(len(c) + 2 * len(k) + 300 for k, c in [*archives[-1], (key, content)]) > LIMIT:
                archives.append([])
            archives[-1].append((key, content))
    for number, members in enumerate(filter(None, archives), start=1):
        path = stem.with_name(f"{stem.name}_{number}.zip")
        with written(path) as temporary_path, zipfile.ZipFile(temporary_path, "w") as archive:
            for key, content in members:
                archive.writestr(zipfile.ZipInfo(f"{key}.npz", DATE), content)
        if path.stat().st_size > LIMIT:
            problem = f"{path} has {path.stat().st_size:,} bytes, expected at most {LIMIT:,}"
            raise InvalidInput(problem, source=path, remedy="Record fewer values")


def _load_archives(stem: Path, load: Callable[[Path], Any]) -> dict[str, Any]:
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for path in sorted(stem.parent.glob(f"{stem.name}_*.zip")):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    extracted = Path(temporary, "value.npz")
                    extracted.write_bytes(archive.read(name))
                    found[name.removesuffix(".npz")] = load(extracted)
    return found


def save_list(found: pd.DataFrame, study: str, path: Path | str) -> None:
    """Replace the verdicts or claims of a study in the list of all studies, with ten significant digits."""
    path = Path(path)
    own = found.assign(study=study)
    others = load_list(path).query("study != @study") if path.is_file() else own.iloc[:0]
    # Omit empty lists, whose columns have no numeric type.
    parts = [part for part in (others, own) if len(part)] or [own]
    every = pd.concat(parts, ignore_index=True)[["study", *found.columns]]
    with written(path) as temporary:
        every.sort_values("study", kind="stable").to_csv(temporary, index=False, float_format="%.10g")


def load_list(path: Path | str) -> pd.DataFrame:
    """Load the verdicts or the claims of all references."""
    texts = ("row", "column", "settings", "changed", "differs_before")
    found = pd.read_csv(path, dtype=dict.fromkeys(texts, str))
    return found.assign(**{name: found[name].fillna("") for name in texts[2:] if name in found})
