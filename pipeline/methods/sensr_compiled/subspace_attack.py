"""SenSR's attack along the sensitive subspace; see ``pipeline.methods.sensr_compiled.lanes`` for the letters."""

from __future__ import annotations

import math

import numpy as np

from pipeline.methods.sensr_compiled.lanes import (
    LANES,
    TINIEST,
    Attack,
    SensrNetwork,
    active_outputs,
    add_products,
    compiled,
    margins,
    second_moment,
    slopes,
    total_loss,
)
from pipeline.methods.sensr_settings import BETA_1, BETA_2
from pipeline.types import Array


@compiled
def subspace_attack(start: Array, sign: Array, network: SensrNetwork, attack: Attack, a: Array) -> tuple[float, float]:
    """Adam's ascent on the loss over the weights a (m, LANES) of the directions, from 0; the loss before and after."""
    number = start.dtype.type
    b1, b2, c1, c2, epsilon = number(BETA_1), number(BETA_2), number(1 - BETA_1), number(1 - BETA_2), attack.epsilon
    tiniest = number(TINIEST)
    hidden, active, along = np.empty_like(start), np.empty_like(start), np.empty_like(a)
    margin, slope = np.empty_like(sign), np.empty_like(sign)
    first, second = np.zeros_like(a), np.zeros_like(a)
    a[:] = number(0)
    hidden[:] = start
    margins(hidden, network, margin)
    before = total_loss(margin, sign)
    for t in range(attack.subspace_rates.shape[0]):
        rate = attack.subspace_rates[t]
        slopes(margin, sign, slope)
        active_outputs(hidden, network, active)
        along[:] = number(0)
        add_products(along, network.transposed_effects, active)
        for k in range(0, a.shape[0], LANES):
            for i in range(LANES):
                gradient = slope[i] * along[k + i]
                first[k + i] = b1 * first[k + i] + c1 * gradient
                second[k + i] = second_moment(second[k + i], gradient, b2, c2, tiniest)
                a[k + i] += rate * first[k + i] / (math.sqrt(second[k + i]) + epsilon)
        hidden[:] = start
        add_products(hidden, network.effects, a)
        margins(hidden, network, margin)
    return before, total_loss(margin, sign)
