"""From the arguments to the result of a FlipTest, and from there to the files."""

from __future__ import annotations

import json
import platform
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline import __version__
from pipeline.cli.audit.fliptest import document as documents
from pipeline.cli.audit.fliptest import tables
from pipeline.cli.audit.fliptest.caveats import caveats
from pipeline.cli.audit.fliptest.evidence import Asked, Side, gather
from pipeline.cli.audit.fliptest.groups import Groups, read_groups
from pipeline.cli.audit.fliptest.maps import Kind, candidates, null_draws
from pipeline.cli.audit.fliptest.model import Model, Raw, load_model, probed
from pipeline.cli.audit.fliptest.space import Space, space_of
from pipeline.cli.delivery import figure_files, folder_written
from pipeline.cli.table import read_table, sha256
from pipeline.io import save_figure, save_text
from pipeline.permutation.precision import Precision
from pipeline.transport.quality import healthy

if TYPE_CHECKING:
    import pandas as pd

BOOTSTRAPS = 2_000
PERMUTATIONS = 4_999
"""Resamples behind the intervals, and random subsets behind the p-values of the transparency report."""
FILES = {
    "result": "audit.json",
    "page": "fliptest.html",
    "flipsets": "flipsets.csv",
    "transparency": "transparency.csv",
}
"""What stands in the folder of an audit, besides the figures."""


@dataclass(frozen=True)
class Audit:
    """``document`` is the JSON result; the tables and figures are made of ``sides``, points of ``space``."""

    document: Mapping[str, Any]
    sides: tuple[Side, ...]
    space: Space
    id_name: str | None


def audited(arguments: Namespace) -> Audit:
    """Read, check, map, ask the model, compare. Raises ValueError for everything that the user can mend."""
    import pandas as pd

    table = read_table(arguments.data)
    groups = read_groups(table, arguments)
    space = space_of(groups, arguments)
    groups = replace(
        groups,
        source=replace(groups.source, features=space.prepared(groups.source.features)),
        target=replace(groups.target, features=space.prepared(groups.target.features)),
    )
    sizes = (len(groups.source.rows), len(groups.target.rows))
    kinds = candidates(arguments, sizes)
    raw = load_model(arguments)
    everyone = pd.concat([groups.source.features, groups.target.features])
    model, scores = probed(raw, everyone, arguments.threshold, arguments.data)
    for kind in kinds:
        asked = Asked(
            reverse=arguments.reverse,
            null_draws=null_draws(arguments, kind, sizes),
            precision=Precision(arguments.alpha, BOOTSTRAPS, PERMUTATIONS),
            seed=arguments.seed,
        )
        sides = gather(groups, space, model, scores, kind, asked)
        if all(healthy(side.quality.ks) for side in sides):
            break
    stems = [f"{figure}_{side.way.direction}" for side in sides for figure in ("marginals", "transparency")]
    # In the order in which a person reads it.
    document = {
        "audit": "fliptest",
        "schema": documents.SCHEMA,
        **documents.measured(sides, space, arguments.alpha),
        "caveats": caveats(sides, space, model, arguments.threshold is not None, len(space.moving)),
        "data": _data(arguments, table, groups, space),
        "model": _model(arguments, raw, model),
        "map": _map(arguments, kind, kinds),
        "parameters": {
            "alpha": arguments.alpha,
            "bootstraps": BOOTSTRAPS,
            "permutations": PERMUTATIONS,
            "null_draws": asked.null_draws,
            "seed": arguments.seed,
        },
        "files": None if arguments.output is None else FILES | figure_files(stems),
        "versions": {"pipeline": __version__, "python": platform.python_version(), "numpy": np.__version__},
    }
    return Audit(document, tuple(sides), space, arguments.id)


def deliver(audit: Audit, folder: Path | None, json_file: Path | None) -> list[Path]:
    """Write the folder (JSON, page, tables, figures) and the JSON file, those that are asked for; the paths written."""
    written = []
    text = json.dumps(audit.document, indent=2, allow_nan=False) + "\n"
    if folder is not None:
        from pipeline.cli.audit.fliptest import figures, html
        from pipeline.report.style import paper

        with folder_written(folder) as temporary:
            save_text(text, temporary / FILES["result"])
            flipped = tables.flipsets(audit.sides, audit.id_name)
            flipped.to_csv(temporary / FILES["flipsets"], index=False, lineterminator="\n")
            lines = tables.transparency(audit.document)
            lines.to_csv(temporary / FILES["transparency"], index=False, lineterminator="\n")
            pictures = {}
            with paper():
                for side in audit.sides:
                    for name, drawn in figures.of(side, audit.space, audit.document["parameters"]["alpha"]).items():
                        stem = f"{name}_{side.way.direction}"
                        save_figure(drawn, temporary / stem)
                        pictures[stem] = (temporary / f"{stem}.png").read_bytes()
            save_text(html.page(audit.document, pictures), temporary / FILES["page"])
        written += [folder / name for name in audit.document["files"].values()]
    if json_file is not None:
        save_text(text, json_file)
        written.append(json_file)
    return written


def _data(arguments: Namespace, table: pd.DataFrame, groups: Groups, space: Space) -> dict[str, Any]:
    return {
        "path": str(arguments.data),
        "sha256": sha256(arguments.data),
        "rows": len(table),
        "left_out": dict(groups.left_out),
        "features": [one.name for one in space.inputs],
        "columns": list(space.labels),
        "standardized": list(space.standardized),
        "unmoved": list(space.unmoved),
        "group": arguments.group,
        "id": arguments.id,
        "label": arguments.label,
        "given_label": arguments.given_label,
        "label_levels": None if groups.label_levels is None else list(groups.label_levels),
    }


def _map(arguments: Namespace, kind: Kind, kinds: Sequence[Kind]) -> dict[str, Any]:
    poor = [other.name for other in kinds[: kinds.index(kind)]]
    return {"name": kind.name, "asked": arguments.map, "poor": poor, "settings": dict(kind.settings)}


def _model(arguments: Namespace, raw: Raw, model: Model) -> dict[str, Any]:
    return {
        "given": arguments.predict,
        "origin": raw.origin,
        "sha256": None if raw.file is None else sha256(raw.file),
        "output": model.kind,
        "threshold": model.threshold,
        "threshold_given": arguments.threshold is not None,
    }
