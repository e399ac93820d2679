"""From the arguments to the result of the permutation tests, and from there to the files."""

from __future__ import annotations

import platform
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import __version__
from pipeline.cli.audit.permutation import document as documents
from pipeline.cli.audit.permutation.asked import Asked, asked
from pipeline.cli.audit.permutation.caveats import caveats
from pipeline.cli.audit.permutation.evidence import Evidence, gather
from pipeline.cli.delivery import folder_written
from pipeline.cli.table import sha256
from pipeline.io import save_json
from pipeline.tabulate import opened
from pipeline.tabulate.source import local_files

FILES = {"result": "audit.json", "tests": "tests.csv"}
"""What stands in the folder of an audit."""
HASHED_BYTES = 2**30
"""Larger data are identified by the names and sizes of their files, without checksums."""


def audited(arguments: Namespace) -> dict[str, Any]:
    """Check, count, test: the JSON document. Raises ValueError for everything that the user can mend."""
    request = asked(arguments)
    with opened(arguments.predictions, arguments.engine, arguments.threads, arguments.memory) as table:
        evidence = gather(table, request)
    return {
        **_facts(arguments, request, evidence),
        **documents.measured(evidence, request),
        "caveats": caveats(evidence, request),
        "files": None if arguments.output is None else FILES,
    }


def deliver(document: Mapping[str, Any], folder: Path | None, json_file: Path | None) -> list[Path]:
    """Write the folder (JSON and table) and the JSON file, those that are asked for; the paths written."""
    written = []
    if folder is not None:
        with folder_written(folder) as temporary:
            save_json(document, temporary / FILES["result"])
            documents.table(document).to_csv(temporary / FILES["tests"], index=False, lineterminator="\n")
        written += [folder / name for name in FILES.values()]
    if json_file is not None:
        save_json(document, json_file)
        written.append(json_file)
    return written


def _facts(arguments: Namespace, request: Asked, evidence: Evidence) -> dict[str, Any]:
    """For the document: which audit by which program, of which data, with which parameters."""
    settings = request.settings
    return {
        "audit": "permutation",
        "schema": documents.SCHEMA,
        "versions": {"pipeline": __version__, "python": platform.python_version(), "numpy": np.__version__},
        "data": {
            "path": arguments.predictions,
            "files": None if arguments.engine == "spark" else _files(arguments.predictions),
            "rows": evidence.rows,
            "label": request.label,
            "positive": request.positive,
            "score": request.score,
            "prediction": request.prediction,
            "threshold": request.threshold,
            "cluster": request.cluster,
            "weight": request.weight,
        },
        "parameters": {
            "alpha": settings.alpha,
            "alternative": settings.alternative,
            "method": settings.method,
            "correction": request.correction,
            "draws": settings.draws,
            "draws_own_metric": request.own_draws,
            "bootstraps": settings.bootstraps,
            "smoothing": settings.smoothing,
            "resampling_risk": settings.resampling_risk,
            "seed": request.seed,
            "bins": request.bins,
            "score_range": None if request.score_range is None else list(request.score_range),
            "engine": arguments.engine,
        },
    }


def _files(source: str) -> list[dict[str, Any]]:
    paths = [Path(path) for path in local_files(source).paths]
    hashed = sum(path.stat().st_size for path in paths) <= HASHED_BYTES
    return [
        {"path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path) if hashed else None} for path in paths
    ]
