"""SenSR's two attacks on LANES samples at once; see ``pipeline.training.sensr.lanes`` for how, and the letters.

The state of the full attack's coordinate c, from c * STATE on, holds five rows of LANES numbers side by side: the
compiler then sees one array, and that its rows do not overlap.
"""

import math

import numpy as np

from fairness_audits.values import Array
from pipeline.training.sensr.lanes import (
    LANES,
    TINIEST,
    UNROLL,
    Attack,
    SensrNetwork,
    add_products,
    compiled,
    margins,
    second_moment,
    shift,
    slopes,
    total_loss,
)
from pipeline.training.sensr_config import BETA_1, BETA_2

# Where the rows of an input coordinate's state in the full attack begin: q, sum_{k >= 2} U_k U_k' delta, the moments of
# Adam, delta. After them, of what all coordinates share: d loss / dz, z, U_k' delta for k = 0, 1 and what a step adds.
Q, CORRECTION, FIRST, SECOND, DELTA, STATE = (row * LANES for row in range(6))
SLOPE, MARGIN, P0, P1, ADDED0, ADDED1, SHARED = (row * LANES for row in range(7))


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
def _copy(values: Array, out: Array) -> None:
    """out = values, as vector code: Numba compiles ``out[:] = values`` to scalar code."""
    for i in range(out.shape[0]):
        out[i] = values[i]


@compiled
def subspace_attack(start: Array, sign: Array, network: SensrNetwork, attack: Attack, a: Array) -> tuple[float, float]:
    """Adam's ascent on the loss over the weights a (K, LANES) of the directions, from 0; the loss before and after."""
    number = start.dtype.type
    b1, b2, c1, c2, epsilon = number(BETA_1), number(BETA_2), number(1 - BETA_1), number(1 - BETA_2), attack.epsilon[0]
    tiniest = number(TINIEST)
    hidden, along, margin, slope = np.empty_like(start), np.empty_like(a), np.empty_like(sign), np.empty_like(sign)
    first, second = np.zeros_like(a), np.zeros_like(a)
    a[:] = number(0)
    _copy(start, hidden)
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
        _copy(start, hidden)
        shift(hidden, network.effects, a)
        margins(hidden, network, margin)
    return before, total_loss(margin, sign)


@compiled
def full_attack(
    hidden: Array,
    sign: Array,
    network: SensrNetwork,
    attack: Attack,
    rate: float,
    penalty: float,
    delta: Array,
    slope: Array,
) -> tuple[float, float, float]:
    """Adam's ascent on loss - lambda |(I - P) delta|^2 over the displacement delta (d, LANES), from 0.

    Fills ``delta`` and, of the displaced samples, ``hidden`` and ``slope``. Returns the loss before and after, and the
    squared fair distance, each summed over the lanes.
    """
    number = hidden.dtype.type
    steps = attack.full_rates.shape[0]
    # One per cent more than the bound leaves room for rounding.
    furthest = 1.01 * rate * attack.largest
    state, shared = np.zeros(attack.inputs * STATE, hidden.dtype), np.zeros(SHARED, hidden.dtype)
    margin, current = shared[MARGIN : MARGIN + LANES], shared[SLOPE : SLOPE + LANES]
    near, projection = np.empty((hidden.shape[0], 4), np.int32), np.empty(2 * LANES, hidden.dtype)
    margins(hidden, network, margin)
    before = total_loss(margin, sign)
    _margin_gradient(hidden, network, attack, delta, state)
    count = _near_units(hidden, network, steps, furthest, near)
    for t in range(steps):
        slopes(margin, sign, attack, current)
        _project_on_further_directions(state, attack, projection)
        _adam_step(state, shared, attack, number(rate) * attack.full_rates[t], number(2 * penalty))
        _cross(hidden, network, attack, near[:count], t + 1, furthest, state, margin)
    _project_on_further_directions(state, attack, projection)
    distance = _displacement(state, shared, attack, delta)
    add_products(hidden, network.weights, delta)
    margins(hidden, network, margin)
    slopes(margin, sign, attack, slope)
    return before, total_loss(margin, sign), distance


@compiled
def _margin_gradient(hidden: Array, network: SensrNetwork, attack: Attack, q: Array, state: Array) -> None:
    """q = sum_{j: h_j > 0} v_j W_j into ``state``."""
    zero = hidden.dtype.type(0)
    active = np.empty_like(hidden)
    v = network.output
    for j in range(0, v.shape[0], UNROLL):
        v0, v1, v2, v3 = v[j], v[j + 1], v[j + 2], v[j + 3]
        h, on = hidden[j * LANES : (j + UNROLL) * LANES], active[j * LANES : (j + UNROLL) * LANES]
        for i in range(LANES):
            on[i] = v0 if h[i] > zero else zero
            on[LANES + i] = v1 if h[LANES + i] > zero else zero
            on[2 * LANES + i] = v2 if h[2 * LANES + i] > zero else zero
            on[3 * LANES + i] = v3 if h[3 * LANES + i] > zero else zero
    q[:] = zero
    add_products(q, network.transposed, active)
    for c in range(attack.inputs):
        for i in range(LANES):
            state[c * STATE + Q + i] = q[c * LANES + i]


