"""The audit of the rows of a table under any model: what may change, and the distances that the model allows.

Distances are exact for linear scores, for one decision tree in standardised units, and for numbers under a network with
one small hidden layer. For any other model they are upper bounds by a search that asks for decisions. A torch network's
search also starts from an attack along gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairness_audits.attacks.changes import Changes, Switch, box_distance, boxes_of, plane_distance
from fairness_audits.attacks.decision_search import nearest_decisions, nearest_rows
from fairness_audits.attacks.relu_distance import Layers, relu_distance
from fairness_audits.audits.loss_ratio.compute import fair_metric, people_of
from fairness_audits.audits.loss_ratio.trial import as_the_model_says, coded_rows, columns_of
from fairness_audits.audits.robustness_bias.distances import EXACT
from fairness_audits.audits.robustness_bias.measured import FAIR, Chosen, Examined, Measured, Unit, measured
from fairness_audits.audits.robustness_bias.points import Points, Subjects, check_sizes, compared, partition_of, sampled
from fairness_audits.audits.robustness_bias.settings import Attacks, Images, Input, OfRows, Settings, Shape, refuse
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.encoding import Encoding, encoding_of
from fairness_audits.inputs.model import Model, named_as
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.predictor import Predictor, coded, noted, predictor
from fairness_audits.inputs.probe import Answers, answered, model_facts, probed
from fairness_audits.inputs.table import Rows, Source, Units, attribute, classes_of, drawn, feature_names
from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import option_fields
from fairness_audits.seeds import generators
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

SEARCH = "search"
COST = 0.1
"""Length of a standard deviation along sensitive directions."""
LINEARITY = 1e-6
"""Largest relative difference between a linear model's margins and an affine map."""
UNITS = 64
"""Largest number of hidden units for which exact distances are tried."""
SHARP = 15.0
"""Largest log-odds that probabilities tell to ten digits."""
TESTED = 2000
"""Largest number of rows that are moved to compare a formula with the model."""
HALVINGS, BESIDE = 40, 1e-4
"""Bisections of a way across a formula's boundary, and the distance, as a part of the way, of points beside it."""
REFERENCE = 5000
"""Largest number of rows among which those of other decisions are looked for."""
FMN = {"steps": 20, "start_steps": 100}
"""Settings of the attack on torch networks."""


def examined(settings: Settings, source: Source, model: Model, directions: Array | None) -> Examined:
    """Find the distances of the rows of a table to another decision of the model."""
    refuse(settings, (Images, Shape, Input, Attacks), "images")
    if not settings.group:
        problem = "the audit compares groups of rows"
        raise InvalidInput(problem, option="group", remedy="Name their columns with --group")
    own = OfRows(**settings.some(*(one.name for _, one, _ in option_fields(OfRows))))
    settings, model = as_the_model_says(settings, source, model)
    groups = compared(source, settings, None)
    trial = tried(settings, source, model, directions, groups)
    settings, model = as_the_model_says(settings, source, trial.model)
    answers, changes = trial.answers, trial.changes
    label, levels = None, tuple(map(level_name, model.classes)) or None
    count = answers.trial.shape[1]
    if settings.label is not None:
        names = settings.classes or (levels if levels and len(levels) == count > 2 else None)
        label, levels = classes_of(source, settings.label, count, names, settings.positive)
    partitions = tuple(partition_of(source.table[name]) for name in groups)
    points = sampled(Points(None, np.arange(len(source.table)), label, partitions), settings)
    check_sizes(points, settings.min_group)
    some = replace(answers, trial=answers.trial[points.rows], prediction=answers.prediction[points.rows], saturated=0)
    subjects = Subjects(points, some)
    chosen, distance, evaluations = distances(trial, points.rows[subjects.correct], settings)
    every = np.full(len(points.rows), np.nan)
    every[subjects.correct] = np.where(np.isfinite(distance), distance, np.nan)
    unit = Unit("row", "L2" if changes.plain else FAIR, "standard deviations")
    result = measured(chosen, every, None, subjects, own, unit)
    return Examined(
        subjects=subjects,
        attacks=[result],
        unit=unit,
        place=source.name,
        shape=f"{len(trial.everyone.names)} features",
        classes=levels if levels and len(levels) == count else None,
        data={
            **{"path": source.name, "sha256": source.sha256, "label": settings.label},
            **{"label_levels": levels, **trial.facts},
        },
        model={**model_facts(model, some), "classes": count, "evaluations": evaluations},
        conditions={
            **conditions(trial, result),
            **trial.source.notes,
            "no_change": subjects.failures(result.bias.failed),
        },
        libraries=("numpy", "torch") if model.kind == "network" else ("numpy",),
        settings=own,
    )


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
    columns = feature_names(source, settings.features, settings.drop, settings.label, roles, "--group", False)
    known = named_as(model.names_in(source.table), source.table)
    columns = tuple(known) if known and set(known) <= set(columns) else columns
    made = predictor(model, source.inputs(columns), Computing.of(settings), True)
    codes = coded(made, settings.categorical)
    encoding = encoding_of(source, columns, model.of_frames, codes)
    source = noted(source, made, settings.categorical, codes)
    every = encoding.encoded(source)
    everyone = coded_rows(every, encoding, sensitive)
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


