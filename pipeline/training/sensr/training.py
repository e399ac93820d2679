"""SenSR's iterations on one network, compiled: both attacks, the gradient of the parameters, and their update.

See ``pipeline.training.sensr.lanes`` for the letters.
"""

import math

import numpy as np

from fairness_audits.values import Array
from pipeline.training.sensr.attacks import full_attack, subspace_attack
from pipeline.training.sensr.lanes import (
    LANES,
    TINIEST,
    UNROLL,
    Attack,
    SensrNetwork,
    add_products,
    compiled,
    compiled_entry,
    compiled_sums,
    second_moment,
    shift,
)
from pipeline.training.sensr_config import BETA_1, BETA_2, EPSILON, PENALTY_MAX, PENALTY_MIN, RATE_DECAY

# Between the rows of two large arrays, so that a block's part of all rows does not compete for the same cache lines.
GAP = 16


@compiled
def _network(parameters: Array, attack: Attack) -> SensrNetwork:
    """The network of flat ``parameters``."""
    inputs = attack.directions.shape[1]
    units = (parameters.shape[0] - 1) // (inputs + 1)
    weights = parameters[: units * inputs].reshape((units, inputs))
    transposed = np.empty((inputs, units), weights.dtype)
    effects = np.zeros((attack.directions.shape[0], units), weights.dtype)
    norms = np.zeros(units)
    for j in range(units):
        for c in range(inputs):
            transposed[c, j] = weights[j, c]
        for c in range(attack.inputs):
            norms[j] += abs(weights[j, c])
            for k in range(effects.shape[0]):
                effects[k, j] += attack.directions[k, c] * weights[j, c]
    doubled = parameters.dtype.type(2) * parameters[units * inputs :]
    return SensrNetwork(weights, transposed, doubled[:units], doubled[units:], effects, norms)


@compiled
def _gather(features: Array, signs: Array, rows: Array, x: Array, sign: Array) -> None:
    """Rows of the features into lanes; a lane without a row repeats the first one with sign 0, so it has no loss."""
    for i in range(LANES):
        row = rows[i if i < rows.shape[0] else 0]
        sign[i] = signs[row] if i < rows.shape[0] else 0
        for c in range(features.shape[1]):
            x[c * LANES + i] = features[row, c]


@compiled
def _keep(
    x: Array,
    a: Array,
    delta: Array,
    hidden: Array,
    slope: Array,
    attack: Attack,
    block: int,
    moved: Array,
    active: Array,
) -> None:
    """What the parameters' gradient needs of a block: the samples x + D'a + delta and their slopes where h > 0.

    Two rows or directions in a loop are 16 times as fast as one: a shorter loop seems to be unrolled as scalar code.
    """
    zero = x.dtype.type(0)
    start, stop = block * LANES, (block + 1) * LANES
    for c in range(moved.shape[0]):
        row = moved[c, start:stop]
        d0, d1 = attack.directions[0, c], attack.directions[1, c]
        for i in range(LANES):
            row[i] = x[c * LANES + i] + delta[c * LANES + i] + a[i] * d0 + a[LANES + i] * d1
        for k in range(2, attack.directions.shape[0], 2):
            d0, d1, pair = attack.directions[k, c], attack.directions[k + 1, c], a[k * LANES : (k + 2) * LANES]
            for i in range(LANES):
                row[i] += pair[i] * d0
                row[i] += pair[LANES + i] * d1
    for j in range(0, active.shape[0], 2):
        h, row, below = hidden[j * LANES : (j + 2) * LANES], active[j, start:stop], active[j + 1, start:stop]
        for i in range(LANES):
            row[i] = slope[i] if h[i] > zero else zero
            below[i] = slope[i] if h[LANES + i] > zero else zero


@compiled_sums
def _parameter_gradient(active: Array, moved: Array, bias: float, network: SensrNetwork, gradient: Array) -> None:
    """The gradient of the batch's summed loss in (W, half of v, half of c).

    With A_j = sum of slope x over the samples where h_j > 0: v_j A_j, W_j . A_j and the sum of the slopes.
    """
    units, inputs = network.weights.shape
    zero = gradient.dtype.type(0)
    for j in range(units):
        slope, v, along = active[j], network.output[j], zero
        for c in range(0, inputs, UNROLL):
            x0, x1, x2, x3 = moved[c], moved[c + 1], moved[c + 2], moved[c + 3]
            g0, g1, g2, g3 = zero, zero, zero, zero
            for i in range(slope.shape[0]):
                g0 += slope[i] * x0[i]
                g1 += slope[i] * x1[i]
                g2 += slope[i] * x2[i]
                g3 += slope[i] * x3[i]
            w, g = network.weights[j, c : c + UNROLL], gradient[j * inputs + c : j * inputs + c + UNROLL]
            g[0], g[1], g[2], g[3] = v * g0, v * g1, v * g2, v * g3
            along += w[0] * g0 + w[1] * g1 + w[2] * g2 + w[3] * g3
        gradient[units * inputs + j] = along
    gradient[units * inputs + units] = bias


