"""The only functions that load and save the values passed between stages.

Every file is written under a temporary name next to its destination and renamed when it is complete, so a reader never
sees a partial file and a killed job leaves none. Arrays go to ``.npz`` with a JSON header, rows to Parquet and CSV.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from zipfile import BadZipFile, ZipFile

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.files import save_text, written
from fairness_audits.values import Classifier, Dataset, ImageDataset, TransportMap
from pipeline.values import AuditResult, DatasetSummary, MissingData

if TYPE_CHECKING:
    import pandas as pd

    from pipeline.report.table import StampedTable

FORMAT = 1
"""Version of the ``.npz`` layout; a file of another version is refused rather than misread."""

Stored = Dataset | ImageDataset | DatasetSummary | Classifier | TransportMap | AuditResult | MissingData
Value = TypeVar("Value", Dataset, ImageDataset, DatasetSummary, Classifier, TransportMap, AuditResult, MissingData)
LOCAL_HEADER = "<4s5H3I2H"
"""The header of a member of a zip archive, up to the lengths of its name and of the extra field."""
NETWORKS = "networks."
"""The architectures whose weights may be large."""
KINDS = {kind.__name__: kind for kind in get_args(Stored)}


def save(value: Stored, path: Path | str, software: Sequence[Mapping[str, str]] = (), task: str = "") -> None:
    """Write a value: arrays as members of an ``.npz``, other fields in its JSON header.

    ``software`` holds the sets of versions that computed the value (:mod:`pipeline.software`). ``task`` identifies the
    task that made the file. References omit both.
    """
    header: dict[str, Any] = {"format": FORMAT, "type": type(value).__name__}
    if task:
        header["task"] = task
    if software:
        header["software"] = list(map(dict, software))
    arrays: dict[str, np.ndarray] = {}
    for field in fields(value):
        content = getattr(value, field.name)
        if isinstance(content, np.ndarray):
            arrays[field.name] = content
        elif isinstance(content, Mapping) and content and all(isinstance(v, np.ndarray) for v in content.values()):
            header.setdefault("mappings", {})[field.name] = list(content)
            arrays.update({f"{field.name}/{key}": array for key, array in content.items()})
        elif hasattr(content, "to_dict") and hasattr(content, "columns"):
            header["rows"] = field.name
            header["columns"] = list(content.columns)
            arrays.update({f"{field.name}/{name}": _column(content[name]) for name in content.columns})
        else:
            header.setdefault("values", {})[field.name] = content
    encoded = np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)
    # Do not compress weights: it takes minutes for a large network and saves nothing. Images are memory-mapped.
    write = np.savez if isinstance(value, Classifier | ImageDataset) else np.savez_compressed
    with written(path) as temporary, temporary.open("wb") as file:
        write(file, header=encoded, **arrays)  # type: ignore[arg-type]


def load(path: Path | str, kind: type[Value]) -> Value:
    """Read a value of this type. Raises ValueError for a file of another type and for an unreadable file.

    The images of an :class:`ImageDataset` are memory-mapped, so a job holds only the images that it uses.
    """
    value = _stored(path, kind.__name__)
    assert isinstance(value, kind)
    return value


def load_if_present(path: Path | str) -> Stored:
    """Read a file of any type; the file of a missing data set gives :class:`MissingData`."""
    return _stored(path, *KINDS)


def load_without_weights(path: Path | str) -> Stored:
    """Read a network's classifier without its parameters, which can take several gigabytes."""
    return _stored(path, *KINDS, weights=False)


def software(path: Path | str) -> list[dict[str, str]]:
    """Read the sets of versions that computed the value of a file.

    The set is empty if the file does not record it. There is no set for missing data, which nothing has computed.
    """
    with np.load(path, allow_pickle=False) as stored:
        header = json.loads(stored["header"].tobytes())
    return [] if header["type"] == MissingData.__name__ else header.get("software", [{}])


def made_by(path: Path | str) -> str:
    """Return what identifies the task that made a file; empty if the file is missing, unreadable or does not say."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return str(json.loads(stored["header"].tobytes()).get("task", ""))
    except (OSError, ValueError, KeyError, BadZipFile):
        return ""


def checksum(path: Path | str) -> str:
    """Return a checksum of the content of a file. For ``.npz``, it comes from the checksums of the arrays."""
    if Path(path).suffix != ".npz":
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    with ZipFile(path) as members:
        return digest([[member.filename, member.CRC, member.file_size] for member in members.infolist()])


def digest(content: Any) -> str:
    """Return the beginning of the SHA-256 of what JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


