"""The settings of a training by stochastic gradient descent, and the names of its curves."""

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
"""Of the steps of one cycle, the share in which the rate rises."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """What is trained, and how.

    ``model``: an architecture of ``pipeline.networks``. ``width`` multiplies its channels, 1 as published.
    ``input_size``: side that pictures are resized to inside the network, None for their own. ``pretrained``: ImageNet
    weights where they can be had (``auto``), or ``never``. ``epochs``, ``learning_rate``,
    ``momentum``, ``batch_size``. ``train_points``: at most so many training rows, the first; None for all.
    ``checkpoints``: which are kept of ``first``, ``middle`` (epoch (1 + epochs) // 2) and ``last``.

    ``schedule``: a ``constant`` rate, or ``one_cycle`` (:meth:`rate`). ``nesterov`` momentum, ``weight_decay`` of all
    parameters. ``augmentation`` of training images: ``none``; ``flip``, left to right in half of the cases;
    ``flip_and_shift``, also by up to an eighth of the side in either direction, the border mirrored.

    ``precision``: ``bfloat16`` multiplies and convolves in it, ``float32``, or ``auto``: bfloat16 on a GPU or a
    processor made for it, float32 elsewhere. ``deterministic``: the same numbers to the last bit from the same machine;
    on a GPU at some cost, and an operation that has no such form there is named in a warning. ``threads`` of the CPU.
    ``training``: which of several independent trainings this is, from 1.
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
        """The epochs after which a checkpoint is kept, counted from 1 and rising."""
        places = {"first": 1, "middle": (1 + self.epochs) // 2, "last": self.epochs}
        return tuple(sorted({places[name] for name in self.checkpoints}))

    def rate(self, share: float) -> float:
        r"""The learning rate when this share of all steps is done.

        .. math:: \eta(s) = \eta \min\Big(\frac{s}{w}, \frac{1 - s}{1 - w}\Big), \qquad w = \tfrac14

        for one cycle (Smith and Topin 2019, linear up and down), and eta otherwise.
        """
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * min(share / WARM_UP, (1 - share) / (1 - WARM_UP))


def accuracy_curve(partition: str = "", level: str = "") -> str:
    """The training curve of the accuracy on all test rows, or on those of a group."""
    return "/".join(filter(None, ("test_accuracy", partition, level)))
