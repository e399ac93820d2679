"""Architectures: from parameters and inputs to log probabilities, one module each.

Every architecture module offers, for parameters whose arrays have the repetition axis R first,

- ``log_probabilities(parameters, x)``: torch, x (R, n, d) -> (R, n, 2), differentiable, on any device;
- ``loss_and_gradient(parameters, x, y)``: NumPy closed form of the cross entropy (R, n), its gradient in x (R, n, d);
- ``predict(parameters, x)``: NumPy, the more probable label of each row, (R, n).
"""

from __future__ import annotations

from types import ModuleType


def architecture(name: str) -> ModuleType:
    """The module that evaluates classifiers of this architecture; ValueError if there is none of that name."""
    from pipeline.models import logistic_mixture, mlp

    known = {"mlp": mlp, "logistic_mixture": logistic_mixture}
    if name not in known:
        raise ValueError(f"expected an architecture among {', '.join(known)}, found {name!r}")
    return known[name]
