"""A network trained to classify images by cross entropy alone: what the study audits.

Source: Nanda et al. 2021, section 7.2; the settings are those of the code that they released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairness_audits.values import Checkpoint, Classifier, Generators, ImageDataset
from pipeline.training.sgd_config import Config

if TYPE_CHECKING:
    import torch

    from pipeline.training.sgd_training import Forward, Terms

__all__ = ["Config", "fit"]


def fit(dataset: ImageDataset, config: Config, rngs: Generators, resume: Checkpoint | None = None) -> Classifier:
    """One network at its checkpoints; see :func:`pipeline.training.sgd_training.trained`. Draws from the first rng."""
    from pipeline.training.sgd_training import trained

    return trained("standard", dataset, config, rngs[0], resume, cross_entropy)


def cross_entropy(
    forward: Forward, pixels: torch.Tensor, label: torch.Tensor, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, Terms]:
    """The mean of -log softmax(f(x))_y, and the logits."""
    from torch.nn.functional import cross_entropy

    logits = forward(pixels)
    return cross_entropy(logits, label), logits, {}
