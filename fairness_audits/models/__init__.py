"""Architectures, one module each: functions from parameters and inputs to decisions.

Every module has these functions, for parameters whose arrays have the repetition axis R first:

- ``predict(parameters, x)``: NumPy, the decision 0 or 1 about each row, x (R, n, d) -> (R, n);
- ``score(parameters, x)``: NumPy, the score behind the decision, (R, n): P(y = 1 | x) or a real number.

If the score determines the decision exactly (a probability can round to the threshold), a module also has

- ``decided(parameters, score)``: NumPy, the decision about rows with these scores, (R, n) -> (R, n).

Modules with probabilities, which can be attacked, have

- ``log_probabilities(parameters, x)``: torch, x (R, n, d) -> (R, n, 2), differentiable, on any device;
- ``loss_and_gradient(parameters, x, y)``: NumPy closed form of the cross entropy (R, n), its gradient in x (R, n, d).
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


def architecture(name: str) -> ModuleType:
    """Return the module of this architecture. Raises InvalidInput for an unknown name."""
    from fairness_audits.models import kernel, linear, logistic_mixture, mlp, thresholds

    modules = (mlp, logistic_mixture, linear, kernel, thresholds)
    known = {module.__name__.rpartition(".")[2]: module for module in modules}
    if name not in known:
        raise InvalidInput(f"expected an architecture among {', '.join(known)}, found {name!r}", option="architecture")
    return known[name]


def stacked(arrays: Sequence[Array], fill: float = 0.0) -> Array:
    """Stack arrays along a new first axis; shorter arrays are padded with ``fill`` at the end of their first axis."""
    longest = max(len(array) for array in arrays)
    widths = [[(0, longest - len(array)), *[(0, 0)] * (array.ndim - 1)] for array in arrays]
    return np.stack([np.pad(array, width, constant_values=fill) for array, width in zip(arrays, widths, strict=True)])
