"""A network trained to classify images by cross entropy, as audited in the study of robustness bias.

Source: Nanda et al. 2021, section 7.2, with the settings of their released code.
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
    """Train one network; see :func:`pipeline.training.sgd_training.trained`. Uses the first generator."""
    from pipeline.training.sgd_training import trained

    return trained("standard", dataset, config, rngs[0], resume, cross_entropy)


def cross_entropy(
    forward: Forward, pixels: torch.Tensor, label: torch.Tensor, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, Terms]:
    """Return the mean of -log softmax(f(x))_y, and the logits."""
    from torch.nn.functional import cross_entropy

    logits = forward(pixels)
    return cross_entropy(logits, label), logits, {}
