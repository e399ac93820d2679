"""How the networks of ``fairness_audits.transport.wgan`` are trained."""

from dataclasses import dataclass
from typing import Annotated

from fairness_audits.validation import Checked, Count, NonNegative, Positive, interval, one_of

SELECTIONS = ("last", "best")


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """How the networks are trained, and which are kept.

    ``hidden_units`` H; RMSprop's ``learning_rate``, ``decay`` of v, and ``epsilon``; ``clip``; ``rounds`` of the critic
    for each of ``steps`` of the generator; ``batch_size`` n; ``cost_weight`` lambda. Every ``check_every`` steps, and
    after the last, the maps are measured: ``selection`` "last" keeps the last map, "best" the measured one whose
    largest Kolmogorov-Smirnov statistic over the features is smallest. It runs on ``threads`` threads of the processor,
    a trial in each, and gives the same numbers for any of them.
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
