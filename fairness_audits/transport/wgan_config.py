"""Training settings of ``fairness_audits.transport.wgan``."""

from dataclasses import dataclass
from typing import Annotated

from fairness_audits.validation import Checked, Count, NonNegative, Positive, interval, one_of

SELECTIONS = ("last", "best")


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """Settings of the training, and the rule that selects a network.

    ``hidden_units`` is H. RMSprop has a ``learning_rate``, the ``decay`` of v, and ``epsilon``. The critic's weights
    stay within ``clip``, and the critic makes ``rounds`` rounds for each of the generator's ``steps``. ``batch_size``
    is n and ``cost_weight`` lambda. The maps are checked every ``check_every`` steps and after the last step.
    ``selection`` "last" keeps the last map, "best" the checked map with the smallest maximum Kolmogorov-Smirnov
    statistic over the features. Training runs one trial in each of ``threads`` threads, whose number does not affect
    the results.
    """

    hidden_units: Count
    learning_rate: Positive
    decay: Annotated[float, interval("[0, 1)")]
    epsilon: Positive
    clip: Positive
    rounds: Count
    batch_size: Count
    steps: Count
    cost_weight: NonNegative
    selection: Annotated[str, one_of(SELECTIONS)]
    check_every: Count
    threads: Count
