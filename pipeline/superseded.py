"""Records of raw data for which better files have come to hand since."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pipeline.plugins import load

STAND_INS = ("twin", "absent", "jpeg")
"""Origins that the published files take the place of."""


def forget(root: Path) -> list[str]:
    """Drop the record of a twin, of a stand-in or of nothing where better files of the dataset have come to hand.

    The next run then fetches again, and everything made from what stood in is made anew. Returns the datasets.
    """
    superseded = []
    for record in (root / "data" / "raw").glob("*/manifest.json"):
        origin = json.loads(record.read_text())["origin"]
        if origin not in STAND_INS:
            continue
        module = load("dataset", record.parent.name)
        better = [source.filename for source in module.SOURCES]
        if origin == "absent":
            better += [source.filename for _, source in getattr(module, "ALTERNATIVES", ())]
        if any((folder / name).is_file() for folder in _folders(record.parent) for name in better):
            record.unlink()
            superseded.append(record.parent.name)
    return superseded


def _folders(raw: Path) -> list[Path]:
    """Where a dataset's files may lie: its raw folder, and a mirror that is a folder."""
    mirror = os.environ.get("DATA_MIRROR", "")
    return [raw, *([Path(mirror) / raw.name, Path(mirror)] if mirror and "://" not in mirror else [])]
