r"""AdvERM: cross entropy with a penalty on robustness bias, the gap in safe points between a group and the others.

.. math:: \ell(B) = \frac{1}{|B|} \sum_{i \in B} -\log p_{y_i}(x_i)
          + \alpha \left| \frac{1}{|I|} \sum_{i \in I} s(\tau - d(x_i))
                        - \frac{1}{|O|} \sum_{i \in O} s(\tau - d(x_i)) \right|

I are the correctly classified members of the group P in the batch, O the correctly classified others, s the logistic
function, which stands for the indicator of a distance below tau. Where I or O is empty the penalty is 0. The distance
is that to the boundary of f made linear at x (c is the predicted class; on correctly classified points, the label):

.. math:: d = \frac{|z_c|}{\|\nabla_x z_c\|} \;\;(\text{logit}), \qquad
          d = \frac{z_c - \max_{j \ne c} z_j}{\|\nabla_x (z_c - \max_{j \ne c} z_j)\|} \;\;(\text{margin})

``logit`` is (8) with f the predicted class's logit, as the authors coded it: the boundary of a classifier of C classes
lies where two logits are equal, not where one is 0, which ``margin`` corrects. They treat the norm as a constant, so
that the penalty moves the logit alone; ``second_order`` differentiates the norm too, which takes a second derivative
of the network. They measure the gradient, and so tau, in normalised inputs (``scale: normalised``); ``pixels`` is the
scale of every distance in this project. The gradient is that of the training mode, as theirs: it sees dropout, and,
through batch normalisation, what a point does to the other points' logits. (They take it for I and O apart, which
leaves out what a point does to those of the other set.)

Source: Nanda et al. 2021, (7)-(9) and appendix B, and the code that they released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from fairness_audits.validation import NonNegative, one_of
from fairness_audits.values import Array, Checkpoint, Classifier, Generators, ImageDataset
from pipeline.methods import sgd

if TYPE_CHECKING:
    import torch

    from pipeline.training.sgd_training import Forward, Objective, Terms

DISTANCES = ("logit", "margin")
SCALES = ("pixels", "normalised")
SMALLEST_NORM = 1e-12
"""Below this a gradient counts as so long: the distance of a constant function is huge, and its slope 0."""


@dataclass(frozen=True)
class Config(sgd.Config):
    """Those of every training by stochastic gradient descent, and the penalty's.

    ``alpha``, ``tau``. P is the group ``penalised_level`` of ``penalised_partition``, None for the classes; the others
    are those of its other levels, and rows of unknown level are in neither. ``distance``, ``second_order`` and
    ``scale`` as above.
    """

    alpha: NonNegative
    tau: float
    penalised_partition: str | None
    penalised_level: str | None
    distance: Annotated[str, one_of(DISTANCES)]
    second_order: bool
    scale: Annotated[str, one_of(SCALES)]


def fit(dataset: ImageDataset, config: Config, rngs: Generators, resume: Checkpoint | None = None) -> Classifier:
    """One network at its checkpoints; see :func:`pipeline.training.sgd_training.trained`. Draws from the first rng.

    The history has besides ``cross_entropy`` and ``penalty``, the mean over batches of |...| above, without alpha.
    Raises ValueError for a partition or level that the dataset does not have.
    """
    from pipeline.training.sgd_training import trained

    inside, outside = sides(dataset, config.penalised_partition, config.penalised_level)
    return trained("adverm", dataset, config, rngs[0], resume, objective(inside, outside, dataset.std, config))


def sides(dataset: ImageDataset, partition: str | None, level: str | None) -> tuple[Array, Array]:
    """Which rows are in the group, and which in another: two masks (n,)."""
    name = dataset.label_name if partition is None else partition
    if name not in dataset.partitions:
        raise ValueError(
            f"expected method.penalised_partition among those of {dataset.name!r}, {', '.join(dataset.partitions)}; "
            f"found {name!r}"
        )
    levels = dataset.levels[name]
    if level not in levels:
        raise ValueError(
            f"expected method.penalised_level among those of {name!r}, {', '.join(levels)}; found {level!r}"
        )
    codes = dataset.partitions[name]
    inside = codes == levels.index(level)
    return inside, ~inside & (codes >= 0)


def objective(inside: Array, outside: Array, std: Sequence[float], config: Config) -> Objective:
    """The loss above as a function of network, pixels, labels and row numbers; ``std`` (c,) of the normalisation."""
    import torch
    from torch.nn.functional import cross_entropy

    masks: dict[torch.device, torch.Tensor] = {}
    both, spread = torch.from_numpy(np.stack([inside, outside])), torch.tensor(std).reshape(-1, 1, 1)

    def loss(
        forward: Forward, pixels: torch.Tensor, label: torch.Tensor, rows: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, Terms]:
        pixels.requires_grad_(True)
        logits = forward(pixels)
        right = logits.argmax(dim=1) == label
        numerator, gradient = linearised(logits, pixels, right, config.distance, config.second_order)
        if config.scale == "normalised":
            gradient = gradient * spread.to(gradient.device)
        norm = gradient.flatten(1).square().sum(dim=1).clamp_min(SMALLEST_NORM**2).sqrt()
        near = torch.sigmoid(config.tau - numerator / norm)
        if rows.device not in masks:
            masks[rows.device] = both.to(rows.device)
        penalty = gap(near, masks[rows.device][:, rows] & right)
        entropy = cross_entropy(logits, label)
        return entropy + config.alpha * penalty, logits, {"cross_entropy": entropy, "penalty": penalty}

    return loss


def linearised(
    logits: torch.Tensor, pixels: torch.Tensor, right: torch.Tensor, distance: str, second_order: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """|z_c| or the margin of each point (n,), and its gradient in the pixels (n, c, h, w).

    The gradient is 0 where a point is not ``right`` (n,), and a constant unless of ``second_order``.
    """
    import torch

    top, _ = logits.topk(2, dim=1)
    value = top[:, 0] if distance == "logit" else top[:, 0] - top[:, 1]
    (gradient,) = torch.autograd.grad((value * right).sum(), pixels, retain_graph=True, create_graph=second_order)
    return value.abs(), gradient


def gap(near: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """|mean of ``near`` (n,) over the first of ``masks`` (2, n) - mean over the second|; 0 where one is empty."""
    counts = masks.sum(dim=1)
    means = (near * masks).sum(dim=1) / counts.clamp_min(1)
    return (means[0] - means[1]).abs() * counts.all()
