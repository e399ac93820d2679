"""References on disk: ``data/reference/<study>/``, many small values in few files of at most a megabyte.

- ``manifest.json``: where the numbers come from, see :func:`pipeline.stages.artefacts.manifest_of`.
- ``config.json.gz``: the resolved configuration of every point.
- ``rows/<block>.parquet``, or ``rows/<block>_1.parquet`` and so on: the tidy rows of a block.
- ``datasets_1.zip``, ``classifiers_1.zip``, ``audits_1.zip``, and ``_2`` and so on: what :mod:`pipeline.io` writes, of
  data sets their description.
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

from fairness_audits.files import load_json, save_json, written
from fairness_audits.values import Classifier
from pipeline import io
from pipeline.report.inputs import Inputs, as_text
from pipeline.values import DatasetSummary

SECTIONS = ("sections", "published")
LIMIT = 1_000_000
"""Bytes of a file."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Of every member of an archive: the same values give the same bytes."""


def save_reference(inputs: Inputs, manifest: Mapping[str, Any], folder: Path | str) -> None:
    """Write a study's reference in place of an earlier one, the manifest last.

    Raises ValueError for a single value that does not fit into a file.
    """
    folder = Path(folder)
    (folder / "manifest.json").unlink(missing_ok=True)
    _save_rows(inputs.rows, folder / "rows")
    _save_shelf(inputs.datasets, folder / "datasets")
    _save_shelf(inputs.classifiers, folder / "classifiers")
    _save_shelf(inputs.audits, folder / "audits")
    with written(folder / "config.json.gz") as temporary:
        temporary.write_bytes(gzip.compress(json.dumps(inputs.config).encode(), mtime=0))
    save_json(manifest, folder / "manifest.json")


def load_reference(folder: Path | str) -> tuple[Inputs, dict[str, Any]]:
    """A study's reference and its manifest. Raises ValueError where there is none."""
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        raise ValueError(f"{folder} holds no reference: make one of a finished run, make reference STUDY={folder.name}")
    manifest = load_json(folder / "manifest.json")
    config = json.loads(gzip.decompress((folder / "config.json.gz").read_bytes()))
    config |= {name: {path: _with_id(path, one) for path, one in config[name].items()} for name in SECTIONS}
    inputs = Inputs(
        study=manifest["study"],
        scale=config["scale"]["name"],
        rows=pd.concat([io.load_rows(path) for path in sorted((folder / "rows").glob("*.parquet"))], ignore_index=True),
        config=config,
        datasets=_load_shelf(folder / "datasets", lambda path: io.load(path, DatasetSummary)),
        classifiers=_load_shelf(folder / "classifiers", lambda path: io.load(path, Classifier)),
        audits=_load_shelf(folder / "audits", io.load_audit),
    )
    return inputs, manifest


def _with_id(path: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """Add the id of a point to its section: in references from before points had ids, only the path has it."""
    names = path.removesuffix(".npz").split("/")[-4:]
    models = [setting.removeprefix("model=") for setting in names[2].split("@") if setting.startswith("model=")]
    part = "/".join([names[0], names[1].split("@")[0], *models])
    return {"id": names, "part": part, "map": names[3].partition("+")[2], **section}


def _save_rows(rows: pd.DataFrame, folder: Path) -> None:
    for old in folder.glob("*.parquet"):
        old.unlink()
    for block, part in as_text(rows).groupby("block", sort=True):
        known, pieces = part.dropna(axis=1, how="all"), 1
        while max(map(len, files := _parquets(known, pieces))) > LIMIT:
            pieces += 1
        for number, content in enumerate(files, start=1):
            with written(folder / (f"{block}_{number}.parquet" if pieces > 1 else f"{block}.parquet")) as temporary:
                temporary.write_bytes(content)


def _parquets(rows: pd.DataFrame, pieces: int) -> list[bytes]:
    """The rows in so many files, as bytes."""
    ends = [len(rows) * piece // pieces for piece in range(pieces + 1)]
    parts = (rows.iloc[start:end] for start, end in pairwise(ends))
    return [part.to_parquet(None, index=False, compression="zstd") for part in parts]


def _save_shelf(values: Mapping[str, Any], stem: Path) -> None:
    """Archives ``stem``_1.zip, ``stem``_2.zip, ..., each filled as far as it goes, in the values' own order."""
    for old in stem.parent.glob(f"{stem.name}_*.zip"):
        old.unlink()
    shelves: list[list[tuple[str, bytes]]] = [[]]
    with tempfile.TemporaryDirectory() as temporary:
        for number, (key, value) in enumerate(values.items()):
            path = Path(temporary, f"{number}.npz")
            io.save(value, path)
            content = path.read_bytes()
            # Names of members stand twice in an archive, with some hundred bytes of their own.
            if shelves[-1] and sum(len(c) + 2 * len(k) + 300 for k, c in [*shelves[-1], (key, content)]) > LIMIT:
                shelves.append([])
            shelves[-1].append((key, content))
    for number, shelf in enumerate(filter(None, shelves), start=1):
        path = stem.with_name(f"{stem.name}_{number}.zip")
        with written(path) as temporary_path, zipfile.ZipFile(temporary_path, "w") as archive:
            for key, content in shelf:
                archive.writestr(zipfile.ZipInfo(f"{key}.npz", DATE), content)
        if path.stat().st_size > LIMIT:
            raise ValueError(f"{path} has {path.stat().st_size:,} bytes, expected at most {LIMIT:,}: keep less of it")


def _load_shelf(stem: Path, load: Callable[[Path], Any]) -> dict[str, Any]:
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for path in sorted(stem.parent.glob(f"{stem.name}_*.zip")):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    held = Path(temporary, "value.npz")
                    held.write_bytes(archive.read(name))
                    found[name.removesuffix(".npz")] = load(held)
    return found


def save_list(found: pd.DataFrame, study: str, path: Path | str) -> None:
    """Put a study's verdicts or claims in place of its earlier ones in the list of all, with ten significant digits."""
    path = Path(path)
    own = found.assign(study=study)
    others = load_list(path).query("study != @study") if path.is_file() else own.iloc[:0]
    # Of an empty list numbers would have no type.
    parts = [part for part in (others, own) if len(part)] or [own]
    every = pd.concat(parts, ignore_index=True)[["study", *found.columns]]
    with written(path) as temporary:
        every.sort_values("study", kind="stable").to_csv(temporary, index=False, float_format="%.10g")


def load_list(path: Path | str) -> pd.DataFrame:
    """The verdicts or the claims of every reference."""
    texts = ("row", "column", "settings", "differs_before")
    found = pd.read_csv(path, dtype=dict.fromkeys(texts, str))
    return found.assign(**{name: found[name].fillna("") for name in texts[2:] if name in found})
