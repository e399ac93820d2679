"""Distances kept in a file while they are computed, so that an audit that was stopped goes on where it was.

A distance belongs to an image (by its pixels), the class that it is to leave, the network with its normalisation, and
the attack with its settings. Where all of these are the same it is taken from the file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from pipeline.io import written

FORMAT = 1
SECONDS = 5.0
"""The file is written at most so often, and at the end: a killed run loses no more than that."""


class Kept:
    """``what`` says of which network the distances are; ``settings`` are those of each attack that is to be made."""

    def __init__(self, path: Path | None, what: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]]) -> None:
        self.path = path
        self.what = dict(what)
        self.settings: dict[str, Any] = {name: dict(values) for name, values in settings.items()}
        self.found: dict[str, dict[str, float]] = {name: {} for name in settings}
        self.taken = 0
        self.unsaved = 0
        self.saved_at = time.monotonic()
        if path is not None and path.exists():
            self._load(path)

    def known(self, attack: str) -> dict[str, float]:
        """Distances of the attack by the key of the image, NaN where it failed."""
        return self.found[attack]

    def add(self, attack: str, distances: Mapping[str, float]) -> None:
        """Take up new distances, and write the file now and then."""
        self.found[attack].update(distances)
        self.unsaved += len(distances)
        if time.monotonic() - self.saved_at > SECONDS:
            self.save()

    def save(self) -> None:
        """Write what is not written yet, whole or not at all."""
        if self.path is None or not self.unsaved:
            return
        header = {"format": FORMAT, "what": self.what, "settings": self.settings}
        arrays = {"header": np.frombuffer(json.dumps(header, sort_keys=True).encode(), dtype=np.uint8)}
        for name, distances in self.found.items():
            arrays[f"key_{name}"] = np.array(list(distances), dtype="U32")
            arrays[f"distance_{name}"] = np.array(list(distances.values()), dtype=np.float64)
        with written(self.path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        self.unsaved, self.saved_at = 0, time.monotonic()

    def interrupted(self) -> None:
        """Say on stderr what was kept."""
        if self.path is not None and self.path.exists():
            kept = sum(map(len, self.found.values()))
            print(f"{kept:,} distances are kept in {self.path}: the same command continues there", file=sys.stderr)

    def _load(self, path: Path) -> None:
        """Take up the file. Raises ValueError for a file of something else, of another network or of other settings."""
        try:
            stored = np.load(path, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                raise ValueError("one array")
            with stored:
                header = json.loads(stored["header"].tobytes())
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"--checkpoint {path} holds something else than distances of this audit: give the name of a new file"
            ) from error
        if header.get("format") != FORMAT:
            raise ValueError(f"--checkpoint {path} is of another version of this program: give the name of a new file")
        self._check(path, header)
        for name, settings in header["settings"].items():
            keys, values = arrays[f"key_{name}"].tolist(), arrays[f"distance_{name}"].tolist()
            self.found[name] = dict(zip(keys, values, strict=True))
            self.settings[name] = settings
        self.taken = sum(map(len, self.found.values()))

    def _check(self, path: Path, header: Mapping[str, Any]) -> None:
        other = [name for name, value in self.what.items() if header["what"].get(name) != value]
        for name, settings in header["settings"].items():
            mine = self.settings.get(name, settings)
            other += [f"{name}.{key}" for key in mine if settings.get(key) != mine[key]]
        if other:
            raise ValueError(
                f"--checkpoint {path} was made with another {', '.join(other)}: give the name of a new file, or the "
                "arguments that it was made with"
            )
