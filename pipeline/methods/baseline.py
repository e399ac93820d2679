r"""Baseline: networks with one hidden layer, trained by Adam on class-balanced batches without a fairness constraint.

Each repetition minimises, over w = (W_1, b_1, W_2, b_2),

.. math:: \frac12 \sum_{y \in \{0, 1\}} E\big[\log(1 + e^{-(2y - 1) z_w(X)}) \mid Y = y\big]

where z_w is the margin of ``fairness_audits.models.mlp``. A batch has equally many rows of both classes, drawn with
replacement, so its mean cross entropy estimates this objective. This corrects for class imbalance.

All repetitions share every operation (batched matrix products), and the gradient is written out. With 250 rows a step,
calls of the library take most of the time; R networks pay for them once.

Source: Maity et al. 2021, appendix F.3.1 and table 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from fairness_audits.group_metrics import balanced_accuracy
from fairness_audits.models import mlp
from fairness_audits.models.device import arrays, visible_device
from fairness_audits.validation import Checked, Count, Positive, at_least, even
from fairness_audits.values import Array, Batch, Classifier, Dataset, Generators

if TYPE_CHECKING:
    import torch

CHUNK = 100
"""Number of steps whose batches are drawn together."""
RECORDS = 20
"""Number of points of a training curve."""
EPSILON = 1e-7
"""Added to Adam's denominator, as Keras does."""
HalfAndHalf = Annotated[int, at_least(2), even]
"""A batch size that splits evenly between the two classes."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``hidden_units`` H; Adam's ``learning_rate``; ``batch_size`` rows per step, half from each class; ``steps``."""

    hidden_units: Count
    learning_rate: Positive
    batch_size: HalfAndHalf
    steps: Count


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Train on the first ``len(rngs)`` splits, all in one batch."""
    count = len(rngs)
    parameters, history = train(dataset.batch("train", count), dataset.batch("test", count), config, rngs)
    return Classifier.of("baseline", dataset, "mlp", parameters, history=history)


def balanced_rows(label: Array, batch_size: int, steps: int, rng: np.random.Generator) -> Iterator[Array]:
    """Yield row numbers of ``steps`` class-balanced batches, at most CHUNK at a time: (chunk, batch_size) int64.

    The first half of each batch has label 0 and the second half label 1, each drawn with replacement. Raises ValueError
    if ``label`` (n,) lacks a class.
    """
    classes = [np.flatnonzero(label == y) for y in (0, 1)]
    for y, rows in enumerate(classes):
        if len(rows) == 0:
            raise ValueError(f"expected training rows of both classes, found none with label {y}: cannot balance them")
    for start in range(0, steps, CHUNK):
        size = (min(CHUNK, steps - start), batch_size // 2)
        yield np.concatenate([rows[rng.integers(0, len(rows), size)] for rows in classes], axis=1)


def balanced_loss_and_accuracy(parameters: Mapping[str, Array], held_out: Batch) -> tuple[Array, Array]:
    """Compute cross entropy and accuracy on the test rows, with weight 1/2 for each class: two arrays (R,).

    Used only for the training curve, so computed in the precision of ``held_out.features``.
    """
    positive = held_out.label == 1
    precision = held_out.features.dtype
    margin = mlp.margin({name: values.astype(precision) for name, values in parameters.items()}, held_out.features)
    losses = np.logaddexp(0, np.where(positive, -margin, margin), dtype=float)
    loss = sum((losses * among).sum(axis=-1) / among.sum(axis=-1) for among in (positive, ~positive)) / 2
    return np.asarray(loss), balanced_accuracy(held_out.label, margin > 0)


def train(data: Batch, held_out: Batch, plan: Config, rngs: Generators) -> tuple[dict[str, Array], dict[str, Array]]:
    """Train one network for each generator, from Glorot-uniform weights and zero biases.

    Returns the parameters of ``fairness_audits.models.mlp`` and the training curve: ``step`` (L,), and the
    class-balanced ``loss`` and ``balanced_accuracy`` on ``held_out`` (R, L).
    """
    import torch

    device = visible_device()
    start = mlp.glorot_networks(rngs, (data.features.shape[-1], plan.hidden_units, 2))
    # The biases are the weights of one more input that is always 1.
    w1 = torch.tensor(np.concatenate([start["w1"], start["b1"][:, None]], axis=1), dtype=torch.float32, device=device)
    w2 = torch.tensor(start["w2"], dtype=torch.float32, device=device)
    b2 = torch.tensor(start["b2"], dtype=torch.float32, device=device)
    optimizer = torch.optim.Adam([w1, w2, b2], lr=plan.learning_rate, eps=EPSILON, fused=True)

    count, n, d = data.features.shape
    x = torch.ones((count * n, d + 1), dtype=torch.float32, device=device)
    x[:, :d] = torch.as_tensor(data.features, device=device).reshape(count * n, d)
    offsets = n * np.arange(count)
    draws = zip(
        *(balanced_rows(label, plan.batch_size, plan.steps, rng) for label, rng in zip(data.label, rngs, strict=True)),
        strict=True,
    )
    recorded = recorded_chunks(plan.steps)
    held_out = replace(held_out, features=held_out.features.astype(np.float32))
    curve: list[tuple[int, Array, Array]] = []
    step = 0
    for chunk, rows in enumerate(draws):
        batches = torch.as_tensor(np.stack(rows, axis=1) + offsets[:, None], device=device)
        for batch in batches:
            inputs = x.index_select(0, batch.reshape(-1)).view(count, plan.batch_size, d + 1)
            w1.grad, w2.grad, b2.grad = _gradients(inputs, w1, w2, b2)
            optimizer.step()
        step += len(batches)
        if chunk in recorded:
            curve.append((step, *balanced_loss_and_accuracy(_parameters(w1, w2, b2), held_out)))
    steps, losses, accuracies = zip(*curve, strict=True)
    history = {
        "step": np.array(steps),
        "loss": np.stack(losses, axis=1),
        "balanced_accuracy": np.stack(accuracies, axis=1),
    }
    return _parameters(w1, w2, b2), history


def recorded_chunks(steps: int) -> set[int]:
    """Return the chunks after which the training curve is recorded: at most RECORDS, including the last."""
    chunks = -(-steps // CHUNK)
    return set(np.unique(np.linspace(0, chunks, RECORDS + 1)[1:].round().astype(int) - 1).tolist()) - {-1}


def _gradients(
    x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute gradients of each repetition's mean cross entropy over x (R, n, d + 1), whose second half has label 1."""
    import torch

    count = x.shape[1]
    v = w2[..., 1] - w2[..., 0]
    hidden = torch.bmm(x, w1).relu_()
    margin = (hidden * v[:, None]).sum(-1) + (b2[:, 1] - b2[:, 0])[:, None]
    slope = margin.sigmoid()
    slope[:, count // 2 :] -= 1
    slope /= count
    for_v = torch.bmm(slope[:, None], hidden)[:, 0]
    for_c = slope.sum(-1)
    # sign(max(h, 0)) is the indicator of an active unit.
    for_hidden = hidden.sign_().mul_(v[:, None]).mul_(slope[..., None])
    for_w1 = torch.bmm(x.transpose(1, 2), for_hidden)
    return for_w1, torch.stack([-for_v, for_v], dim=-1), torch.stack([-for_c, for_c], dim=-1)


def _parameters(w1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> dict[str, Array]:
    return arrays({"w1": w1[:, :-1], "b1": w1[:, -1], "w2": w2, "b2": b2})
