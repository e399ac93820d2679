r"""Group-specific thresholds on the margin of a linear score, with a random decision between two thresholds.

.. math:: P(h = 1 \mid x, g) = q_g + \sum_{j = 1}^{2} p_{gj}\, 1[c^\top x + b > t_{gj}], \qquad
          q_g \ge 0, \; p_{gj} \ge 0, \; q_g + p_{g1} + p_{g2} \le 1

k columns of the input identify the group: the protected attributes that the decision reads, see
:meth:`fairness_audits.values.Dataset.with_inputs`. Parameters, for R repetitions, d inputs and G groups: ``coef``
(R, d), ``intercept`` (R,), ``read`` (R, k), the numbers of these columns, ``group`` (R, G, k), their values in each
group, ``threshold`` (R, G, 2), ``weight`` (R, G, 2) and ``constant`` (R, G). Repetitions with fewer groups repeat their
last group.

The decision thresholds the probability at 1/2. It is a step function of x without a loss to differentiate. The module
has decisions and scores only.
"""

from collections.abc import Mapping

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


def predict(parameters: Mapping[str, Array], x: Array) -> Array:
    """Return the label whose probability is larger (a tie counts as 0): x (R, n, d) -> (R, n) int64."""
    return (score(parameters, x) > 0.5).astype(np.int64)


def score(parameters: Mapping[str, Array], x: Array) -> Array:
    """Compute P(h = 1 | x): x (R, n, d) -> (R, n). Raises InvalidInput for a row in a group without thresholds."""
    read = np.stack([rows[:, columns] for rows, columns in zip(x, parameters["read"], strict=True)])
    same = (read[..., None, :] == parameters["group"][:, None]).all(axis=-1)
    if not same.any(axis=-1).all():
        unknown = np.unique(read[~same.any(axis=-1)], axis=0)[0].tolist()
        problem = f"a row has the protected values {unknown}, a group without training rows"
        raise InvalidInput(problem, remedy="Train on more rows")
    group = same.argmax(axis=-1)
    margin = (x @ parameters["coef"][..., None])[..., 0] + parameters["intercept"][:, None]
    constant, threshold, weight = (
        np.stack([values[g] for values, g in zip(parameters[name], group, strict=True)])
        for name in ("constant", "threshold", "weight")
    )
    return np.asarray(constant + (weight * (margin[..., None] > threshold)).sum(axis=-1))
