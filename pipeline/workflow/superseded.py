"""Records of raw data for which better files have come to hand since."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.workflow.availability import RECORD, choices, folders
from pipeline.workflow.plugins import load

STAND_INS = ("twin", "absent", "jpeg")
"""Origins that the published files take the place of."""


def forget(root: Path) -> list[str]:
    """Drop the record of a twin, of a stand-in or of nothing where better files of the dataset have come to hand.

    The next run then fetches again, and everything made from what stood in is made anew. Returns the datasets.
    """
    superseded = []
    for record in (root / "data" / "raw").glob(f"*/{RECORD}"):
        origin = json.loads(record.read_text())["origin"]
        if origin not in STAND_INS:
            continue
        module = load("dataset", record.parent.name)
        better = [file.filename for _, files in choices(module)[: None if origin == "absent" else 1] for file in files]
        if any((folder / name).is_file() for folder in folders(record.parent) for name in better):
            record.unlink()
            superseded.append(record.parent.name)
    return superseded