def conditions(trial: Trial, result: Measured) -> dict[str, Any]:
    """Return the conditions of the caveats that only rows have."""
    facts, alike = trial.facts, trial.metric
    switches, fixed = (listed(facts[key], SHOWN) for key in ("switches", "fixed"))
    return {
        "upper_bounds": result.chosen.bound == "upper" and {"attacks": f"the {result.chosen.name}", "more": ""},
        "closer_is_not_worse": {"units": result.unit.many, "why": "the spread of their numbers"},
        "changes": {
            "switched": f" ({switches})" if switches else "",
            "fixed": f" Constant columns do not change: {fixed}." if fixed else "",
        },
        "fair_metric": alike and {"cost": trial.changes.cost, "directions": listed(list(alike["directions"]), SHOWN)},
    }


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


def distances(trial: Trial, numbers: Array, settings: Settings) -> tuple[Chosen, Array, int]:
    """Return the method that the model allows, the distances of rows with these ``numbers``, and its evaluations."""
    z, own, changes = trial.z[numbers], trial.answers.prediction[numbers], trial.changes
    plane = linear_scores(trial) if changes.closed_form else None
    if plane is not None:
        return Chosen(EXACT, {}), plane_distance(*plane, z, own, changes), 0
    boxes = leaf_boxes(trial) if changes.plain else None
    if boxes is not None:
        return Chosen(EXACT, {}), box_distance(boxes, z, own, changes), 0
    features = trial.everyone.features[numbers]

    def decide(points: Array, rows: Array) -> Array:
        # Features that do not change keep their exact values.
        there = np.where(points == z[rows], features[rows], trial.units.outward(points))
        return trial.answers.decisions(there)

    some = drawn(np.arange(len(trial.z)), REFERENCE, "robustness", "reference", str(settings.seed))
    starts = nearest_rows(trial.z[some], trial.answers.prediction[some], z, own, changes)
    if (
        trial.model.kind == "network"
        and not trial.encoding.levels
        and (attacked := along_gradients(trial, z, own, Computing.of(settings))) is not None
    ):
        starts = np.concatenate([attacked[:, None], starts], axis=1)
    (rng,) = generators("audit", "robustness", SEARCH, str(settings.seed), repetitions=1)
    found = nearest_decisions(decide, z, own, starts, trial.z[some], changes, rng)
    layers = None if changes.switches or not np.isfinite(found.length).all() else one_hidden_layer(trial)
    if layers is not None and (exact := relu_distance(layers, z, own, found.length, changes)) is not None:
        return Chosen(EXACT, {}), exact, found.evaluations
    return Chosen(SEARCH, {}), found.length, found.evaluations


def linear_scores(trial: Trial) -> tuple[Array, Array] | None:
    """Return W (K, d) and b (K,) in the units of the audit if the model's scores are linear, else None.

    Columns that do not change have no weight. Their share is in b.
    """
    z, changes = trial.z, trial.changes
    base, steps = z[0].copy(), np.zeros(z.shape[1])
    base[changes.numbers], steps[changes.numbers] = 0.0, 1.0
    for one in changes.switches:
        base[one.positions], steps[one.positions] = one.levels.min(), one.levels.max()
    moving = np.flatnonzero(steps)
    try:
        at_base = trial.margins(np.vstack([base, base + np.diag(steps)[moving]]))
    except ValueError:  # of a model that does not accept these values
        return None
    weight = np.zeros((at_base.shape[1], len(base)))
    if not np.isfinite(at_base).all():
        return None
    weight[:, moving] = (at_base[1:] - at_base[0]).T / steps[moving]
    bias = at_base[0] - weight @ base
    return (weight, bias) if agrees(trial, lambda z: z @ weight.T + bias) else None


def agrees(trial: Trial, scores: Callable[[Array], Array]) -> bool:
    """Return whether a formula has the model's decisions and differences of scores.

    They are compared at all rows, at rows with the switches of other rows, at both with their numbers moved by one and
    by ten standard deviations, and close to the formula's own boundary. Log-probabilities are told up to SHARP. Where
    one is beyond it, the other must be beyond it as well.
    """
    told = np.inf if trial.model.margins is not None or trial.answers.kind == "logits" else SHARP
    size, within = 0.0, False
    try:
        for number, points in enumerate(tests_of(trial, scores)):
            there, expected = trial.margins(points), scores(points)
            if there.shape != expected.shape or not np.isfinite(expected).all() or np.isnan(there).any():
                return False
            first = expected.argmax(axis=1)
            with np.errstate(invalid="ignore"):  # infinite scores have no gap and do not agree
                gaps, wanted = (
                    (one[np.arange(len(one)), first][:, None] - one).clip(-told, told) for one in (there, expected)
                )
            size = max(size, float(np.abs(gaps).max(initial=0)))
            within |= bool((np.abs(wanted).max(axis=1) < told).any())
            alike = np.abs(gaps - wanted).max(initial=0) <= LINEARITY * size
            # The first points are the rows.
            if not alike or not np.array_equal(first, trial.decisions(points) if number else trial.answers.prediction):
                return False
    except ValueError:  # of a model that does not accept these values
        return False
    return within


