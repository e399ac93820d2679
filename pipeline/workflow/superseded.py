"""Records of raw data for which better files have come to hand since."""

import json
from pathlib import Path

from pipeline.workflow.availability import RECORD, choices, copies, folders
from pipeline.workflow.plugins import load

STAND_INS = ("twin", "absent", "lossy")
"""Origins that the published files take the place of."""


def forget(root: Path) -> list[str]:
    """Delete the manifest of substituted or absent data once better files exist. Returns the datasets.

    The next run then fetches again, and everything made from the substitute is made anew.
    """
    superseded = []
    for record in (root / "data" / "raw").glob(f"*/{RECORD}"):
        manifest = json.loads(record.read_text())
        if (origin := manifest["origin"]) not in STAND_INS:
            continue
        raw, module = record.parent, load("dataset", record.parent.name)
        better = [file.filename for files in choices(module)[: None if origin == "absent" else 1] for file in files]
        used = {file["place"] for file in manifest.get("files", ())}
        images = [path for path in copies(raw.name, module, raw) if str(path) not in used]
        if images or any((folder / name).is_file() for folder in folders(raw) for name in better):
            record.unlink()
            superseded.append(raw.name)
    return superseded
