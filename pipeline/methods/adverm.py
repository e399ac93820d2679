r"""AdvERM: cross entropy with a penalty on robustness bias, the gap in safe points between a group and the others.

.. math:: \ell(B) = \frac{1}{|B|} \sum_{i \in B} -\log p_{y_i}(x_i)
          + \alpha \left| \frac{1}{|I|} \sum_{i \in I} s(\tau - d(x_i))
                        - \frac{1}{|O|} \sum_{i \in O} s(\tau - d(x_i)) \right|

I are the correctly classified members of the group P in the batch, and O the correctly classified others. The logistic
function s is a smooth indicator of a distance below tau. If I or O is empty, the penalty is 0. With the bare indicator
in its place (``indicator: step``, another choice in the authors' code), the penalty has no gradient and trains nothing.
The distance is measured to the boundary of f linearised at x (c is the predicted class; on correctly classified points,
the label):

.. math:: d = \frac{|z_c|}{\|\nabla_x z_c\|} \;\;(\text{logit}), \qquad
          d = \frac{z_c - \max_{j \ne c} z_j}{\|\nabla_x (z_c - \max_{j \ne c} z_j)\|} \;\;(\text{margin})

``logit`` is (8) with the logit of the predicted class as f, as in the authors' code. The boundary between C classes is
where two logits are equal, not where one logit is 0; ``margin`` corrects this. The authors treat the norm as a
constant, so the penalty changes only the logit. ``second_order`` also differentiates the norm, which needs a second
derivative of the network. They measure the gradient, and so tau, in normalised inputs (``scale: normalised``);
``pixels`` is the unit of all reported distances. As in their code, the gradient is taken in training mode. It includes
dropout and, through batch normalisation, the effect of a point on the other points' logits. (They compute it for I and
O separately, which leaves out the effect of a point on the other set.)

Source: Nanda et al. 2021, (7)-(9) and appendix B, and their released code.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.validation import NonNegative, one_of
from fairness_audits.values import Array, Checkpoint, Classifier, Generators, ImageDataset
from pipeline.methods import sgd

if TYPE_CHECKING:
    import torch

    from pipeline.training.sgd_training import Forward, Objective, Terms

DISTANCES = ("logit", "margin")
INDICATORS = ("sigmoid", "step")
SCALES = ("pixels", "normalised")
SMALLEST_NORM = 1e-12
"""Lower bound on the length of a gradient. A constant function has a large distance and slope 0."""


@dataclass(frozen=True)
class Config(sgd.Config):
    """Settings of stochastic gradient descent and of the penalty.

    P is the group ``penalised_level`` of ``penalised_partition`` (None: the classes). The others are its other levels;
    rows of unknown level are in neither set. ``alpha``, ``tau``, ``indicator``, ``distance``, ``second_order`` and
    ``scale`` are described in the module's docstring.
    """

    alpha: NonNegative
    tau: float
    indicator: Annotated[str, one_of(INDICATORS)]
    penalised_partition: str | None
    penalised_level: str | None
    distance: Annotated[str, one_of(DISTANCES)]
    second_order: bool
    scale: Annotated[str, one_of(SCALES)]


def fit(dataset: ImageDataset, config: Config, rngs: Generators, resume: Checkpoint | None = None) -> Classifier:
    """Train one network with checkpoints; see :func:`pipeline.training.sgd_training.trained`. Uses the first generator.

    The history also has ``cross_entropy`` and ``penalty``, the mean over batches of |...| above without alpha. Raises
    ValueError for a partition or level that the data set does not have.
    """
    from pipeline.training.sgd_training import trained

    inside, outside = sides(dataset, config.penalised_partition, config.penalised_level)
    return trained("adverm", dataset, config, rngs[0], resume, objective(inside, outside, dataset.std, config))


def sides(dataset: ImageDataset, partition: str | None, level: str | None) -> tuple[Array, Array]:
    """Return two masks (n,): rows in the group, and rows in another group."""
    name = dataset.label_name if partition is None else partition
    if name not in dataset.partitions:
        raise InvalidInput(
            f"expected method.penalised_partition among those of {dataset.name!r}, {', '.join(dataset.partitions)}; "
            f"found {name!r}",
            source=dataset.name,
            option="penalised_partition",
        )
    levels = dataset.levels[name]
    if level not in levels:
        problem = f"expected method.penalised_level among those of {name!r}, {', '.join(levels)}; found {level!r}"
        raise InvalidInput(problem, source=dataset.name, option="penalised_level", column=name)
    codes = dataset.partitions[name]
    inside = codes == levels.index(level)
    return inside, ~inside & (codes >= 0)


def objective(inside: Array, outside: Array, std: Sequence[float], config: Config) -> Objective:
    """Return the loss as a function of network, pixels, labels and row numbers; ``std`` (c,) normalises the pixels."""
    import torch
    from torch.nn.functional import cross_entropy

    masks_on = functools.cache(torch.from_numpy(np.stack([inside, outside])).to)
    spread = torch.tensor(std).reshape(-1, 1, 1)

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
        closer = config.tau - numerator / norm
        near = torch.sigmoid(closer) if config.indicator == "sigmoid" else (closer > 0).to(closer)
        penalty = gap(near, masks_on(rows.device)[:, rows] & right)
        entropy = cross_entropy(logits, label)
        return entropy + config.alpha * penalty, logits, {"cross_entropy": entropy, "penalty": penalty}

    return loss


def linearised(
    logits: torch.Tensor, pixels: torch.Tensor, right: torch.Tensor, distance: str, second_order: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute |z_c| or the margin of each point (n,), and its gradient in the pixels (n, c, h, w).

    The gradient is 0 for points that are not ``right`` (n,), and is a constant unless ``second_order`` is set.
    """
    import torch

    top, _ = logits.topk(2, dim=1)
    value = top[:, 0] if distance == "logit" else top[:, 0] - top[:, 1]
    (gradient,) = torch.autograd.grad((value * right).sum(), pixels, retain_graph=True, create_graph=second_order)
    return value.abs(), gradient


def gap(near: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Compute |difference of the means of ``near`` (n,) over the two ``masks`` (2, n)|; 0 if one mask is empty."""
    counts = masks.sum(dim=1)
    means = (near * masks).sum(dim=1) / counts.clamp_min(1)
    return (means[0] - means[1]).abs() * counts.all()
