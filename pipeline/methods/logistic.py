r"""Logistic regression with an L2 penalty that a validation part of the training rows chooses.

.. math:: \min_{w, b} \; \tfrac12 |w|^2 + C \sum_{i \in F} \log(1 + e^{-(2 y_i - 1)(w^\top x_i + b)}),
          \qquad \hat C = \arg\max_C \mathrm{AUC}(w_C; V)

F are the first training rows and V the others; what is kept is the fit on F at :math:`\hat C`, the smallest of several
that are best. The intercept b is not penalised. Source: DiCiccio et al. 2020, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, NamedTuple

import numpy as np

from pipeline.fields import Checked, Positive, Share, not_empty
from pipeline.types import Array, Classifier, Dataset

TOLERANCE = 1e-6
MAXIMUM_ITERATIONS = 1000


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``validation_fraction`` of the training rows choose C among ``inverse_penalties``, in ascending order."""

    validation_fraction: Share
    inverse_penalties: Annotated[list[Positive], not_empty]

    def __post_init__(self) -> None:
        super().__post_init__()
        if sorted(set(self.inverse_penalties)) != list(self.inverse_penalties):
            raise ValueError(f"expected method.inverse_penalties in ascending order; found {self.inverse_penalties}")


class Fit(NamedTuple):
    """Coefficients (d,), intercept, the C chosen and the AUC on the validation rows."""

    coef: Array
    intercept: float
    inverse_penalty: float
    validation_auc: float


def fit(dataset: Dataset, config: Config, rngs: Sequence[np.random.Generator]) -> Classifier:
    """One regression for each of the first len(rngs) splits; nothing is drawn, the training rows are in random order.

    Facts: ``inverse_penalty`` (the C chosen), ``validation_auc``, and ``at_edge``, 1 where C is an end of the list.
    """
    data = dataset.batch("train", len(rngs))
    n = data.label.shape[1]
    cut = n - int(Fraction(str(config.validation_fraction)) * n)
    fits = [chosen(x[:cut], y[:cut], x[cut:], y[cut:], config) for x, y in zip(data.features, data.label, strict=True)]
    c = np.array([one.inverse_penalty for one in fits])
    edges = config.inverse_penalties[0], config.inverse_penalties[-1]
    return Classifier(
        method="logistic",
        dataset=dataset.name,
        origin=dataset.origin,
        architecture="logistic_mixture",
        parameters={
            "weight": np.ones((len(fits), 1)),
            "coef": np.stack([one.coef for one in fits])[:, None, :],
            "intercept": np.array([[one.intercept] for one in fits]),
        },
        facts={
            "inverse_penalty": c,
            "validation_auc": np.array([one.validation_auc for one in fits]),
            "at_edge": np.isin(c, edges).astype(float),
        },
    )


def chosen(x: Array, y: Array, x_validation: Array, y_validation: Array, config: Config) -> Fit:
    """The fit on rows x (n, d), y (n,) with the best validation AUC; each starts from the one before."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    model = LogisticRegression(solver="newton-cholesky", warm_start=True, tol=TOLERANCE, max_iter=MAXIMUM_ITERATIONS)
    best: Fit | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for c in config.inverse_penalties:
            model.set_params(C=c).fit(x, y)
            auc = float(roc_auc_score(y_validation, model.decision_function(x_validation)))
            if best is None or auc > best.validation_auc:
                best = Fit(model.coef_[0].copy(), float(model.intercept_[0]), c, auc)
    assert best is not None
    return best
