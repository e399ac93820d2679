"""A model that was tried on the rows of a table, and what may change in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairness_audits.arguments import OutputKind
from fairness_audits.attacks.changes import Changes, Switch
from fairness_audits.audits.alike import columns_of, fair_metric, people_of
from fairness_audits.audits.robustness_bias.points import Points, compared, partition_of
from fairness_audits.audits.scaling import Units
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.encoding import Encoding, encoding_of
from fairness_audits.inputs.model import Model, as_the_model_says, named_as
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import Predictor, coded, noted, predictor
from fairness_audits.inputs.probe import Answers, answered
from fairness_audits.inputs.table import Rows, Source, attribute, classes_of, feature_names
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

COST = 0.1
"""Length of a standard deviation along sensitive directions."""


@dataclass(frozen=True)
class Trial:
    """A model that was tried on ``everyone``, and what may change in the rows.

    ``points`` are all rows with their groups and true classes, from the column ``label``. ``levels`` are the values
    behind the classes, None if unknown. ``columns`` are the names of the columns that change as a whole, by the
    positions of their features. ``metric`` describes the fair metric, None without one.
    """

    points: Points
    label: str | None
    levels: tuple[str, ...] | None
    predictor: Predictor
    source: Source
    encoding: Encoding
    everyone: Rows
    units: Units
    changes: Changes
    answers: Answers
    columns: Mapping[tuple[int, ...], str]
    metric: Mapping[str, Any] | None

    @property
    def model(self) -> Model:
        """Return the model itself."""
        return self.predictor.model

    @property
    def z(self) -> Array:
        """Return all rows in the units of the audit."""
        return self.units.inward(self.everyone.features)

    @property
    def switches(self) -> list[str]:
        """Return the columns whose values switch: categories, and columns of two values."""
        return [self.columns[tuple(one.positions.tolist())] for one in self.changes.switches]

    @property
    def facts(self) -> dict[str, Any]:
        """Return the features and what may change in them, for the JSON."""
        numbers = [self.columns[j,] for j in self.changes.numbers.tolist()]
        return {
            "features": list(self.everyone.names),
            "numbers": numbers,
            "switches": self.switches,
            "fixed": [name for name in self.columns.values() if name not in {*numbers, *self.switches}],
            "scale": dict(zip(self.everyone.names, self.units.scale.tolist(), strict=True)),
            "fair_metric": self.metric and {**self.metric, "cost": self.changes.cost},
        }

    def decisions(self, z: Array) -> Array:
        """Return the model's decisions (m,) at points in the units of the audit."""
        return self.answers.decisions(self.units.outward(z))

    def margins(self, z: Array) -> Array:
        """Return the scores (m, K) of points in the units of the audit: the decision function, if there is one."""
        if self.model.margins is None:
            return self.answers.scores(self.units.outward(z))
        found = self.predictor.margins(self.encoding.decoded(self.units.outward(z)))
        return np.stack([np.zeros(len(found)), found], axis=1) if found.ndim == 1 else found


def tried(
    source: Source,
    model: Model,
    *,
    label: str | None,
    group: Sequence[str],
    positive: str | None,
    classes: Sequence[str] | None,
    features: Sequence[str],
    drop: Sequence[str],
    categorical: Sequence[str],
    one_hot: Sequence[str],
    sensitive: Sequence[str],
    directions: Path | Array | None,
    sensitive_cost: float | None,
    output_kind: OutputKind,
    computing: Computing,
    seed: int,
) -> Trial:
    """Return the trial of the model on all rows. Raises InvalidInput if it decides alike for all of them.

    With ``sensitive`` columns or ``directions``, from a file or an array, distances are in the fair metric.
    """
    named: Any = {"label": label, "classes": classes}
    features, positive, model = as_the_model_says(model, source, features=features, positive=positive, **named)
    groups = compared(source, group, label)
    attributes = [attribute(text, source.columns) for text in sensitive]
    apart = [one.column for one in attributes]
    roles = [name for name in (*groups, *apart) if name != label]
    columns = feature_names(source, features, drop, label, roles, "group", False)
    known = named_as(model.names_in(source.table), source.table)
    # The search takes the model's own order, and directions come in that of the table or of ``features``.
    asked, columns = columns, tuple(known) if known and set(known) <= set(columns) else columns
    made = predictor(model, source.inputs(columns), computing, True)
    codes = coded(made, categorical)
    encoding = encoding_of(source, columns, model.of_frames, codes)
    source = noted(source, made, categorical, codes)
    every = encoding.encoded(source)
    everyone = encoding.rows(every, attributes)
    people = people_of(everyone, one_hot, encoding.categories)
    units, changes = what_changes(everyone.features, people.categories)
    described: Mapping[str, Any] | None = None
    if sensitive or directions is not None:
        file, array = (directions, None) if isinstance(directions, Path) else (None, directions)
        metric, described = fair_metric(file, everyone, every, array, units, seed, encoding.in_order(asked))
        changes = replace(changes, basis=metric.basis, cost=COST if sensitive_cost is None else sensitive_cost)
    answers = answered(made, encoding.decoded(everyone.features), source.name, output_kind, decoded=encoding.decoded)
    if len(np.unique(answers.prediction)) < 2:
        raise InvalidInput(
            f"{model.name} makes the same decision for all {len(everyone.features):,} rows, so there is no decision "
            "boundary",
            option="model",
            remedy="Check the order of its inputs, or audit rows with both decisions",
        )
    # After the trial, the model may know its classes.
    _, positive, model = as_the_model_says(made.model, source, features=features, positive=positive, **named)
    truth, levels, count = None, tuple(map(level_name, model.classes)) or None, answers.trial.shape[1]
    if label is not None:
        order = classes or (levels if levels and len(levels) == count > 2 else None)
        truth, levels = classes_of(source, label, count, order, positive)
    partitions = tuple(partition_of(source.table[name]) for name in groups)
    points = Points(None, np.arange(len(source.table)), truth, partitions)
    whole = {places: name for name, places in columns_of(everyone.names, encoding, people, one_hot).items()}
    return Trial(points, label, levels, made, source, encoding, everyone, units, changes, answers, whole, described)


def what_changes(features: Array, categories: Sequence[tuple[int, ...]]) -> tuple[Units, Changes]:
    """Return the units of the audit, and what may change in rows (n, d).

    Numbers of more than two values have standard deviation 1. Columns of two values, and ``categories`` given by the
    positions of their indicators, are switches of length 1. Constant columns are fixed.
    """
    d = features.shape[1]
    shift, scale = np.zeros(d), np.ones(d)
    indicators = {j for group in categories for j in group}
    numbers, switches = [], [Switch(np.array(group), np.eye(len(group)) / np.sqrt(2)) for group in categories]
    scale[sorted(indicators)] = np.sqrt(2)
    for j in sorted(set(range(d)) - indicators):
        values = np.unique(features[:, j])
        if len(values) > 2:
            numbers.append(j)
            shift[j], scale[j] = features[:, j].mean(), features[:, j].std()
        elif len(values) == 2:
            shift[j], scale[j] = values[0], values[1] - values[0]
            switches.append(Switch(np.array([j]), np.array([[0.0], [1.0]])))
    return Units(shift, scale).knowing(features), Changes(np.array(numbers, dtype=int), switches, np.zeros((d, 0)))
