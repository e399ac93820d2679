"""What the fair metric treats as equal: learned from sensitive attributes, or given as directions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.cli.columns import Rows
from pipeline.cli.units import Units
from pipeline.fair_metric import FairMetric, from_directions, learn
from pipeline.types import Array


@dataclass(frozen=True)
class Equated:
    """A fair metric, and where its directions come from.

    ``names`` (m) say where each direction comes from, ``loadings`` (m, d) are the directions scaled to length 1, in the
    units of the audit. ``separation[name]`` is the area under the ROC curve of telling the attribute's two groups apart
    along its direction: near .5 the direction says little about the attribute.
    """

    metric: FairMetric
    names: tuple[str, ...]
    loadings: Array
    separation: Mapping[str, float]


def learned(rows: Rows, units: Units) -> Equated:
    """The metric that ignores what tells the groups of the sensitive attributes apart on these rows."""
    from sklearn.metrics import roc_auc_score

    if len(rows.sensitive_inputs) == len(rows.names):
        raise ValueError("expected features beside the sensitive columns to learn the fair metric from, found none")
    points = units.inward(rows.features)
    metric = learn(points, rows.sensitive, rows.sensitive_inputs)
    assert metric.directions is not None
    separation = {
        name: float(roc_auc_score(group, points @ direction))
        for (name, group), direction in zip(rows.sensitive.items(), metric.directions, strict=False)
    }
    names = (*rows.sensitive, *(f"input {rows.names[position]}" for position in rows.sensitive_inputs))
    return Equated(metric, names, _unit(metric.directions), separation)


def given_directions(path: Path, rows: Rows, units: Units) -> Equated:
    """The metric that ignores displacements along the rows of a ``.npy`` file (m, d), in the columns' own units."""
    d = len(rows.names)
    try:
        directions = np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    except FileNotFoundError as error:
        raise ValueError(f"there is no file {path}: --directions takes a .npy file of shape (number, {d})") from error
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise ValueError(f"{path} does not hold an array of numbers: write it with numpy.save") from error
    directions = directions[None, :] if directions.ndim == 1 else directions
    if directions.ndim != 2 or directions.shape[1] != d or not len(directions):
        raise ValueError(
            f"expected --directions of shape (number, {d}), one entry for each feature in the order "
            f"{', '.join(rows.names)}; found shape {directions.shape} in {path}"
        )
    # A displacement by v in the columns' units is one by v / scale in those of the audit.
    try:
        metric = from_directions(directions / units.scale)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    assert metric.directions is not None
    names = tuple(f"direction {number}" for number in range(len(directions)))
    return Equated(metric, names, _unit(metric.directions), {})


def _unit(directions: Array) -> Array:
    scaled = directions / np.abs(directions).max(axis=1, keepdims=True)
    return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
