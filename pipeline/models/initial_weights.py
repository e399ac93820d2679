"""The weights that rectified networks begin training with."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Array = np.ndarray


def glorot_networks(rngs: Sequence[np.random.Generator], widths: Sequence[int], bias: float = 0.0) -> dict[str, Array]:
    """One network for each generator, weights uniform on +-sqrt(6 / (fan-in + fan-out)), every bias equal to ``bias``.

    ``widths`` are the numbers of inputs, of the units of each hidden layer, and of outputs. Returns ``w1`` (R, inputs,
    units), ``b1`` (R, units), ``w2`` and so on.
    """
    networks: dict[str, Array] = {}
    for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        limit = np.sqrt(6 / (inputs + outputs))
        networks[f"w{number}"] = np.stack([rng.uniform(-limit, limit, (inputs, outputs)) for rng in rngs])
        networks[f"b{number}"] = np.full((len(rngs), outputs), bias)
    return networks
