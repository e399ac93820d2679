"""Fitted linear models and networks of scikit-learn as layers, which have a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from fairness_audits.inputs.encoding import Encoding
from fairness_audits.inputs.known import WRAPPERS
from fairness_audits.inputs.model import HALF, Model
from fairness_audits.inputs.probe import Answers
from fairness_audits.models.layers import ACTIVATIONS, Layers
from fairness_audits.values import Array

AFFINE = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer", "PCA")
"""Steps of scikit-learn before a model that are affine maps of numbers that are not missing."""
ALIKE = 1e-5
"""Largest difference between the probabilities of the layers and of the model, which may be in single precision."""


def layers_of(model: Model, answers: Answers, encoding: Encoding, features: Array) -> Layers | None:
    """Return the model as layers of the columns' own units, None if it is no such model.

    This may be a linear model or a multi-layer perceptron of scikit-learn, also after scalers and within a search for
    parameters or for a threshold. The layers have the model's probabilities at the rows ``features`` (n, d), which have
    the ``answers``.
    """
    if model.kind != "estimator" or encoding.levels:
        return None
    steps, found = _parts(model.fitted)
    if found is None:
        return None
    d = len(encoding.names)
    corners = pd.DataFrame(np.vstack([np.zeros(d), np.eye(d)]), columns=list(encoding.names))
    rows: Any = corners.to_numpy()
    try:
        if model.columns:
            rows = corners[list(model.columns)]
        for step in steps:
            rows = step.transform(rows)
        at = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        found = found.after(at[1:] - at[0], at[0])
        if answers.regression:
            found = Layers(found.weights, (*found.biases[:-1], found.biases[-1] - [0.0, HALF]), found.activation)
        own = found.scores(features)
    except (KeyError, ValueError):  # a step that takes no such rows, or layers of other widths
        return None
    return found if _agree(own, answers) else None


def is_layered(fitted: Any) -> bool:
    """Return whether a model has the form of layers; :func:`layers_of` also compares its answers."""
    return _parts(fitted)[1] is not None


def _parts(fitted: Any) -> tuple[list[Any], Layers | None]:
    """Return the steps before a model, and the model as layers of their output, None if it has another form."""
    steps, head = _unwrapped(fitted)
    return steps, _head(head) if all(map(_is_affine, steps)) else None


def _agree(scores: Array, answers: Answers) -> bool:
    """Return whether scores (n, K) are the model's, which must not all be probabilities of 0 and 1."""
    if scores.shape != answers.trial.shape:
        return False
    if answers.kind == "logits":
        own, theirs = (some - some.mean(axis=1, keepdims=True) for some in (scores, answers.trial))
        return bool(np.abs(own - theirs).max() <= ALIKE * np.abs(theirs).max())
    own, theirs = softmax(scores, axis=1), softmax(answers.trial, axis=1)
    return bool(np.abs(own - theirs).max() <= ALIKE and theirs.max(axis=1).min() < 1 - ALIKE)


def _unwrapped(fitted: Any) -> tuple[list[Any], Any]:
    """Return the steps before a model, and the model inside pipelines and wrappers."""
    if hasattr(fitted, "steps"):
        steps, head = _unwrapped(fitted.steps[-1][1])
        return [*(one for _, one in fitted.steps[:-1] if one not in (None, "passthrough")), *steps], head
    inside = next((one for name in WRAPPERS if (one := getattr(fitted, name, None)) is not None), None)
    return ([], fitted) if inside is None else _unwrapped(inside)


def _is_affine(step: Any) -> bool:
    """Return whether a step is an affine map of its input."""
    if isinstance(step, str):
        return step in ("passthrough", "drop")
    if hasattr(step, "steps"):
        return all(_is_affine(one) for _, one in step.steps)
    if hasattr(step, "transformers_"):
        return all(_is_affine(one) for _, one, _ in step.transformers_)
    known = type(step).__name__ in AFFINE or getattr(step, "func", step) is None  # a FunctionTransformer without one
    return known and type(step).__module__.startswith("sklearn.") and not getattr(step, "clip", False)


def _head(fitted: Any) -> Layers | None:
    """Return a model of scikit-learn as layers of its own input; one score is that of class 1."""
    if hasattr(fitted, "coefs_"):
        weights, biases = list(fitted.coefs_), list(fitted.intercepts_)
        activation = fitted.activation
    elif hasattr(fitted, "coef_") and hasattr(fitted, "intercept_"):
        weights = [np.atleast_2d(np.asarray(fitted.coef_, dtype=np.float64)).T]
        biases, activation = [np.atleast_1d(fitted.intercept_) + np.zeros(weights[0].shape[1])], "identity"
    else:
        return None
    if activation not in ACTIVATIONS:
        return None
    if weights[-1].shape[1] == 1:
        weights[-1], biases[-1] = np.hstack([0 * weights[-1], weights[-1]]), np.append(0.0, biases[-1])
    first, last = (tuple(np.asarray(one, dtype=np.float64) for one in many) for many in (weights, biases))
    return Layers(first, last, activation)
