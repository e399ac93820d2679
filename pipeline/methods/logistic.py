r"""Logistic regression with an L2 penalty chosen on validation rows.

.. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \sum_{i \in F} \log(1 + e^{-(2 y_i - 1)(w^\top x_i + b)}),
          \qquad \hat C = \arg\max_C \mathrm{AUC}(w_C; V)

F are the first training rows and V the others. The result is the fit on F at :math:`\hat C`, the smallest of the best
values. The intercept b is not penalised. Source: DiCiccio et al. 2020, section 5.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, NamedTuple

import numpy as np

from fairness_audits.models import logistic_mixture
from fairness_audits.validation import Checked, Positive, Share, not_empty
from fairness_audits.values import Array, Batch, Classifier, Dataset, Generators

TOLERANCE = 1e-6
MAXIMUM_ITERATIONS = 1000


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``validation_fraction``: share of training rows that choose C among the ascending ``inverse_penalties``."""

    validation_fraction: Share
    inverse_penalties: Annotated[list[Positive], not_empty]

    def __post_init__(self) -> None:
        super().__post_init__()
        if sorted(set(self.inverse_penalties)) != list(self.inverse_penalties):
            raise ValueError(f"expected method.inverse_penalties in ascending order; found {self.inverse_penalties}")


class Fit(NamedTuple):
    """Coefficients (d,), intercept, the chosen C, the validation AUC, and whether C is an end of the list."""

    coef: Array
    intercept: float
    inverse_penalty: float
    validation_auc: float
    at_edge: bool


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Fit one regression for each of the first len(rngs) splits, whose training rows are in random order.

    See :func:`classifier` for the facts.
    """
    return classifier("logistic", dataset, fits(dataset.batch("train", len(rngs)), config))


def fits(data: Batch, config: Config, weight: Array | None = None) -> list[Fit]:
    """Fit the regression of each split; ``weight`` (R, n) >= 0 multiplies the losses and weights rows in the AUC."""
    weights = [None] * len(data.label) if weight is None else weight
    return [chosen(x, y, config, w) for x, y, w in zip(data.features, data.label, weights, strict=True)]


def classifier(method: str, dataset: Dataset, found: Sequence[Fit]) -> Classifier:
    """Return the regressions as one classifier.

    Facts: ``inverse_penalty`` (the chosen C), ``validation_auc``, and ``at_edge``, 1 if C is an end of the list.
    """
    facts = {
        "inverse_penalty": np.array([one.inverse_penalty for one in found]),
        "validation_auc": np.array([one.validation_auc for one in found]),
        "at_edge": np.array([float(one.at_edge) for one in found]),
    }
    coef, intercept = np.stack([one.coef for one in found]), np.array([one.intercept for one in found])
    parameters = logistic_mixture.regressions(coef, intercept)
    return Classifier.of(method, dataset, "logistic_mixture", parameters, facts=facts)


def chosen(x: Array, y: Array, config: Config, weight: Array | None = None) -> Fit:
    """Fit the first rows of x (n, d), y (n,) with the C of best AUC on the other rows; each fit starts from the last.

    ``weight`` (n,) are row weights.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    model = LogisticRegression(solver="newton-cholesky", warm_start=True, tol=TOLERANCE, max_iter=MAXIMUM_ITERATIONS)
    best: Fit | None = None
    cut = len(y) - int(Fraction(str(config.validation_fraction)) * len(y))
    own, held_out = (None, None) if weight is None else (weight[:cut], weight[cut:])
    edges = config.inverse_penalties[0], config.inverse_penalties[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for c in config.inverse_penalties:
            model.set_params(C=c).fit(x[:cut], y[:cut], own)
            auc = float(roc_auc_score(y[cut:], model.decision_function(x[cut:]), sample_weight=held_out))
            if best is None or auc > best.validation_auc:
                best = Fit(model.coef_[0].copy(), float(model.intercept_[0]), c, auc, c in edges)
    assert best is not None
    return best
