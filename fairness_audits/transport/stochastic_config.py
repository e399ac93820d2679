"""How the networks of ``fairness_audits.transport.stochastic`` are trained."""

from dataclasses import dataclass
from typing import Annotated

from fairness_audits.transport.cost import CostName
from fairness_audits.validation import Checked, Count, Positive, one_of

REGULARIZERS = ("entropic", "quadratic")


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """``cost``: a name of :mod:`fairness_audits.transport.cost`.

    ``regularizer``: entropic or quadratic; ``regularization``: epsilon, as a share of the mean cost. Adam trains the
    potentials, of ``hidden_units`` each, for ``steps`` at ``dual_rate``, then the map for as many at ``map_rate``.
    """

    cost: CostName
    regularizer: Annotated[str, one_of(REGULARIZERS)]
    regularization: Positive
    hidden_units: Count
    batch_size: Count
    steps: Count
    dual_rate: Positive
    map_rate: Positive
