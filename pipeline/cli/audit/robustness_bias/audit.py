"""From the arguments of a robustness audit to images and distances, and from these to its document."""

from __future__ import annotations

import hashlib
from argparse import Namespace

import numpy as np
import torch

from pipeline.audits.robustness_bias.distances import exact_arithmetic
from pipeline.cli.audit.robustness_bias.attacking import SMOOTHING, asked, distances
from pipeline.cli.audit.robustness_bias.checkpoint import Kept
from pipeline.cli.audit.robustness_bias.document import Result, document
from pipeline.cli.audit.robustness_bias.evidence import Settings, gather
from pipeline.cli.audit.robustness_bias.groups import check_range, check_sizes
from pipeline.cli.audit.robustness_bias.look import load_classifier, looked
from pipeline.cli.audit.robustness_bias.points import read_points
from pipeline.cli.document import AuditDocument
from pipeline.cli.probe import model_facts
from pipeline.cli.table import read_table, sha256

DEFAULT_ATTACK = "deepfool"
SETTINGS = ("denominator", "budget", "alpha", "bootstraps", "permutations", "seed")
PARAMETERS = ("alpha", "budget", "bootstraps", "permutations", "points", "min_group", "seed")
"""The arguments that are settings of the comparison, and those that the document names as parameters."""


def audited(arguments: Namespace) -> AuditDocument:
    """Read, check, classify, attack, compare. Raises ValueError for everything that the user can mend."""
    arguments.attack = arguments.attack or [DEFAULT_ATTACK]
    wanted = asked(arguments.attack, arguments.attack_setting)
    points = read_points(read_table(arguments.partition), arguments)
    shape = points.images.shape
    check_sizes(points.partitions, arguments.min_group)
    raw = load_classifier(arguments, shape)
    normalisation = {"mean": list(arguments.mean), "std": list(arguments.std)}
    # What kept distances are of, besides the images; the noise of smoothing depends on the seed too.
    made_of = {
        **{"model": raw.digest or arguments.model, **normalisation},
        **{"output kind": arguments.output_kind, "shape": list(shape)},
    }
    made_by = {
        one.name: {**one.settings, **({"seed": arguments.seed} if one.name == SMOOTHING else {})} for one in wanted
    }
    with exact_arithmetic(torch.get_num_threads()):
        subjects = looked(points, raw, arguments.output_kind, with_gradient=bool(set(arguments.attack) - {SMOOTHING}))
        partitions, label = subjects.points.partitions, subjects.points.label
        check_sizes(partitions, arguments.min_group)
        check_range(np.zeros(0, dtype=np.int64) if label is None else label, subjects.classes, arguments)
        kept = Kept(arguments.checkpoint, made_of, made_by)
        try:
            found = [distances(one, subjects, kept, arguments.batch_size, arguments.seed) for one in wanted]
        except KeyboardInterrupt:
            kept.interrupted()
            raise
    settings = Settings(**{name: getattr(arguments, name) for name in SETTINGS})
    evidence = tuple(
        gather(one, distance, subjects.correct, partitions, settings)
        for one, distance in zip(wanted, found, strict=True)
    )
    facts = subjects.points.facts
    given = {
        "data": {
            "images": str(arguments.images),
            "pixels_sha256": hashlib.sha256(b"".join(subjects.digests)).hexdigest(),
            "partition": str(arguments.partition),
            "sha256": sha256(arguments.partition),
            "file": facts["column"],
            "rows": facts["rows"],
            "unlisted": facts["unlisted"],
            "label": arguments.label,
            "classes": None if arguments.classes is None else list(arguments.classes),
            "groups": [one.name for one in partitions],
            "passed_over": facts["passed_over"],
            "resize": None if arguments.resize is None else list(arguments.resize),
            "audited": len(subjects.points.rows),
            "shape": list(shape),
            "unreadable": dict(sorted(subjects.unreadable.items())),
        },
        "model": {
            **model_facts(arguments.model, raw.network, subjects.classifier),
            **normalisation,
            "classes": subjects.classes,
        },
        "parameters": {**{name: getattr(arguments, name) for name in PARAMETERS}, "device": str(raw.device)},
    }
    return document(Result(subjects, evidence, settings, arguments.classes), given)
