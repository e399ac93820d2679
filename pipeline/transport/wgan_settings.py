"""The settings of a Wasserstein GAN's training, for ``pipeline.transport.wgan`` and its engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pipeline.fields import Checked, Count, NonNegative, Positive, interval, one_of

ENGINES = ("auto", "compiled", "torch")
SELECTIONS = ("last", "best")


@dataclass(frozen=True)
class WganSettings(Checked, of="transport"):
    """How the networks are trained, and which are kept.

    ``hidden_units`` H; RMSprop's ``learning_rate``, ``decay`` of v, and ``epsilon``; ``clip``; ``rounds`` of the critic
    for each of ``steps`` of the generator; ``batch_size`` n; ``cost_weight`` lambda. Every ``check_every`` steps, and
    after the last, the maps are measured (see ``wgan_monitor``): ``selection`` "last" keeps the last map, "best" the
    measured one whose largest Kolmogorov-Smirnov statistic over the features is smallest; a kept map in which that
    statistic is above ``diverged_above`` is reported as diverged. ``engine``: ``compiled`` runs on ``threads`` threads,
    a trial in each, and gives the same numbers for any of them; ``torch`` runs on the visible device; ``auto`` is torch
    where a GPU is visible and compiled elsewhere.
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
    diverged_above: Positive
    engine: Annotated[str, one_of(ENGINES)]
    threads: Count
