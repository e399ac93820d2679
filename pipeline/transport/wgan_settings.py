"""The settings of a Wasserstein GAN's training, for ``pipeline.transport.wgan`` and its engines."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("auto", "compiled", "torch")
SELECTIONS = ("last", "best")


@dataclass(frozen=True)
class WganSettings:
    """How the networks are trained, and which are kept.

    ``hidden_units`` H; RMSprop's ``learning_rate``, ``decay`` of v, and ``epsilon``; ``clip``; ``rounds`` of the critic
    for each of ``steps`` of the generator; ``batch_size`` n; ``cost_weight`` lambda. Every ``check_every`` steps, and
    after the last, the maps are measured (see ``wgan_monitor``): ``selection`` "last" keeps the last map, "best" the
    measured one whose largest Kolmogorov-Smirnov statistic over the features is smallest; a kept map in which that
    statistic is above ``diverged_above`` is reported as diverged. ``engine``: ``compiled`` runs on ``threads`` threads,
    a trial in each, and gives the same numbers for any of them; ``torch`` runs on the visible device; ``auto`` is torch
    where a GPU is visible and compiled elsewhere.
    """

    hidden_units: int
    learning_rate: float
    decay: float
    epsilon: float
    clip: float
    rounds: int
    batch_size: int
    steps: int
    cost_weight: float
    selection: str
    check_every: int
    diverged_above: float
    engine: str
    threads: int

    def __post_init__(self) -> None:
        for name in (
            *("hidden_units", "learning_rate", "epsilon", "clip", "rounds", "batch_size", "steps", "check_every"),
            *("diverged_above", "threads"),
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"expected a positive transport.{name}, found {getattr(self, name)!r}")
        if not self.cost_weight >= 0:
            raise ValueError(f"expected transport.cost_weight at least 0, found {self.cost_weight!r}")
        if not 0 <= self.decay < 1:
            raise ValueError(f"expected transport.decay in [0, 1), found {self.decay!r}")
        for name, known in (("engine", ENGINES), ("selection", SELECTIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"expected transport.{name} among {', '.join(known)}, found {getattr(self, name)!r}")
