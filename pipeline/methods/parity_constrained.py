r"""Logistic regression whose score is uncorrelated with the protected attribute (Zafar et al. 2017).

.. math:: \min_{w, b} \sum_i \log(1 + e^{-(2 y_i - 1)(w^\top x_i + b)}) \quad \text{with} \quad
          \sum_i (z_i - \bar z)\, w^\top x_i = 0 \quad \text{for each protected attribute } z

This is the covariance constraint with bound 0: the mean scores of the two groups are equal. For each attribute it is a
linear equation a.w = 0 with :math:`a = \sum_i (z_i - \bar z) x_i`, so it can be eliminated. Let N be an orthonormal
basis of the directions orthogonal to every a. Then w = N v, and v is an unconstrained, unpenalised regression on the
columns x N. The intercept b is free. Directions in which the features do not vary (every level of an attribute has a
column) are left out too, so w is the solution of least norm.

Source: Zafar et al. 2017, as used by Lipton et al. 2018 for their hiring model.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairness_audits.models import logistic_mixture
from fairness_audits.values import Array, Classifier, Dataset, Generators
from pipeline.methods.linear_regression import SMALLEST_EIGENVALUE

TOLERANCE = 1e-8
MAXIMUM_ITERATIONS = 1000


@dataclass(frozen=True)
class Config:
    """No settings."""


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Fit one regression for each of the first len(rngs) splits. The fit is deterministic.

    Facts: ``correlation``, the largest |r| of the score with an attribute on the training rows (0 up to rounding), and
    ``free_weights``, the number of free directions. Raises ValueError if the rows are separable, since then no finite
    weights are optimal.
    """
    data = dataset.batch("train", len(rngs))
    coef, intercept, correlation, free = [], [], [], []
    for r, (x, y) in enumerate(zip(data.features, data.label, strict=True)):
        attributes = {name: values[r] for name, values in data.protected.items()}
        basis = independent(x, orthogonal(constraints(x, attributes)))
        v, b = unpenalised(x @ basis, y)
        coef.append(basis @ v)
        intercept.append(b)
        correlation.append(largest_correlation(x @ coef[-1], attributes))
        free.append(float(basis.shape[1]))
    parameters = logistic_mixture.regressions(np.stack(coef), np.array(intercept))
    facts = {"correlation": np.array(correlation), "free_weights": np.array(free)}
    return Classifier.of("parity_constrained", dataset, "logistic_mixture", parameters, facts=facts)


def constraints(x: Array, attributes: Mapping[str, Array]) -> Array:
    """Compute the covariance of each attribute with each column of x (n, d), over the rows in its groups: (k, d)."""
    found = []
    for z in attributes.values():
        inside = z >= 0
        found.append((z[inside] - z[inside].mean()) @ x[inside] / max(1, inside.sum()))
    return np.array(found)


def orthogonal(a: Array) -> Array:
    """Return an orthonormal basis, as columns (d, f), of the directions w with a.w = 0 for every row of a (k, d)."""
    _, singular, directions = np.linalg.svd(a, full_matrices=True)
    rank = int((singular > len(directions) * np.finfo(float).eps * singular.max(initial=0.0)).sum())
    return directions[rank:].T


def independent(x: Array, basis: Array) -> Array:
    """Return the part of ``basis`` (d, f) along which the rows of x (n, d) vary, orthonormal: (d, g), g <= f."""
    along = (x - x.mean(axis=0)) @ basis
    variances, directions = np.linalg.eigh(along.T @ along)
    return basis @ directions[:, variances > SMALLEST_EIGENVALUE * variances.max(initial=0.0)]


def unpenalised(x: Array, y: Array) -> tuple[Array, float]:
    """Fit weights (f,) and intercept of the logistic regression of y (n,) on x (n, f), which may have no columns."""
    from scipy.special import logit
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if y.min() == y.max():
        raise ValueError(f"expected training rows of both labels, found label {y[0]} alone")
    if x.shape[1] == 0:
        return np.zeros(0), float(logit(y.mean()))
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=TOLERANCE, max_iter=MAXIMUM_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(x, y)
    if ((2 * y - 1) * model.decision_function(x) > 0).all():
        raise ValueError(
            "the training rows can be told apart without error, so larger weights are always better ones: "
            "train on more rows, or leave out the feature that decides the label"
        )
    return model.coef_[0], float(model.intercept_[0])


def largest_correlation(score: Array, attributes: Mapping[str, Array]) -> float:
    """Compute the largest |r| of the score (n,) with an attribute, over the rows in its groups; 0 if constant."""
    found = [0.0]
    for z in attributes.values():
        s, group = score[z >= 0], z[z >= 0]
        if s.std() > 0 and group.std() > 0:
            found.append(abs(float(np.corrcoef(s, group)[0, 1])))
    return max(found)
