"""The whole measurement: try the network on the rows, attack them, test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.cli.audit.loss_ratio.equated import Equated
from pipeline.cli.audit.loss_ratio.evidence import Evidence, Settings, gather
from pipeline.cli.columns import Rows
from pipeline.cli.network import Network
from pipeline.cli.output_kind import Kind
from pipeline.cli.probe import Scores, probed
from pipeline.cli.units import Units
from pipeline.types import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Result:
    """What was measured, of which ``rows`` with which numbers in the file (n,), model, metric and settings.

    ``same_rows``: the metric was learned on the audited rows.
    """

    evidence: Evidence
    rows: Rows
    row_numbers: Array
    units: Units
    scores: Scores
    equated: Equated
    settings: Settings
    same_rows: bool


def measured(
    network: Network,
    rows: Rows,
    row_numbers: Array,
    units: Units,
    equated: Equated,
    settings: Settings,
    kind: Kind | None = None,
    same_rows: bool = False,
) -> Result:
    """Audit the network on the rows; ``kind`` None is read off its outputs.

    Raises ValueError for a network that cannot be audited, an unstable step size, and too few finite ratios.
    """
    import torch

    dtype: torch.dtype = getattr(torch, settings.dtype)
    features = torch.tensor(rows.features, dtype=dtype, device=settings.device)
    scores = probed(network, features, rows.names, kind)
    evidence = gather(scores.evaluate, rows.features, rows.label, equated.metric, units, settings)
    return Result(evidence, rows, row_numbers, units, scores, equated, settings, same_rows)
