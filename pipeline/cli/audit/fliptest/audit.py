"""From the arguments of a FlipTest to groups, model and maps, and from these to its document."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import numpy as np
import pandas as pd

from pipeline.audits.precision import Precision
from pipeline.cli.audit.fliptest.document import Result, document
from pipeline.cli.audit.fliptest.evidence import Asked, gather_healthy
from pipeline.cli.audit.fliptest.groups import accuracies, read_groups
from pipeline.cli.audit.fliptest.maps import candidates, null_draws
from pipeline.cli.audit.fliptest.model import load_model, probed
from pipeline.cli.audit.fliptest.space import space_of
from pipeline.cli.document import AuditDocument
from pipeline.cli.probe import model_facts
from pipeline.cli.table import read_table, sha256

BOOTSTRAPS = 2_000
PERMUTATIONS = 4_999
"""Resamples behind the intervals, and random subsets behind the p-values of the transparency report."""


def audited(arguments: Namespace) -> AuditDocument:
    """Read, check, map, ask the model, compare. Raises ValueError for everything that the user can mend."""
    table = read_table(arguments.data)
    groups = read_groups(table, arguments)
    space = space_of(groups, arguments)
    source, target = (replace(one, features=space.prepared(one.features)) for one in (groups.source, groups.target))
    groups = replace(groups, source=source, target=target)
    sizes = (len(source.rows), len(target.rows))
    kinds = candidates(arguments, sizes)
    raw = load_model(arguments)
    model, scores = probed(raw, pd.concat([source.features, target.features]), arguments.threshold, arguments.data)
    precision = Precision(arguments.alpha, BOOTSTRAPS, PERMUTATIONS)
    tries = [
        (kind, Asked(arguments.reverse, null_draws(arguments, kind, sizes), precision, arguments.seed))
        for kind in kinds
    ]
    sides, used = gather_healthy(groups, space, model, scores, tries)
    kind, asked = tries[used]
    cut = arguments.threshold is not None
    labels = None if source.label is None or target.label is None else np.concatenate([source.label, target.label])
    given = {
        **accuracies(labels, model.decisions(scores)),
        "data": {
            "path": str(arguments.data),
            "sha256": sha256(arguments.data),
            "rows": len(table),
            "left_out": dict(groups.left_out),
            "features": [one.name for one in space.inputs],
            "columns": list(space.labels),
            "standardized": list(space.standardized),
            "unmoved": list(space.unmoved),
            **{name: getattr(arguments, name) for name in ("group", "id", "label", "given_label")},
            "label_levels": None if groups.label_levels is None else list(groups.label_levels),
        },
        "model": {
            **model_facts(arguments.predict, raw),
            "output": model.kind,
            "threshold": model.threshold,
            "threshold_given": cut,
        },
        "map": {
            "name": kind.name,
            "asked": arguments.map,
            "poor": [other.name for other in kinds[:used]],
            "settings": dict(kind.settings),
        },
        "parameters": {
            "alpha": arguments.alpha,
            "bootstraps": BOOTSTRAPS,
            "permutations": PERMUTATIONS,
            "null_draws": asked.null_draws,
            "seed": arguments.seed,
        },
    }
    return document(Result(tuple(sides), space, model, arguments.alpha, cut, arguments.id), given)
