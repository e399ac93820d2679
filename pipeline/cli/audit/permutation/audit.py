"""From the arguments of the permutation tests to counts and rows, and from these to the document."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from pipeline.cli.audit.permutation.asked import asked
from pipeline.cli.audit.permutation.document import document
from pipeline.cli.audit.permutation.evidence import gather
from pipeline.cli.document import AuditDocument
from pipeline.cli.table import sha256
from pipeline.tabulate import opened
from pipeline.tabulate.source import local_files

COLUMNS = ("label", "positive", "score", "prediction", "threshold", "cluster", "weight")
SETTINGS = ("alpha", "alternative", "method", "draws", "bootstraps", "smoothing", "resampling_risk")
"""What the document says of the request under its own name."""
HASHED_BYTES = 2**30
"""Larger data are identified by the names and sizes of their files, without checksums."""


def audited(arguments: Namespace) -> AuditDocument:
    """Check, count, test. Raises ValueError for everything that the user can mend."""
    request = asked(arguments)
    with opened(arguments.predictions, arguments.engine, arguments.threads, arguments.memory) as table:
        evidence = gather(table, request)
    request = evidence.asked
    given = {
        "data": {
            "path": arguments.predictions,
            "files": None if arguments.engine == "spark" else _files(arguments.predictions),
            "rows": evidence.rows,
            **{name: getattr(request, name) for name in COLUMNS},
        },
        "parameters": {
            **{name: getattr(request.settings, name) for name in SETTINGS},
            "correction": request.correction,
            "draws_own_metric": request.own_draws,
            "seed": request.seed,
            "bins": request.bins,
            "score_range": None if request.score_range is None else list(request.score_range),
            "engine": arguments.engine,
        },
    }
    return document(evidence, request, given)


def _files(source: str) -> list[dict[str, Any]]:
    paths = [Path(path) for path in local_files(source).paths]
    hashed = sum(path.stat().st_size for path in paths) <= HASHED_BYTES
    return [
        {"path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path) if hashed else None} for path in paths
    ]
