"""From the arguments of a robustness audit to images and distances, and from these to its document."""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import numpy as np

from pipeline.audits.robustness_bias.distances import exact_arithmetic
from pipeline.cli.audit.robustness import look
from pipeline.cli.audit.robustness.attacking import SMOOTHING, Asked, asked, distances
from pipeline.cli.audit.robustness.checkpoint import Kept
from pipeline.cli.audit.robustness.classifier import Raw, load_classifier
from pipeline.cli.audit.robustness.document import Result, document
from pipeline.cli.audit.robustness.evidence import Settings, gather
from pipeline.cli.audit.robustness.groups import check_sizes
from pipeline.cli.audit.robustness.labels import check_range
from pipeline.cli.audit.robustness.look import Subjects, looked
from pipeline.cli.audit.robustness.points import read_points
from pipeline.cli.document import AuditDocument
from pipeline.cli.probe import model_facts
from pipeline.cli.table import read_table, sha256

DEFAULT_ATTACK = "deepfool"
PARAMETERS = ("alpha", "budget", "bootstraps", "permutations", "points", "min_group", "seed")
"""The arguments that the document names as parameters."""


def audited(arguments: Namespace) -> AuditDocument:
    """Read, check, classify, attack, compare. Raises ValueError for everything that the user can mend."""
    import torch

    arguments.attack = arguments.attack or [DEFAULT_ATTACK]
    wanted = asked(arguments.attack, arguments.attack_setting)
    table = read_table(arguments.partition)
    points = read_points(table, arguments)
    check_sizes(points.partitions, arguments.min_group)
    kind = None if arguments.output_kind == "auto" else arguments.output_kind
    raw = load_classifier(arguments, points.images.shape)
    with exact_arithmetic(torch.get_num_threads()):
        subjects = looked(points, raw, kind, with_gradient=bool(set(arguments.attack) - {SMOOTHING}))
        check_sizes(subjects.points.partitions, arguments.min_group)
        known = subjects.points.label
        check_range(
            np.zeros(0, dtype=np.int64) if known is None else known,
            subjects.classes,
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
    chosen = ("denominator", "budget", "alpha", "bootstraps", "permutations", "seed")
    settings = Settings(**{name: getattr(arguments, name) for name in chosen})
    correct, partitions = subjects.correct, subjects.points.partitions
    evidence = tuple(
        gather(one, distance, correct, partitions, settings) for one, distance in zip(wanted, found, strict=True)
    )
    given = {
        "data": _data(arguments, subjects),
        "model": _model(arguments, raw, subjects),
        "parameters": {
            **{name: getattr(arguments, name) for name in PARAMETERS},
            "device": str(raw.device),
        },
    }
    return document(Result(subjects, evidence, settings, arguments.classes), given)


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
    """All that an attack's distances depend on; the noise of smoothing depends on the seed."""
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
    return {
        **model_facts(arguments.model, raw.network, subjects.classifier),
        "mean": list(arguments.mean),
        "std": list(arguments.std),
        "classes": subjects.classes,
    }
