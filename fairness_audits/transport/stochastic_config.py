"""Training settings of ``fairness_audits.transport.stochastic``."""

from dataclasses import dataclass
from typing import Annotated

from fairness_audits.transport.cost import CostName
from fairness_audits.validation import Checked, Count, Positive, one_of

REGULARIZERS = ("entropic", "quadratic")


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """Settings of the networks.

    ``cost`` is a name of :mod:`fairness_audits.transport.cost`, ``regularizer`` is entropic or quadratic, and
    ``regularization`` is epsilon as a share of the mean cost. Adam trains the potentials, with ``hidden_units`` each,
    for ``steps`` steps at the rate ``dual_rate``, then the map for the same number of steps at the rate ``map_rate``.
    """

    cost: CostName
    regularizer: Annotated[str, one_of(REGULARIZERS)]
    regularization: Positive
    hidden_units: Count
    batch_size: Count
    steps: Count
    dual_rate: Positive
    map_rate: Positive