def tests_of(trial: Trial, scores: Callable[[Array], Array]) -> Iterator[Array]:
    """Yield points at which to compare a formula with the model, the rows first; see :func:`agrees`."""
    rng, numbers = np.random.default_rng(0), trial.changes.numbers
    yield trial.z
    some = trial.z[np.sort(rng.permutation(len(trial.z))[:TESTED])]
    start = np.concatenate([some] * 2)
    for one in trial.changes.switches:
        start[len(some) :, one.positions] = rng.permutation(some[:, one.positions])
    near, far = start.copy(), start.copy()
    near[:, numbers] += rng.normal(size=(len(start), len(numbers)))
    far[:, numbers] += 10 * rng.normal(size=(len(start), len(numbers)))
    yield start[len(some) :]
    yield near
    yield far
    crossing = scores(start).argmax(axis=1) != scores(far).argmax(axis=1)
    if not crossing.any():
        return
    start, far = start[crossing], far[crossing]
    own, low, high = scores(start).argmax(axis=1), np.zeros((len(start), 1)), np.ones((len(start), 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        same = (scores(start + middle * (far - start)).argmax(axis=1) == own)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    for place in (np.maximum(low - BESIDE, 0.0), np.minimum(high + BESIDE, 1.0)):
        yield start + place * (far - start)


def one_hidden_layer(trial: Trial) -> Layers | None:
    """Return the weights of a torch or scikit-learn network with one hidden ReLU layer of at most UNITS units.

    They are in the units of the audit. None for any other model.
    """
    weights = layers_of(trial.model)
    if weights is None or trial.encoding.levels or weights[0].shape[1:] != trial.units.scale.shape:
        return None
    w1, b1, w2, b2 = weights
    if len(w2) == 1:
        w2, b2 = np.vstack([0 * w2, w2]), np.append(0 * b2, b2)
    layers = Layers(w1 * trial.units.scale, b1 + w1 @ trial.units.shift, w2, b2)
    return layers if len(b1) <= UNITS and agrees(trial, layers.scores) else None


def layers_of(model: Model) -> list[Array] | None:
    """Return W1 (H, d), b1 (H,), W2 (K, H), b2 (K,) of a network with one hidden layer, None for any other model."""
    if model.kind == "network":
        import torch

        linear = [one for one in model.fitted.modules() if isinstance(one, torch.nn.Linear)]
        if len(linear) != 2 or any(one.bias is None for one in linear):
            return None
        return [values.double().cpu().numpy() for one in linear for values in (one.weight, one.bias)]
    steps = [step for _, step in getattr(model.fitted, "steps", [("", model.fitted)])]
    net, scalers = steps[-1], steps[:-1]
    if len(getattr(net, "coefs_", ())) != 2 or any(type(one).__name__ != "StandardScaler" for one in scalers):
        return None
    (w1, w2), (b1, b2) = (np.asarray(one, dtype=float).T for one in net.coefs_), net.intercepts_
    for one in reversed(scalers):
        w1 = w1 / (1.0 if one.scale_ is None else one.scale_)
        b1 = b1 - w1 @ (0.0 * w1[0] if one.mean_ is None else one.mean_)
    return [w1, b1, w2, b2]


def leaf_boxes(trial: Trial) -> Any:
    """Return the leaf boxes of one decision tree in the units of the audit, None for any other model."""
    tree, d = getattr(trial.model.fitted, "tree_", None), len(trial.everyone.names)
    if tree is None or trial.encoding.levels or tree.n_features != d or not len(trial.model.classes):
        return None
    feature = np.maximum(tree.feature, 0)
    threshold = (tree.threshold - trial.units.shift[feature]) / trial.units.scale[feature]
    decision = tree.value[:, 0].argmax(axis=1)
    boxes = boxes_of(feature, threshold, tree.children_left, tree.children_right, decision, d)

    def scores(z: Array) -> Array:
        return np.asarray(np.eye(decision.max() + 1)[boxes.of(z)])

    # The model may decide by another threshold, and scikit-learn compares in single precision.
    alike = all(np.array_equal(boxes.of(z), trial.decisions(z)) for z in tests_of(trial, scores))
    return boxes if alike else None


def along_gradients(trial: Trial, z: Array, own: Array, computing: Computing) -> Array | None:
    """Return points (n, d) of other decisions by the fast minimum-norm attack; None if there is no gradient."""
    import torch

    from fairness_audits.attacks.row_networks import fmn_of_rows

    features = torch.tensor(trial.everyone.features, dtype=computing.dtype, device=computing.device)
    try:
        scores = probed(trial.model, features, trial.everyone.names, trial.answers.kind)
    except ValueError:
        return None

    def network(rows: torch.Tensor) -> torch.Tensor:
        return scores.evaluate(trial.units.network_input(rows).to(features)).cpu()

    return fmn_of_rows(network, z, own, **FMN, numbers=trial.changes.numbers, keep=True).points
