"""A document as data: one JSON text, and a CSV text for each table."""

from __future__ import annotations

import json
import platform
from importlib import import_module
from typing import Any

from pipeline import __version__
from pipeline.cli.document import AuditDocument


def json_text(document: AuditDocument, in_folder: bool) -> str:
    """The document's JSON. ``in_folder``: whether a folder is written, whose files it then names.

    NaN and infinities raise ValueError: JSON has neither.
    """
    # In the order in which a person reads it.
    verdict = document.verdict
    content: dict[str, Any] = {
        "audit": document.audit,
        "schema": document.schema,
        "verdict": {
            **{"outcome": verdict.outcome, "reason": verdict.reason},
            **{**verdict.facts, "sentence": verdict.sentence},
        },
        "caveats": [caveat.text for caveat in document.caveats],
        **document.facts,
        "files": document.files() if in_folder else None,
        "versions": versions(document),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def csv_texts(document: AuditDocument) -> dict[str, str]:
    """The text of each table by its name, without row numbers."""
    return {name: table.to_csv(index=False, lineterminator="\n") for name, table in document.tables.items()}


def versions(document: AuditDocument) -> dict[str, str]:
    """This program's version, Python's, and those of the libraries that the document names."""
    libraries = {name: str(import_module(name).__version__) for name in document.libraries}
    return {"pipeline": __version__, "python": platform.python_version(), **libraries}
