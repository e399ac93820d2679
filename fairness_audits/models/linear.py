r"""A linear prediction of a real outcome, and the decision that it exceeds a threshold.

.. math:: s(x) = c^\top x + b, \qquad h(x) = 1[s(x) > t]

Parameters, for R repetitions and d inputs: ``coef`` (R, d), ``intercept`` (R,), ``threshold`` (R,). The prediction is
not a probability, so there is no loss to differentiate. The module has decisions and scores only.
"""

from collections.abc import Mapping

import numpy as np

from fairness_audits.values import Array


def predict(parameters: Mapping[str, Array], x: Array) -> Array:
    """Return whether the predicted outcome exceeds the threshold (a tie counts as 0): x (R, n, d) -> (R, n) int64."""
    return decided(parameters, score(parameters, x))


def decided(parameters: Mapping[str, Array], score: Array) -> Array:
    """Return the decision about rows with these predicted outcomes: (R, n) -> (R, n) int64."""
    return (score > parameters["threshold"][:, None]).astype(np.int64)


def score(parameters: Mapping[str, Array], x: Array) -> Array:
    """Compute the predicted outcome, in the outcome's units: x (R, n, d) -> (R, n)."""
    return (x @ parameters["coef"][..., None])[..., 0] + parameters["intercept"][:, None]
