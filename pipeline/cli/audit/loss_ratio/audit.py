"""From the arguments to the result of a loss-ratio audit, and from there to the files."""

from __future__ import annotations

import json
import platform
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline import __version__
from pipeline.cli.arguments import choice_of, names
from pipeline.cli.audit.loss_ratio import document as documents
from pipeline.cli.audit.loss_ratio import examples
from pipeline.cli.audit.loss_ratio.caveats import caveats
from pipeline.cli.audit.loss_ratio.equated import Equated, given, learned
from pipeline.cli.audit.loss_ratio.evidence import Evidence, Settings, gather
from pipeline.cli.columns import Choice, Rows, rows
from pipeline.cli.delivery import folder_written
from pipeline.cli.network import Network, device_named, load_network
from pipeline.cli.probe import Scores, probed
from pipeline.cli.table import read_table, sha256
from pipeline.cli.units import Asked, Units, units
from pipeline.io import save_figure, save_text
from pipeline.seeds import generators
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd


FILES = {
    "result": "audit.json",
    "examples": "examples.csv",
    "figure": "loss_ratio.png",
    "figure_for_print": "loss_ratio.pdf",
}
"""What stands in the folder of an audit."""


@dataclass(frozen=True)
class Audit:
    """``document`` is the JSON result, ``table`` the most unfair examples, ``evidence`` what the figure draws."""

    document: Mapping[str, Any]
    table: pd.DataFrame
    evidence: Evidence


def audited(arguments: Namespace) -> Audit:
    """Read, check, learn the metric, attack, test. Raises ValueError for everything that the user can mend."""
    import torch

    table = read_table(arguments.data)
    choice = choice_of(arguments, tuple(table.columns), arguments.sensitive or ())
    everyone = rows(table, choice, arguments.data)
    measured = units(everyone.features, everyone.names, _standardize(arguments.standardize))
    equated, metric_facts = _fair_metric(arguments, choice, everyone, measured)
    row_numbers = _drawn(len(table), arguments.points, arguments.seed)
    some = _subset(everyone, row_numbers)

    dtype = getattr(torch, arguments.dtype)
    device = device_named(arguments.device, dtype)
    network = load_network(arguments.model, arguments.trust_pickle, device, dtype)
    kind = None if arguments.output_kind == "auto" else arguments.output_kind
    scores = probed(network, torch.tensor(some.features, dtype=dtype, device=device), some.names, kind)
    settings = _settings(arguments, str(device))
    evidence = gather(scores.evaluate, some.features, some.label, equated.metric, measured, settings)

    # In the order in which a person reads it.
    document = {
        "audit": "loss-ratio",
        "schema": documents.SCHEMA,
        **documents.outcomes(evidence, some, scores.probability),
        "caveats": caveats(evidence, some, scores, equated, metric_facts["path"] == str(arguments.data)),
        **_inputs(arguments, everyone, len(row_numbers), measured, network, scores),
        "fair_metric": {**metric_facts, **documents.fair_metric(equated, everyone.names)},
        "parameters": {**vars(settings), "points": arguments.points, "seed": arguments.seed},
        "examples": examples.entries(evidence, some, row_numbers, measured, arguments.examples),
        "files": None if arguments.output is None else FILES,
        "versions": _versions(),
        "course": documents.course(evidence),
    }
    return Audit(document, examples.table(evidence, some, row_numbers, arguments.examples), evidence)


def deliver(audit: Audit, folder: Path | None, json_file: Path | None) -> list[Path]:
    """Write the folder (JSON, examples, figure) and the JSON file, those that are asked for; the paths written."""
    written = []
    text = json.dumps(audit.document, indent=2, allow_nan=False) + "\n"
    if folder is not None:
        from pipeline.cli.audit.loss_ratio.figure import figure
        from pipeline.report.style import paper

        with folder_written(folder) as temporary:
            save_text(text, temporary / FILES["result"])
            audit.table.to_csv(temporary / FILES["examples"], index=False, lineterminator="\n")
            with paper():
                save_figure(figure(audit.evidence), temporary / Path(FILES["figure"]).stem)
        written += [folder / name for name in FILES.values()]
    if json_file is not None:
        save_text(text, json_file)
        written.append(json_file)
    return written


def _fair_metric(
    arguments: Namespace, choice: Choice, everyone: Rows, measured: Units
) -> tuple[Equated, dict[str, Any]]:
    """The metric, and for the document where it comes from."""
    if arguments.directions is not None:
        if arguments.metric_data is not None:
            raise ValueError("--metric-data is for a metric that is learned: leave it out, or give --sensitive instead")
        path: Path = arguments.directions
        equated = given(path, everyone, measured)
        return equated, {"source": "given", "path": str(path), "sha256": sha256(path), "rows": None, "levels": {}}
    path, teachers = arguments.data, everyone
    if arguments.metric_data is not None:
        path = arguments.metric_data
        teachers = rows(read_table(path), replace(choice, label=None, features=everyone.names, drop=()), path)
    return learned(teachers, measured), {
        "source": "learned",
        "path": str(path),
        "sha256": sha256(path),
        "rows": len(teachers.features),
        "levels": {name: list(pair) for name, pair in teachers.levels.items()},
    }


def _versions() -> dict[str, str]:
    import torch

    return {
        "pipeline": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
    }


def _inputs(
    arguments: Namespace, everyone: Rows, audited_rows: int, measured: Units, network: Network, scores: Scores
) -> dict[str, Any]:
    """For the document: which data, which model."""
    return {
        "data": {
            "path": str(arguments.data),
            "sha256": sha256(arguments.data),
            "rows": len(everyone.features),
            "audited": audited_rows,
            "features": list(everyone.names),
            "label": arguments.label,
            "label_levels": list(everyone.label_levels),
            "standardized": list(measured.standardized),
        },
        "model": {
            "given": arguments.model,
            "origin": network.origin,
            "sha256": None if network.file is None else sha256(network.file),
            "output_kind": scores.kind,
            "output_kind_detected": scores.detected,
            "output_columns": scores.columns,
        },
    }


def _settings(arguments: Namespace, device: str) -> Settings:
    return Settings(
        regularization=arguments.regularization,
        step_size=arguments.step_size,
        steps=arguments.steps,
        delta=arguments.delta,
        alpha=arguments.alpha,
        device=device,
        dtype=arguments.dtype,
    )


def _standardize(text: str | None) -> Asked:
    return text if text in (None, "continuous", "none") else names(text)  # type: ignore[return-value, arg-type]


def _drawn(count: int, points: int | None, seed: int) -> Array:
    """The numbers of the audited rows: all, or ``points`` of them drawn without replacement, in the file's order."""
    if points is None:
        return np.arange(count)
    if points > count:
        raise ValueError(f"--points asks for {points} rows, but there are {count}: leave it out to audit all of them")
    (rng,) = generators("audit", "loss-ratio", "points", str(seed), repetitions=1)
    return np.sort(rng.choice(count, size=points, replace=False))


def _subset(everyone: Rows, row_numbers: Array) -> Rows:
    return replace(
        everyone,
        features=everyone.features[row_numbers],
        label=everyone.label[row_numbers],
        sensitive={name: group[row_numbers] for name, group in everyone.sensitive.items()},
    )
