"""From the arguments of a FlipTest to groups, model and maps, and from these to its document."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipeline.audits.precision import Precision
from pipeline.cli.audit.fliptest.document import Result, document
from pipeline.cli.audit.fliptest.evidence import Asked, gather_healthy
from pipeline.cli.audit.fliptest.groups import Groups, read_groups
from pipeline.cli.audit.fliptest.maps import Kind, candidates, null_draws
from pipeline.cli.audit.fliptest.model import Model, load_model, probed
from pipeline.cli.audit.fliptest.space import Space, space_of
from pipeline.cli.document import AuditDocument
from pipeline.cli.network import Network
from pipeline.cli.probe import model_facts
from pipeline.cli.table import read_table, sha256

if TYPE_CHECKING:
    import pandas as pd

BOOTSTRAPS = 2_000
PERMUTATIONS = 4_999
"""Resamples behind the intervals, and random subsets behind the p-values of the transparency report."""


def audited(arguments: Namespace) -> AuditDocument:
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
    tries = [
        (
            kind,
            Asked(
                reverse=arguments.reverse,
                null_draws=null_draws(arguments, kind, sizes),
                precision=Precision(arguments.alpha, BOOTSTRAPS, PERMUTATIONS),
                seed=arguments.seed,
            ),
        )
        for kind in kinds
    ]
    sides, used = gather_healthy(groups, space, model, scores, tries)
    kind, asked = tries[used]
    given = {
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
    }
    return document(
        Result(tuple(sides), space, model, arguments.alpha, arguments.threshold is not None, arguments.id), given
    )


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


def _model(arguments: Namespace, raw: Network, model: Model) -> dict[str, Any]:
    return {
        **model_facts(arguments.predict, raw),
        "output": model.kind,
        "threshold": model.threshold,
        "threshold_given": arguments.threshold is not None,
    }