class CheckpointFile:
    """Saves arrays next to a job's output while it runs, so a killed job can continue with the same code.

    ``code`` is the hash of the code. Work of unknown code, ``""``, is not continued.
    """

    def __init__(self, output: Path | str, code: str) -> None:
        output = Path(output)
        self.path, self.code = output.with_name(f".{output.stem}.kept.npz"), code

    def load(self, fingerprint: np.ndarray) -> Mapping[str, np.ndarray] | None:
        """Return the last saved state, or None if there is none, it belongs to other work, or it is unreadable."""
        if not self.code:
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                kept = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, BadZipFile):
            return None
        same = np.array_equal(kept.pop("fingerprint", ()), fingerprint) and kept.pop("code", "") == self.code
        return kept if same else None

    def save(self, fingerprint: np.ndarray, state: Mapping[str, np.ndarray]) -> None:
        """Replace the saved state by ``state``, completely or not at all."""
        with written(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, fingerprint=fingerprint, code=np.array(self.code), **state)  # type: ignore[arg-type]

    def forget(self) -> None:
        """Delete the saved state when the job is done."""
        self.path.unlink(missing_ok=True)


def load_audit(path: Path | str) -> AuditResult:
    """Read an audit's rows and arrays; for missing data, a row that says that the audit was not run."""
    found = _stored(path, AuditResult.__name__, MissingData.__name__)
    if isinstance(found, MissingData):
        return AuditResult.not_run(found)
    assert isinstance(found, AuditResult)
    return found


def save_rows(rows: pd.DataFrame, path: Path | str) -> None:
    """Write tidy rows as Parquet."""
    with written(path) as temporary:
        rows.to_parquet(temporary, index=False)


def load_rows(path: Path | str) -> pd.DataFrame:
    """Read tidy rows."""
    import pandas as pd

    return pd.read_parquet(path)


def save_table(table: StampedTable, stem: Path | str) -> tuple[Path, ...]:
    """Write a table as ``stem``.csv, .md and .tex."""
    from fairness_audits.results import typeset

    printed = table.printed()
    csv, md, tex = typeset.csv(table.recorded()), typeset.markdown(printed), typeset.latex(printed)
    texts = {".csv": csv, ".md": md, ".tex": tex}
    paths = tuple(Path(f"{stem}{suffix}") for suffix in texts)
    for path, text in zip(paths, texts.values(), strict=True):
        save_text(text, path)
    return paths


def load_published(path: Path | str) -> pd.DataFrame:
    """Read a list of published numbers (``data/published/<study>.csv``)."""
    import pandas as pd

    return pd.read_csv(path, dtype={"row": str, "column": str, "setting": str}, keep_default_na=True)


def load_claims(path: Path | str) -> list[dict[str, Any]]:
    """Read a list of claims (``data/published/claims/<study>.yaml``)."""
    import yaml

    return list(yaml.safe_load(Path(path).read_text(encoding="utf-8")))


def _column(series: pd.Series) -> np.ndarray:
    """Convert a column to a plain array: numbers unchanged, everything else as fixed-width text (never pickled).

    A missing text becomes an empty one.
    """
    array = series.to_numpy()
    return array if array.dtype.kind in "biuf" else series.fillna("").to_numpy().astype(str)


def _stored(path: Path | str, *wanted: str, weights: bool = True) -> Stored:
    """Read ``path`` as one of the types named in ``wanted``; without ``weights``, a network has no parameters."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            large = str(header.get("values", {}).get("architecture", "")).startswith(NETWORKS)
            left = "parameters/" if large and not weights else "header"
            mapped = "images" if header.get("type") == ImageDataset.__name__ else ""
            names = [name for name in stored.files if name != "header" and not name.startswith(left)]
            arrays = {name: _in_place(path, name) if name == mapped else stored[name] for name in names}
            if left != "header":
                header["mappings"]["parameters"] = []
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        problem = f"{path} cannot be read as a {' or '.join(wanted)}: {error}"
        raise InvalidInput(problem, source=path, remedy="Delete it and run again") from error
    if header.get("format") != FORMAT or header.get("type") not in wanted:
        raise InvalidInput(
            f"{path} holds a {header.get('type')} of format {header.get('format')}, "
            f"expected a {' or '.join(wanted)} of format {FORMAT}",
            source=path,
            remedy="Delete it and run again",
        )
    content: dict[str, Any] = dict(header.get("values", {}))
    for name, keys in header.get("mappings", {}).items():
        content[name] = {key: arrays.pop(f"{name}/{key}") for key in keys}
    if "rows" in header:
        import pandas as pd

        name = header["rows"]
        content[name] = pd.DataFrame({column: arrays.pop(f"{name}/{column}") for column in header["columns"]})
    content.update(arrays)
    return KINDS[header["type"]](**{name: _tuples(value) for name, value in content.items()})


def _in_place(path: Path | str, name: str) -> np.ndarray:
    """Memory-map an array of an uncompressed ``.npz``; writes to it stay in memory."""
    with ZipFile(path) as members, Path(path).open("rb") as file:
        file.seek(members.getinfo(f"{name}.npy").header_offset)
        *_, name_length, extra_length = struct.unpack(LOCAL_HEADER, file.read(struct.calcsize(LOCAL_HEADER)))
        file.seek(name_length + extra_length, os.SEEK_CUR)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        return np.memmap(path, dtype, "c", file.tell(), shape, "F" if fortran else "C")


def _tuples(value: Any) -> Any:
    """Turn JSON's lists back into tuples, which the dataclasses hold."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value
