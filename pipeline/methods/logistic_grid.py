r"""Logistic classifiers on a grid of coefficients, as audited in Figure 1 of Maity et al. (2021).

.. math:: P(y = 1 \mid x) = \sigma(b(\theta) + \theta_1 x_1 + \theta_2 x_2), \qquad
          b(\theta) = \arg\min_b \sum_i \ell(f_{b, \theta}(x_i), y_i)

Only the intercept is fitted. The derivative of the sum in b, :math:`\sum_i \sigma(b + \theta^\top x_i) - y_i`,
increases in b and has one root unless all labels are equal. Source: Maity et al. 2021, appendix E.2.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fairness_audits.models import logistic_mixture
from fairness_audits.validation import Checked, Count, one_of
from fairness_audits.values import Array, Classifier, Dataset, Generators

INTERCEPTS = ("fitted", "zero")
HALVINGS = 200


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``points_per_axis`` coefficients from ``low`` to ``high`` on both axes; ``intercept`` "fitted" or "zero"."""

    low: float
    high: float
    points_per_axis: Count
    intercept: Annotated[str, one_of(INTERCEPTS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise ValueError(f"expected method.low <= method.high, found {self.low} and {self.high}")


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Return one classifier for each pair of coefficients, theta_1 slowest, on the training rows of the first split.

    The grid is the repetition axis, so ``rngs`` must have length 1; it is not used. Raises ValueError for more, and for
    a data set that does not have two features.
    """
    if len(rngs) != 1:
        raise ValueError(
            f"expected 1 repetition of the grid, found {len(rngs)}: its classifiers are the repetition axis"
        )
    if dataset.features.shape[1] != 2:
        raise ValueError(f"expected a dataset of two features, found {list(dataset.feature_names)}")
    data = dataset.batch("train", 1)
    axis = np.linspace(config.low, config.high, config.points_per_axis)
    theta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    margins = theta @ data.features[0].T
    intercept = best_intercepts(margins, data.label[0]) if config.intercept == "fitted" else np.zeros(len(theta))
    index = {"theta_1": theta[:, 0], "theta_2": theta[:, 1]}
    parameters = logistic_mixture.regressions(theta, intercept)
    return Classifier.of("logistic_grid", dataset, "logistic_mixture", parameters, index=index)


def best_intercepts(margins: Array, label: Array) -> Array:
    r"""Solve :math:`\sum_i \sigma(b + a_i) = \sum_i y_i` for b (m,), for each row a of ``margins`` (m, n).

    Let p be the share of ones. At the root, b + a_i cannot be on one side of logit(p) for all i, so the root lies
    between logit(p) - max a and logit(p) - min a. Raises ValueError if all labels are equal, since there is no root.
    """
    from scipy.special import expit, logit

    share = float(label.mean())
    if share in (0.0, 1.0):
        raise ValueError(
            f"all {label.size} labels are {share:.0f}, so no finite intercept minimises the loss: "
            "use intercept=zero or labels of both classes"
        )
    low, high = logit(share) - margins.max(axis=1), logit(share) - margins.min(axis=1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if ((middle <= low) | (middle >= high)).all():
            break
        too_high = expit(middle[:, None] + margins).mean(axis=1) > share
        low, high = np.where(too_high, low, middle), np.where(too_high, middle, high)
    return (low + high) / 2
