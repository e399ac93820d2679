"""SenSR's attack along the sensitive subspace; see ``pipeline.methods.sensr_compiled.lanes`` for the letters."""

from __future__ import annotations

import math

import numpy as np

from pipeline.methods.sensr_compiled.lanes import (
    LANES,
    TINIEST,
    UNROLL,
    Attack,
    SensrNetwork,
    compiled,
    margins,
    second_moment,
    shift,
    slopes,
    total_loss,
)
from pipeline.methods.sensr_settings import BETA_1, BETA_2
from pipeline.types import Array


@compiled
def _effects_on_margin(hidden: Array, network: SensrNetwork, along: Array) -> None:
    """dz / da_k = sum_{j: h_j > 0} v_j (W D_k)_j, two directions and four units at a time."""
    zero = hidden.dtype.type(0)
    along[:] = zero
    v, e = network.output, network.effects
    for k in range(0, e.shape[0], 2):
        m = k + 1
        pair = along[k * LANES : (k + 2) * LANES]
        for j in range(0, v.shape[0], UNROLL):
            d0, d1, d2, d3 = v[j] * e[k, j], v[j + 1] * e[k, j + 1], v[j + 2] * e[k, j + 2], v[j + 3] * e[k, j + 3]
            f0, f1, f2, f3 = v[j] * e[m, j], v[j + 1] * e[m, j + 1], v[j + 2] * e[m, j + 2], v[j + 3] * e[m, j + 3]
            h = hidden[j * LANES : (j + UNROLL) * LANES]
            for i in range(LANES):
                on0, on1 = h[i] > zero, h[LANES + i] > zero
                on2, on3 = h[2 * LANES + i] > zero, h[3 * LANES + i] > zero
                low, high = (d0 if on0 else zero) + (d1 if on1 else zero), (d2 if on2 else zero) + (d3 if on3 else zero)
                pair[i] += low + high
                low, high = (f0 if on0 else zero) + (f1 if on1 else zero), (f2 if on2 else zero) + (f3 if on3 else zero)
                pair[LANES + i] += low + high


@compiled
def subspace_attack(start: Array, sign: Array, network: SensrNetwork, attack: Attack, a: Array) -> tuple[float, float]:
    """Adam's ascent on the loss over the weights a (K, LANES) of the directions, from 0; the loss before and after."""
    number = start.dtype.type
    b1, b2, c1, c2, epsilon = number(BETA_1), number(BETA_2), number(1 - BETA_1), number(1 - BETA_2), attack.epsilon[0]
    tiniest = number(TINIEST)
    hidden, along, margin, slope = np.empty_like(start), np.empty_like(a), np.empty_like(sign), np.empty_like(sign)
    first, second = np.zeros_like(a), np.zeros_like(a)
    a[:] = number(0)
    hidden[:] = start
    margins(hidden, network, margin)
    before = total_loss(margin, sign)
    for t in range(attack.subspace_rates.shape[0]):
        rate = attack.subspace_rates[t]
        slopes(margin, sign, attack, slope)
        _effects_on_margin(hidden, network, along)
        for k in range(0, a.shape[0], LANES):
            for i in range(LANES):
                gradient = slope[i] * along[k + i]
                first[k + i] = b1 * first[k + i] + c1 * gradient
                second[k + i] = second_moment(second[k + i], gradient, b2, c2, tiniest)
                a[k + i] += rate * first[k + i] / (math.sqrt(second[k + i]) + epsilon)
        hidden[:] = start
        shift(hidden, network.effects, a)
        margins(hidden, network, margin)
    return before, total_loss(margin, sign)
