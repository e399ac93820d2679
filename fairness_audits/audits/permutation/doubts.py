"""What the standard error of a difference leaves out: groups without variance."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from fairness_audits.audits.inference import unseen
from fairness_audits.audits.permutation.metrics import Auc, Metric, Rate
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.audits.permutation.resamplers import countable
from fairness_audits.audits.permutation.statistics import MetricEstimate, without_rounding
from fairness_audits.audits.permutation.units import independent
from fairness_audits.values import Array


@dataclass(frozen=True)
class Doubt:
    """What is unknown about the difference of two metrics beyond its standard error; 0 if nothing is.

    ``margins`` (2, 2) bounds at ``level``, by :func:`margins`, how far the metric of each group may be below and above
    its estimate.
    """

    margins: Array
    level: float = 0.025

    @property
    def deviations(self) -> Array:
        """The ``margins`` as standard deviations, (2, 2)."""
        return self.margins / ndtri(1 - self.level)

    def turned(self) -> "Doubt":
        """Return the doubt about the difference of the groups in the opposite order."""
        return replace(self, margins=self.margins[:, ::-1])

    def towards_zero(self, difference: float) -> float:
        """Return the standard deviation on the side of no difference, 0 if it is infinite."""
        (down_a, down_b), (up_a, up_b) = self.margins
        margin = np.hypot(down_a, up_b) if difference > 0 else np.hypot(up_a, down_b)
        return float(margin / ndtri(1 - self.level)) if np.isfinite(margin) else 0.0


NO_DOUBT = Doubt(np.zeros((2, 2)))


def margins(data: Predictions | Counts, metric: Metric, observed: MetricEstimate, level: float) -> Array:
    r"""Bound how far the metric of each group may be below and above its estimate if its variance is 0: (2, G).

    A variance of 0 means that all k independent observations of a group agree. Observations are the units of a rate,
    or disjoint pairs of a positive and a negative, as many as there are units of the rarer label. If each observation
    has this value with probability q, then q^k >= alpha at level 1 - alpha (Clopper and Pearson 1934), so the metric f
    is between

    .. math:: f \alpha^{1/k} \quad\text{and}\quad 1 - (1 - f) \alpha^{1/k}.

    Other metrics have no bounds: their margin is infinite. The margin is 0 if a group has a variance, and for rates of
    rows, which have one by smoothing (without smoothing they are tested as published).
    """
    if isinstance(metric, Rate) and countable(data):
        return np.zeros((2, len(data.groups)))
    degenerate = without_rounding(observed).variance == 0
    reach = np.full((2, len(data.groups)), np.inf)
    weighted = isinstance(data, Predictions) and data.weight is not None
    if isinstance(metric, Auc | Rate) and degenerate.any() and not weighted:
        share = np.stack([observed.value, 1 - observed.value])
        reach = unseen(independent(data, metric), level) * share
    return np.where(degenerate, reach, 0.0)
