"""A model that was tried on the rows of a table, and what may change in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairness_audits.attacks.changes import Changes, Switch
from fairness_audits.audits.alike import columns_of, fair_metric, people_of
from fairness_audits.audits.robustness_bias.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.encoding import Encoding, encoding_of
from fairness_audits.inputs.model import Model, named_as
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import Predictor, coded, noted, predictor
from fairness_audits.inputs.probe import Answers, answered
from fairness_audits.inputs.table import Rows, Source, Units, attribute, feature_names
from fairness_audits.values import Array

COST = 0.1
"""Length of a standard deviation along sensitive directions."""


@dataclass(frozen=True)
class Trial:
    """A model that was tried on ``everyone``, and what may change in the rows.

    ``columns`` are the names of the columns that change as a whole, by the positions of their features. ``metric``
    describes the fair metric, None without one.
    """

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
    def facts(self) -> dict[str, Any]:
        """Return the features and what may change in them, for the JSON."""
        numbers = [self.columns[j,] for j in self.changes.numbers.tolist()]
        switches = [self.columns[tuple(one.positions.tolist())] for one in self.changes.switches]
        return {
            "features": list(self.everyone.names),
            "numbers": numbers,
            "switches": switches,
            "fixed": [name for name in self.columns.values() if name not in {*numbers, *switches}],
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


def tried(settings: Settings, source: Source, model: Model, directions: Array | None, groups: Sequence[str]) -> Trial:
    """Return the trial of the model on all rows. Raises InvalidInput if it decides alike for all of them."""
    sensitive = [attribute(text, source.columns) for text in settings.sensitive]
    apart = [one.column for one in sensitive]
    roles = [name for name in (*groups, *apart) if name != settings.label]
    columns = feature_names(source, settings.features, settings.drop, settings.label, roles, "group", False)
    known = named_as(model.names_in(source.table), source.table)
    columns = tuple(known) if known and set(known) <= set(columns) else columns
    made = predictor(model, source.inputs(columns), Computing.of(settings), True)
    codes = coded(made, settings.categorical)
    encoding = encoding_of(source, columns, model.of_frames, codes)
    source = noted(source, made, settings.categorical, codes)
    every = encoding.encoded(source)
    everyone = encoding.rows(every, sensitive)
    people = people_of(everyone, settings.one_hot, encoding.categories)
    units, changes = what_changes(everyone.features, people.categories)
    alike: Mapping[str, Any] | None = None
    if sensitive or settings.directions is not None or directions is not None:
        metric, alike = fair_metric(settings.directions, everyone, every, directions, units, settings.seed)
        cost = COST if settings.sensitive_cost is None else settings.sensitive_cost
        changes = replace(changes, basis=metric.basis, cost=cost)
    answers = answered(made, encoding, everyone.features, np.arange(len(everyone.features)), settings.output_kind)
    if len(np.unique(answers.prediction)) < 2:
        raise InvalidInput(
            f"{model.name} makes the same decision for all {len(everyone.features):,} rows, so there is no decision "
            "boundary",
            option="model",
            remedy="Check the order of its inputs, or audit rows with both decisions",
        )
    whole = {places: name for name, places in columns_of(everyone.names, encoding, people, settings.one_hot).items()}
    return Trial(made, source, encoding, everyone, units, changes, answers, whole, alike)


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
