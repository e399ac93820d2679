"""From the arguments to the result of a robustness audit, and from there to the files."""

from __future__ import annotations

import hashlib
import json
import platform
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import __version__
from pipeline.audits.robustness_distances import exact_arithmetic
from pipeline.cli.audit.robustness import document as documents
from pipeline.cli.audit.robustness import look, tables
from pipeline.cli.audit.robustness.attacking import SMOOTHING, Asked, asked, distances
from pipeline.cli.audit.robustness.caveats import caveats
from pipeline.cli.audit.robustness.checkpoint import Kept
from pipeline.cli.audit.robustness.classifier import Raw, load_classifier
from pipeline.cli.audit.robustness.evidence import Evidence, gather
from pipeline.cli.audit.robustness.groups import check_sizes
from pipeline.cli.audit.robustness.labels import check_range
from pipeline.cli.audit.robustness.look import Subjects, looked
from pipeline.cli.audit.robustness.points import read_points
from pipeline.cli.delivery import figure_files, folder_written
from pipeline.cli.table import read_table, sha256
from pipeline.io import save_figure, save_text

DEFAULT_ATTACK = "deepfool"
FILES = {
    "result": "audit.json",
    "page": "robustness.html",
    "distances": "distances.csv",
    "groups": "groups.csv",
}
"""What stands in the folder of an audit, besides the figures."""


@dataclass(frozen=True)
class Audit:
    """``document`` is the JSON result; tables and figures are made of ``subjects`` and ``evidence``."""

    document: Mapping[str, Any]
    subjects: Subjects
    evidence: tuple[Evidence, ...]
    classes: tuple[str, ...] | None


def audited(arguments: Namespace) -> Audit:
    """Read, check, classify, attack, compare. Raises ValueError for everything that the user can mend."""
    import torch

    arguments.attack = arguments.attack or [DEFAULT_ATTACK]
    wanted = asked(arguments.attack, arguments.attack_setting)
    table = read_table(arguments.partition)
    points = read_points(table, arguments)
    check_sizes(points.partitions, arguments.min_group)
    raw = load_classifier(arguments, points.images.shape)
    with exact_arithmetic(torch.get_num_threads()):
        subjects = looked(points, raw, arguments)
        check_sizes(subjects.points.partitions, arguments.min_group)
        known = subjects.points.label
        check_range(
            np.zeros(0, dtype=np.int64) if known is None else known,
            subjects.classifier.classes,
            arguments.classes,
            str(arguments.label),
            arguments.partition,
        )
        kept = Kept(arguments.checkpoint, _what(raw, points.images.shape, arguments), _settings(wanted, arguments.seed))
        try:
            found = [distances(one, subjects, kept, arguments.batch_size, arguments.seed) for one in wanted]
        except KeyboardInterrupt:
            kept.interrupted()
            raise
    evidence = tuple(gather(one, distance, subjects, arguments) for one, distance in zip(wanted, found, strict=True))
    return Audit(_document(arguments, raw, subjects, evidence), subjects, evidence, arguments.classes)


def _document(arguments: Namespace, raw: Raw, subjects: Subjects, evidence: Sequence[Evidence]) -> dict[str, Any]:
    """In the order in which a person reads it."""
    results = [documents.result(one, subjects) for one in evidence]
    labelled = arguments.label is not None
    return {
        "audit": "robustness",
        "schema": documents.SCHEMA,
        "verdict": documents.verdict(results[0], arguments.denominator, arguments.alpha, labelled),
        "accuracy": float(subjects.correct.mean()) if labelled else None,
        "caveats": caveats(subjects, evidence, arguments),
        "data": _data(arguments, subjects),
        "model": _model(arguments, raw, subjects),
        "parameters": {
            "alpha": arguments.alpha,
            "budget": arguments.budget,
            "bootstraps": arguments.bootstraps,
            "permutations": arguments.permutations,
            "points": arguments.points,
            "min_group": arguments.min_group,
            "seed": arguments.seed,
            "device": str(raw.device),
        },
        "results": results,
        "files": None if arguments.output is None else FILES | figure_files(map(stem_of, evidence)),
        "versions": _versions(),
    }


def stem_of(one: Evidence) -> str:
    """What the figure of an attack goes by."""
    return f"curves_{one.asked.name}"


def deliver(audit: Audit, folder: Path | None, json_file: Path | None) -> list[Path]:
    """Write the folder (JSON, page, tables, figures) and the JSON file, those that are asked for; the paths written."""
    written = []
    text = json.dumps(audit.document, indent=2, allow_nan=False) + "\n"
    if folder is not None:
        from pipeline.cli.audit.robustness import figures, html
        from pipeline.report.style import paper

        with folder_written(folder) as temporary:
            save_text(text, temporary / FILES["result"])
            every = tables.points(audit.subjects, audit.evidence, audit.classes)
            every.to_csv(temporary / FILES["distances"], index=False, lineterminator="\n")
            groups = tables.groups(audit.document)
            groups.to_csv(temporary / FILES["groups"], index=False, lineterminator="\n")
            pictures = {}
            with paper():
                for one in audit.evidence:
                    stem = temporary / stem_of(one)
                    save_figure(figures.curves(one, audit.subjects, audit.document), stem)
                    pictures[one.asked.name] = stem.with_suffix(".png").read_bytes()
            save_text(html.page(audit.document, pictures), temporary / FILES["page"])
        written += [folder / name for name in audit.document["files"].values()]
    if json_file is not None:
        save_text(text, json_file)
        written.append(json_file)
    return written


def _what(raw: Raw, shape: Sequence[int], arguments: Namespace) -> dict[str, Any]:
    """What kept distances are of, besides the images: another network or normalisation has others."""
    return {
        "model": raw.digest or arguments.model,
        "mean": list(arguments.mean),
        "std": list(arguments.std),
        "output kind": arguments.output_kind,
        "shape": list(shape),
    }


def _settings(wanted: Sequence[Asked], seed: int) -> dict[str, dict[str, Any]]:
    """All that an attack's distances depend on; the noise of smoothing comes of the seed."""
    return {one.name: {**one.settings, "seed": seed} if one.name == SMOOTHING else dict(one.settings) for one in wanted}


def _data(arguments: Namespace, subjects: Subjects) -> dict[str, Any]:
    facts = subjects.points.facts
    pixels = hashlib.sha256(b"".join(subjects.digests)).hexdigest()
    return {
        "images": str(arguments.images),
        "pixels_sha256": pixels,
        "partition": str(arguments.partition),
        "sha256": sha256(arguments.partition),
        "file": facts["column"],
        "rows": facts["rows"],
        "unlisted": facts["unlisted"],
        "label": arguments.label,
        "classes": None if arguments.classes is None else list(arguments.classes),
        "groups": [one.name for one in subjects.points.partitions],
        "passed_over": facts["passed_over"],
        "resize": None if arguments.resize is None else list(arguments.resize),
        **look.facts(subjects),
    }


def _model(arguments: Namespace, raw: Raw, subjects: Subjects) -> dict[str, Any]:
    classifier, file = subjects.classifier, raw.network.file
    return {
        "given": arguments.model,
        "origin": raw.network.origin,
        "sha256": None if file is None else sha256(file),
        "mean": list(arguments.mean),
        "std": list(arguments.std),
        "classes": classifier.classes,
        "output_kind": classifier.kind,
        "output_kind_detected": classifier.detected,
        "output_columns": classifier.columns,
    }


def _versions() -> dict[str, str]:
    import torch

    return {
        "pipeline": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
    }
