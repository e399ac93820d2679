"""A network trained to classify images by cross entropy alone: what the study audits.

Source: Nanda et al. 2021, section 7.2; the settings are those of the code that they released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.methods.sgd_settings import SgdSettings
from pipeline.types import Classifier, ImageDataset, Keeper

if TYPE_CHECKING:
    import torch

    from pipeline.methods.sgd_training import Forward, Terms

RESUMES = True


@dataclass(frozen=True)
class Config(SgdSettings):
    """Those of every training by stochastic gradient descent."""


def fit(
    dataset: ImageDataset, config: Config, rngs: Sequence[np.random.Generator], keeper: Keeper | None = None
) -> Classifier:
    """One network at its checkpoints; see :func:`pipeline.methods.sgd_training.trained`. Draws from the first rng."""
    from pipeline.methods.sgd_training import trained

    return trained("standard", dataset, config, rngs[0], keeper, cross_entropy)


def cross_entropy(
    forward: Forward, pixels: torch.Tensor, label: torch.Tensor, rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, Terms]:
    """The mean of -log softmax(f(x))_y, and the logits."""
    from torch.nn.functional import cross_entropy

    logits = forward(pixels)
    return cross_entropy(logits, label), logits, {}
