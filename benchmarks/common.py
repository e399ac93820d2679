"""Shared parts of the benchmarks: the study's settings, simulated rows of Adult's shape, plain networks and a timer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import yaml

from fairness_audits.values import Array, Dataset
from pipeline.workflow.conf import CONF


def seconds(run: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of several runs."""
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        run()
        least = min(least, time.process_time() - start)
    return least


def study_settings(group: str, name: str, dataset: str = "") -> dict[str, Any]:
    """Return the settings in ``conf`` of a method, map or dataset, with the specific values for ``dataset``."""
    values = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    special = values.pop("per_dataset", None) or {}
    return {**values, **special.get(dataset, {})}


def drawn_dataset(rows: int, tested: int, repetitions: int) -> Dataset:
    """Simulate data of Adult's shape: 5 continuous features, one-hot blocks of 7, 7, 14 and 6, two attributes.

    The attributes shift all features.
    """
    rng = np.random.default_rng(0)
    groups = {"sex": rng.integers(0, 2, rows), "race": (rng.random(rows) < 0.85).astype(int)}
    shift = np.stack(list(groups.values()), axis=1) - 0.5
    blocks = [rng.normal(size=(rows, 5)) + shift @ rng.normal(scale=0.4, size=(2, 5))]
    for width in (7, 7, 14, 6):
        scores = rng.gumbel(size=(rows, width)) + shift @ rng.normal(scale=0.7, size=(2, width))
        blocks.append(np.eye(width)[scores.argmax(axis=1)])
    x = np.concatenate(blocks, axis=1)
    margin = x @ rng.normal(size=x.shape[1])
    label = (margin + rng.logistic(size=rows) > np.quantile(margin, 0.75)).astype(int)
    order = np.stack([rng.permutation(rows) for _ in range(repetitions)])
    names = tuple(f"x{j}" for j in range(x.shape[1]))
    levels = {name: ("0", "1") for name in groups}  # noqa: C420
    train, test = order[:, tested:], order[:, :tested]
    return Dataset("drawn", "simulated", x, names, names[:5], label, "label", groups, levels, train, test)


def plain_network(layers: Mapping[str, Array], dtype: torch.dtype = torch.float32) -> torch.nn.Sequential:
    """Return a torch module of rectified layers ``w1`` (inputs, units), ``b1`` (units,), ``w2`` and so on."""
    parts: list[torch.nn.Module] = []
    for number in range(1, len(layers) // 2 + 1):
        weights, bias = layers[f"w{number}"], layers[f"b{number}"]
        layer = torch.nn.Linear(weights.shape[0], weights.shape[1], dtype=dtype)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(weights.T))
            layer.bias.copy_(torch.as_tensor(bias))
        parts += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])
