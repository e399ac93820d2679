"""Architectures: from parameters and inputs to decisions, one module each.

Every architecture module offers, for parameters whose arrays have the repetition axis R first,

- ``predict(parameters, x)``: NumPy, the decision 0 or 1 about each row, x (R, n, d) -> (R, n);
- ``score(parameters, x)``: NumPy, what the decision is made by, (R, n): P(y = 1 | x) or a real number;

those whose decision can be told from the score without loss (a probability rounds where the decision does not),

- ``decided(parameters, score)``: NumPy, the decision about rows of these scores, (R, n) -> (R, n);

and those that say probabilities, which attacks go through,

- ``log_probabilities(parameters, x)``: torch, x (R, n, d) -> (R, n, 2), differentiable, on any device;
- ``loss_and_gradient(parameters, x, y)``: NumPy closed form of the cross entropy (R, n), its gradient in x (R, n, d).
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


def architecture(name: str) -> ModuleType:
    """The module that evaluates classifiers of this architecture; InvalidInput if there is none of that name."""
    from fairness_audits.models import kernel, linear, logistic_mixture, mlp, thresholds

    modules = (mlp, logistic_mixture, linear, kernel, thresholds)
    known = {module.__name__.rpartition(".")[2]: module for module in modules}
    if name not in known:
        raise InvalidInput(f"expected an architecture among {', '.join(known)}, found {name!r}", option="architecture")
    return known[name]


def stacked(arrays: Sequence[Array], fill: float = 0.0) -> Array:
    """One array with an axis before theirs, the shorter of them filled up with ``fill`` at the end of their first."""
    longest = max(len(array) for array in arrays)
    widths = [[(0, longest - len(array)), *[(0, 0)] * (array.ndim - 1)] for array in arrays]
    return np.stack([np.pad(array, width, constant_values=fill) for array, width in zip(arrays, widths, strict=True)])