@compiled
def _update(parameters: Array, first: Array, second: Array, gradient: Array, rate: float, epsilon: float) -> None:
    """One step of Adam's descent on the parameters."""
    number = parameters.dtype.type
    b1, b2, c1, c2 = number(BETA_1), number(BETA_2), number(1 - BETA_1), number(1 - BETA_2)
    step, small, tiniest = number(rate), number(epsilon), number(TINIEST)
    for p in range(parameters.shape[0]):
        first[p] = b1 * first[p] + c1 * gradient[p]
        second[p] = second_moment(second[p], gradient[p], b2, c2, tiniest)
        parameters[p] -= step * first[p] / (math.sqrt(second[p]) + small)


@compiled
def _updated_lambda(penalty: float, distance: float, radius: float) -> float:
    """lambda + max(d, rho) / min(d, rho) (d - rho), kept within its bounds; d = 0 gives the lower one."""
    if distance <= 0:
        return PENALTY_MIN
    moved = penalty + max(distance, radius) / min(distance, radius) * (distance - radius)
    return min(max(moved, PENALTY_MIN), PENALTY_MAX)


@compiled_entry
def train(
    rows: Array,
    curve: Array,
    learning_rate: float,
    radius: float,
    features: Array,
    signs: Array,
    attack: Attack,
    parameters: Array,
    first: Array,
    second: Array,
    penalty: Array,
    counts: Array,
) -> None:
    """Train one network on the batches ``rows`` (iterations, n); see :class:`Repetition` for what is updated in place.

    ``curve`` (iterations, 3) receives the mean loss at the attacked samples, lambda, and the mean fair distance.
    """
    kind, n = parameters.dtype, rows.shape[1]
    number = kind.type
    blocks, inputs, directions = -(-n // LANES), features.shape[1], attack.directions.shape[0]
    units = (parameters.shape[0] - 1) // (inputs + 1)
    x, sign = np.empty((blocks, inputs * LANES), kind), np.empty((blocks, LANES), kind)
    a, hidden = np.empty((blocks, directions * LANES), kind), np.empty((blocks, units * LANES), kind)
    slope, delta = np.empty(LANES, kind), np.empty(inputs * LANES, kind)
    moved, active = np.zeros((inputs, blocks * LANES + GAP), kind), np.zeros((units, blocks * LANES + GAP), kind)
    gradient = np.empty_like(parameters)
    for t in range(rows.shape[0]):
        network = _network(parameters, attack)
        before, after = 0.0, 0.0
        for b in range(blocks):
            _gather(features, signs, rows[t, b * LANES : (b + 1) * LANES], x[b], sign[b])
            hidden[b, :] = number(0)
            add_products(hidden[b], network.weights, x[b])
            loss = subspace_attack(hidden[b], sign[b], network, attack, a[b])
            before, after = before + loss[0], after + loss[1]
        if after < before:
            counts[1] += 1
            a[:, :] = number(0)
        before, after, distance, bias = 0.0, 0.0, 0.0, number(0)
        for b in range(blocks):
            shift(hidden[b], network.effects, a[b])
            result = full_attack(hidden[b], sign[b], network, attack, penalty[1], penalty[0], delta, slope)
            before, after, distance = before + result[0], after + result[1], distance + result[2]
            _keep(x[b], a[b], delta, hidden[b], slope, attack, b, moved, active)
            bias += slope.sum()
        curve[t, 0], curve[t, 1], curve[t, 2] = after / n, penalty[0], distance / n
        if not (math.isfinite(after) and math.isfinite(distance)):
            counts[3] += 1
        elif after - penalty[0] * distance < before:
            counts[2] += 1
            penalty[1] *= RATE_DECAY
        else:
            counts[0] += 1
            penalty[0] = _updated_lambda(penalty[0], distance / n, radius)
            _parameter_gradient(active, moved, bias, network, gradient)
            rate = learning_rate * math.sqrt(1 - BETA_2 ** counts[0]) / (1 - BETA_1 ** counts[0])
            _update(parameters, first, second, gradient, rate, n * EPSILON)
