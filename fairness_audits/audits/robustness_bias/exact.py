"""Exact distances of the rows of a table: a model's coefficients, leaves or weights, in the units of the audit.

The caller says that a model has exact distances. A model whose scores or decisions differ from what is read is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from fairness_audits.attacks.changes import Boxes, boxes_of
from fairness_audits.attacks.relu_distance import Layers
from fairness_audits.audits.robustness_bias.table_trial import Trial
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model import WHAT, Model
from fairness_audits.messages import reason
from fairness_audits.values import Array

LINEARITY = 1e-6
"""Largest relative difference between a model's differences of scores and those of its formula."""
UNITS = 64
"""Largest number of hidden units."""
SHARP = 15.0
"""Largest log-odds that probabilities tell to ten digits."""
TESTED = 2000
"""Largest number of rows that are moved to compare a formula with the model."""
HALVINGS, BESIDE = 40, 1e-4
"""Bisections of a way across a formula's boundary, and the distance, as a part of the way, of points beside it."""

DIFFERS = {
    "tree": "its decisions differ from those of its tree",
    "network": "its scores or decisions differ from those of two layers with ReLU",
    "linear": "its scores are not linear in the columns, or its decisions do not follow from them",
}
"""Why a model has no exact distances, by the form that it seems to have."""


class Plane(NamedTuple):
    """Linear scores W z + b: ``weight`` (K, d), ``bias`` (K,)."""

    weight: Array
    bias: Array

    def scores(self, z: Array) -> Array:
        """Return the scores (n, K) of points (n, d)."""
        return np.asarray(z @ self.weight.T + self.bias)


Formula = Plane | Boxes | Layers


def refused(trial: Trial, why: str) -> InvalidInput:
    """Return the error for a model without exact distances."""
    return InvalidInput(
        f"attack='exact' has no exact distances for {trial.model.name}, {WHAT[trial.model.kind]}: {why}. It needs a "
        "model with scores linear in the columns, one scikit-learn decision tree, or a torch or scikit-learn network "
        f"with one hidden ReLU layer of at most {UNITS} units",
        option="attack",
        remedy="Leave attack out to get upper bounds",
    )


def formula_of(trial: Trial) -> Formula:
    """Return what the model computes as a formula. Raises InvalidInput if it has none with exact distances."""
    kind, obstacles, read = form_of(trial)
    if why := next((why for why, there in obstacles.items() if there), None):
        raise refused(trial, why)
    try:
        formula = read()
        if formula is not None and agree(trial, formula):
            return formula
    except ValueError as error:
        raise refused(trial, f"it does not take rows with other values ({reason(error)})") from error
    raise refused(trial, DIFFERS[kind])


def form_of(trial: Trial) -> tuple[str, Mapping[str, bool], Callable[[], Formula | None]]:
    """Return the form that the model seems to have, what rules out exact distances, and the reader of its formula.

    The formula has the model's coefficients, leaves or weights in the units of the audit. It is None if the model
    and the audit have different columns.
    """
    model, changes, (shift, scale) = trial.model, trial.changes, (trial.units.shift, trial.units.scale)
    categories = {f"the column {name!r} is a category": True for name in list(trial.encoding.levels)[:1]}
    if (tree := getattr(model.fitted, "tree_", None)) is not None:

        def boxes() -> Boxes | None:
            if tree.n_features != len(scale) or not len(model.classes):
                return None
            feature, decision = np.maximum(tree.feature, 0), tree.value[:, 0].argmax(axis=1)
            threshold = (tree.threshold - shift[feature]) / scale[feature]
            return boxes_of(feature, threshold, tree.children_left, tree.children_right, decision, len(scale))

        return "tree", {"a tree has none in a fair metric": not changes.plain, **categories}, boxes
    if (weights := layers_of(model)) is not None:
        w1, b1, w2, b2 = weights

        def layers() -> Layers | None:
            two = len(w2) == 1
            last = (np.vstack([0 * w2, w2]), np.append(0 * b2, b2)) if two else (w2, b2)
            return Layers(w1 * scale, b1 + w1 @ shift, *last) if w1.shape[1:] == scale.shape else None

        switches = {f"the column {name!r} has two values": True for name in trial.switches[:1]}
        return "network", {f"it has {len(b1)} hidden units": len(b1) > UNITS, **categories, **switches}, layers
    why = "in a fair metric, a linear model has none if a column has two values or is a category"
    return "linear", {why: not changes.closed_form}, lambda: linear_scores(trial)


def linear_scores(trial: Trial) -> Plane | None:
    """Return the differences of the model's scores between unit steps of the columns, None if they are infinite.

    Columns that do not change have no weight. Their share is in the bias.
    """
    z, changes = trial.z, trial.changes
    base, steps = z[0].copy(), np.zeros(z.shape[1])
    base[changes.numbers], steps[changes.numbers] = 0.0, 1.0
    for one in changes.switches:
        base[one.positions], steps[one.positions] = one.levels.min(), one.levels.max()
    moving = np.flatnonzero(steps)
    at_base = trial.margins(np.vstack([base, base + np.diag(steps)[moving]]))
    if not np.isfinite(at_base).all():
        return None
    weight = np.zeros((at_base.shape[1], len(base)))
    weight[:, moving] = (at_base[1:] - at_base[0]).T / steps[moving]
    return Plane(weight, at_base[0] - weight @ base)


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


def agree(trial: Trial, formula: Formula) -> bool:
    """Return whether a formula has the model's decisions and, but for a tree, its differences of scores.

    Log-probabilities are told up to SHARP. Where one is beyond it, the other must be beyond it as well. A model may
    decide by another threshold, and scikit-learn's trees compare in single precision.
    """
    told = np.inf if trial.model.margins is not None or trial.answers.kind == "logits" else SHARP
    size, within = 0.0, isinstance(formula, Boxes)
    for number, points in enumerate(tests_of(trial, formula)):
        expected = formula.scores(points)
        first = expected.argmax(axis=1)
        # The first points are the rows.
        if not np.array_equal(first, trial.decisions(points) if number else trial.answers.prediction):
            return False
        if isinstance(formula, Boxes):
            continue
        there = trial.margins(points)
        if there.shape != expected.shape or not np.isfinite(expected).all() or np.isnan(there).any():
            return False
        with np.errstate(invalid="ignore"):  # infinite scores have no gap and do not agree
            gaps, wanted = (
                (one[np.arange(len(one)), first][:, None] - one).clip(-told, told) for one in (there, expected)
            )
        size = max(size, float(np.abs(gaps).max(initial=0)))
        within |= bool((np.abs(wanted).max(axis=1) < told).any())
        if not np.abs(gaps - wanted).max(initial=0) <= LINEARITY * size:
            return False
    return within


def tests_of(trial: Trial, formula: Formula) -> Iterator[Array]:
    """Yield points at which to compare a formula with the model.

    These are all rows, rows with the switches of other rows, both with their numbers moved by one and by ten standard
    deviations, and points on both sides of the formula's own boundary.
    """
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
    own = formula.scores(start).argmax(axis=1)
    crossing = formula.scores(far).argmax(axis=1) != own
    start, far, own = start[crossing], far[crossing], own[crossing]
    low, high = np.zeros((len(start), 1)), np.ones((len(start), 1))
    for _ in range(HALVINGS if len(start) else 0):
        middle = (low + high) / 2
        same = (formula.scores(start + middle * (far - start)).argmax(axis=1) == own)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    for place in (np.maximum(low - BESIDE, 0.0), np.minimum(high + BESIDE, 1.0)) if len(start) else ():
        yield start + place * (far - start)