@compiled
def _adam_step(state: Array, shared: Array, attack: Attack, rate: float, penalty: float) -> None:
    """Step every coordinate along slope q - 2 lambda (delta - U U' delta); add what that does to z and U' delta."""
    number = state.dtype.type
    b1, b2, c1, c2, epsilon = number(BETA_1), number(BETA_2), number(1 - BETA_1), number(1 - BETA_2), attack.epsilon[0]
    tiniest = number(TINIEST)
    for c in range(attack.inputs):
        x, u0, u1 = state[c * STATE : (c + 1) * STATE], attack.basis[0, c], attack.basis[1, c]
        for i in range(LANES):
            fair = x[DELTA + i] - (u0 * shared[P0 + i] + u1 * shared[P1 + i]) - x[CORRECTION + i]
            gradient = shared[SLOPE + i] * x[Q + i] - penalty * fair
            first = b1 * x[FIRST + i] + c1 * gradient
            second = second_moment(x[SECOND + i], gradient, b2, c2, tiniest)
            step = rate * first / (math.sqrt(second) + epsilon)
            x[FIRST + i] = first
            x[SECOND + i] = second
            x[DELTA + i] += step
            shared[MARGIN + i] += x[Q + i] * step
            shared[ADDED0 + i] += u0 * step
            shared[ADDED1 + i] += u1 * step
    for i in range(2 * LANES):
        shared[P0 + i] += shared[ADDED0 + i]
        shared[ADDED0 + i] = number(0)


@compiled
def _project_on_further_directions(state: Array, attack: Attack, projection: Array) -> None:
    """sum_{k >= 2} U_k U_k' delta, two directions at a time; ``_adam_step`` has the first two by itself."""
    number = state.dtype.type
    for k in range(2, attack.basis.shape[0], 2):
        projection[:] = number(0)
        for c in range(attack.inputs):
            x, u0, u1 = state[c * STATE : (c + 1) * STATE], attack.basis[k, c], attack.basis[k + 1, c]
            for i in range(LANES):
                projection[i] += u0 * x[DELTA + i]
                projection[LANES + i] += u1 * x[DELTA + i]
        keep = number(0) if k == 2 else number(1)
        for c in range(attack.inputs):
            x, u0, u1 = state[c * STATE : (c + 1) * STATE], attack.basis[k, c], attack.basis[k + 1, c]
            for i in range(LANES):
                x[CORRECTION + i] = keep * x[CORRECTION + i] + (u0 * projection[i] + u1 * projection[LANES + i])


@compiled
def _displacement(state: Array, shared: Array, attack: Attack, delta: Array) -> float:
    """Copy delta out of the state, zero in padded coordinates, and sum |(I - P) delta|^2 over the lanes."""
    zero, tiniest, distance = delta.dtype.type(0), delta.dtype.type(TINIEST), 0.0
    delta[:] = zero
    for c in range(attack.inputs):
        x, u0, u1 = state[c * STATE : (c + 1) * STATE], attack.basis[0, c], attack.basis[1, c]
        for i in range(LANES):
            delta[c * LANES + i] = x[DELTA + i]
            fair = x[DELTA + i] - (u0 * shared[P0 + i] + u1 * shared[P1 + i]) - x[CORRECTION + i]
            # The squares of smaller ones may not be normal numbers, and are lost in the sum. NaN stays NaN.
            fair = zero if abs(fair) < tiniest else fair
            distance += fair * fair
    return distance


@compiled
def _patience(h: float, norm: float, furthest: float) -> int:
    """Steps after which a unit at h could first have changed sign: its input moves by at most norm furthest a step."""
    reach = norm * furthest
    return 1 if abs(h) < 2 * reach else int(min(abs(h) / reach, 1e9))


@compiled
def _near_units(hidden: Array, network: SensrNetwork, steps: int, furthest: float, near: Array) -> int:
    """The (unit, lane, step of the next look, active) that could change sign within ``steps``; returns their number."""
    count = 0
    for j in range(network.output.shape[0]):
        reach = hidden.dtype.type(steps * furthest * network.norms[j])
        h = hidden[j * LANES : (j + 1) * LANES]
        within = 0
        for i in range(LANES):
            within += abs(h[i]) <= reach
        if within > 0 and reach > 0:
            for i in range(LANES):
                if abs(h[i]) <= reach:
                    near[count, 0], near[count, 1], near[count, 3] = j, i, h[i] > 0
                    near[count, 2] = _patience(h[i], network.norms[j], furthest)
                    count += 1
    return count


@compiled
def _cross(
    hidden: Array,
    network: SensrNetwork,
    attack: Attack,
    near: Array,
    t: int,
    furthest: float,
    state: Array,
    margin: Array,
) -> None:
    """Look at the near units that are due after step t; where one has changed sign, correct q and z for it.

    The step moved z as if the unit had stayed as it was; a unit that is now at h instead contributes v h (became
    active) or nothing (was active, and was counted as v h).
    """
    for p in range(near.shape[0]):
        if near[p, 2] <= t:
            j, i, was_on = near[p, 0], near[p, 1], near[p, 3]
            h = hidden[j * LANES + i]
            for c in range(attack.inputs):
                h += network.weights[j, c] * state[c * STATE + DELTA + i]
            near[p, 2] = t + _patience(h, network.norms[j], furthest)
            on = 1 if h > 0 else 0
            if on != was_on:
                near[p, 3] = on
                v = network.output[j] if on else -network.output[j]
                margin[i] += v * h
                for c in range(attack.inputs):
                    state[c * STATE + Q + i] += v * network.weights[j, c]
