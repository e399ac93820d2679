"""Settings of stochastic gradient descent, and the names of its training curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fairness_audits.validation import Checked, Count, NonNegative, Positive, at_least, interval, one_of, some_of
from pipeline import networks

CHECKPOINTS = ("first", "middle", "last")
PRECISIONS = ("auto", "float32", "bfloat16")
SCHEDULES = ("constant", "one_cycle")
AUGMENTATIONS = ("none", "flip", "flip_and_shift")
WARM_UP = 0.25
"""Share of the steps of a cycle with a rising rate."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """Settings of the training.

    ``model``: an architecture of ``pipeline.networks``. ``width``: factor on its channels, 1 as published.
    ``input_size``: side to which the network resizes images, None to keep their size. ``pretrained``: ImageNet weights
    if available (``auto``), or ``never``. ``epochs``, ``learning_rate``, ``momentum``, ``batch_size``.
    ``train_points``: train on the first N rows, None for all. ``checkpoints``: any of ``first``, ``middle`` (epoch (1 +
    epochs) // 2) and ``last``.

    ``schedule``: a ``constant`` rate, or ``one_cycle`` (:meth:`rate`). ``nesterov`` momentum, ``weight_decay`` of all
    parameters. ``augmentation`` of training images: ``none``; ``flip``, left to right in half of the cases;
    ``flip_and_shift``, also by up to an eighth of the side in either direction, the border mirrored.

    ``precision``: of products and convolutions, ``bfloat16``, ``float32`` or ``auto`` (bfloat16 if the GPU or processor
    supports it natively). ``deterministic``: bitwise reproducible on the same machine; slower on a GPU, where
    operations without a deterministic form cause a warning. ``threads`` of the CPU. ``training``: index of an
    independent training run, from 1.
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
    schedule: Annotated[str, one_of(SCHEDULES)]
    nesterov: bool
    weight_decay: NonNegative
    augmentation: Annotated[str, one_of(AUGMENTATIONS)]
    checkpoints: Annotated[Sequence[str], some_of(CHECKPOINTS)]
    precision: Annotated[str, one_of(PRECISIONS)]
    deterministic: bool
    threads: Count
    training: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise ValueError("method.nesterov needs a momentum above 0: set method.momentum, or nesterov to false")

    def kept_epochs(self) -> tuple[int, ...]:
        """The increasing epochs, from 1, after which a checkpoint is stored."""
        places = {"first": 1, "middle": (1 + self.epochs) // 2, "last": self.epochs}
        return tuple(sorted({places[name] for name in self.checkpoints}))

    def rate(self, share: float) -> float:
        r"""Compute the learning rate after this share of all steps.

        .. math:: \eta(s) = \eta \min\Big(\frac{s}{w}, \frac{1 - s}{1 - w}\Big), \qquad w = \tfrac14

        for one cycle (Smith and Topin 2019, linear up and down), and eta otherwise.
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * min(share / WARM_UP, (1 - share) / (1 - WARM_UP))


def accuracy_curve(partition: str = "", level: str = "") -> str:
    """Return the name of the accuracy curve on all test rows, or on those of a group."""
    return "/".join(filter(None, ("test_accuracy", partition, level)))
