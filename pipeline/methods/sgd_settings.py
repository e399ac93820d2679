"""The settings that trainings by stochastic gradient descent share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pipeline.fields import Checked, Count, Positive, at_least, interval, one_of, some_of
from pipeline.models import networks

CHECKPOINTS = ("first", "middle", "last")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class SgdSettings(Checked, of="method"):
    """What is trained, and how.

    ``model``: an architecture of ``pipeline.models.networks``. ``width`` multiplies its channels, 1 as published.
    ``input_size``: side that pictures are resized to inside the network, None for their own. ``pretrained``: ImageNet
    weights where they can be had (``auto``), ``never``, or not without (``required``). ``epochs``, ``learning_rate``,
    ``momentum``, ``batch_size``. ``train_points``: at most so many training rows, the first; None for all.
    ``checkpoints``: which are kept of ``first``, ``middle`` (epoch (1 + epochs) // 2) and ``last``.

    ``precision``: ``bfloat16`` multiplies and convolves in it, ``float32``, or ``auto``: bfloat16 on a GPU made for it,
    float32 elsewhere. ``deterministic``: the same numbers to the last bit from the same machine; on a GPU at some cost,
    and an operation that has no such form there is named in a warning. ``threads`` of the CPU.
    """

    model: str
    width: Positive
    input_size: Count | None
    pretrained: Annotated[str, one_of(networks.PRETRAINED)]
    epochs: Count
    learning_rate: Positive
    momentum: Annotated[float, interval("[0, 1)")]
    batch_size: Annotated[int, at_least(2)]
    train_points: Annotated[int, at_least(2)] | None
    checkpoints: Annotated[Sequence[str], some_of(CHECKPOINTS)]
    precision: Annotated[str, one_of(PRECISIONS)]
    deterministic: bool
    threads: Count

    def kept_epochs(self) -> tuple[int, ...]:
        """The epochs after which a checkpoint is kept, counted from 1 and rising."""
        places = {"first": 1, "middle": (1 + self.epochs) // 2, "last": self.epochs}
        return tuple(sorted({places[name] for name in self.checkpoints}))
