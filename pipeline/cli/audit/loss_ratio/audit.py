"""From the arguments of a loss-ratio audit to arrays, and from these to its document."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pipeline.cli.audit.loss_ratio.caveats import Result
from pipeline.cli.audit.loss_ratio.document import document
from pipeline.cli.audit.loss_ratio.equated import Equated, given_directions, learned
from pipeline.cli.audit.loss_ratio.evidence import Settings, gather
from pipeline.cli.columns import Choice, Rows, attribute, rows
from pipeline.cli.document import AuditDocument
from pipeline.cli.network import Computing, load_network
from pipeline.cli.probe import model_facts, probed
from pipeline.cli.table import read_table, sha256
from pipeline.cli.units import Units, units
from pipeline.seeds import generators
from pipeline.types import Array

CHOSEN = ("regularization", "step_size", "steps", "delta", "alpha", "dtype")
"""The settings that are arguments under their own names."""


def audited(arguments: Namespace) -> AuditDocument:
    """Read, check, learn the metric, attack, test. Raises ValueError for everything that the user can mend."""
    table = read_table(arguments.data)
    choice = Choice(
        label=arguments.label,
        positive=arguments.positive,
        sensitive=tuple(attribute(text, tuple(table.columns)) for text in arguments.sensitive or ()),
        include_sensitive=arguments.include_sensitive,
        features=arguments.features,
        drop=arguments.drop,
    )
    everyone = rows(table, choice, arguments.data)
    scale = units(everyone.features, everyone.names, arguments.standardize)
    equated, metric = _fair_metric(arguments, choice, everyone, scale)
    row_numbers = _drawn(len(table), arguments.points, arguments.seed)
    some = everyone.only(row_numbers)

    computing = Computing(arguments.device, arguments.dtype)
    settings = Settings(device=str(computing.device), **{name: getattr(arguments, name) for name in CHOSEN})
    network = load_network(arguments.model, arguments.trust_pickle, computing)
    features = torch.tensor(some.features, dtype=computing.dtype, device=settings.device)
    scores = probed(network, features, some.names, arguments.output_kind)
    evidence = gather(scores.evaluate, some.features, some.label, equated.metric, scale, settings)
    facts = {
        "data": {
            "path": str(arguments.data),
            "sha256": sha256(arguments.data),
            "rows": len(table),
            "audited": len(row_numbers),
            "features": list(everyone.names),
            "label": arguments.label,
            "label_levels": list(everyone.label_levels),
            "standardized": list(scale.standardized),
        },
        "model": model_facts(arguments.model, network, scores),
        "fair_metric": metric,
        "parameters": {**vars(settings), "points": arguments.points, "seed": arguments.seed},
    }
    return document(Result(evidence, some, row_numbers, scale, scores, equated, settings), facts, arguments.examples)


def _fair_metric(arguments: Namespace, choice: Choice, everyone: Rows, scale: Units) -> tuple[Equated, dict[str, Any]]:
    """The metric, and for the document where it comes from."""
    if arguments.directions is not None:
        if arguments.metric_data is not None:
            raise ValueError("--metric-data is for a metric that is learned: leave it out, or give --sensitive instead")
        path: Path = arguments.directions
        equated = given_directions(path, everyone, scale)
        return equated, {"source": "given", "path": str(path), "sha256": sha256(path), "rows": None, "levels": {}}
    path, teachers = arguments.data, everyone
    if arguments.metric_data is not None:
        path = arguments.metric_data
        teachers = rows(read_table(path), replace(choice, label=None, features=everyone.names, drop=()), path)
    return learned(teachers, scale), {
        "source": "learned",
        "path": str(path),
        "sha256": sha256(path),
        "rows": len(teachers.features),
        "levels": {name: list(pair) for name, pair in teachers.levels.items()},
    }


def _drawn(count: int, points: int | None, seed: int) -> Array:
    """The numbers of the audited rows: all, or ``points`` of them drawn without replacement, in the file's order."""
    if points is None:
        return np.arange(count)
    if points > count:
        raise ValueError(f"--points asks for {points} rows, but there are {count}: leave it out to audit all of them")
    (rng,) = generators("audit", "loss-ratio", "points", str(seed), repetitions=1)
    return np.sort(rng.choice(count, size=points, replace=False))
