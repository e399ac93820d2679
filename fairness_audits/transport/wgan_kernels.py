r"""Compiled training iterations of one Wasserstein GAN; ``fairness_audits.transport.wgan`` states the equations.

Import this module only inside functions, because it imports the compiler.

Each row of a minibatch occupies one of LANES lanes, so a vector instruction processes as many rows as fit into a
register. A layer's units (or inputs) are the rows of a matrix with LANES columns. The matrix is stored flat, because
the compiler vectorises inner loops only if their strides are known at compile time. The gradient of a weight is a sum
over lanes. It is computed from transposed derivatives, whose lanes hold units.

Every operation is rounded as written, except in :func:`add_products`, where a product and the sum it enters are rounded
once. The compiler may change nothing else. The numbers therefore depend neither on the width of the machine's registers
nor on whether the code was just compiled or loaded from the cache.

Notation: d inputs, padded with zeros to a multiple of ROWS; H hidden units, padded to a multiple of LANES; n rows in
a minibatch, in blocks of LANES; the last block may have lanes without a row. Weights are stored in *panels* of LANES
columns: ``w[p, j, k]`` connects input j to unit p LANES + k. Padding has gradient 0 and stays 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fairness_audits.compiled import njit
from fairness_audits.values import Array

LANES = 64
AREA = LANES * LANES
ROWS = 4
"""In products, the number of rows and the number of columns of a matrix are multiples of this."""
TINIEST = 1e-15

_njit: Any = njit
compiled_entry: Any = _njit(error_model="numpy", nogil=True, cache=True)
# Only compiled code calls these functions, so they need no Python wrapper.
_internal = {"error_model": "numpy", "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
compiled: Any = _njit(**_internal)
fused: Any = _njit(fastmath={"contract"}, **_internal)


class WganNetwork(NamedTuple):
    """A network's parameters, or their gradient: the array ``flat`` and its views by layer.

    ``w1`` (panels, d, LANES), ``b1`` (H,), ``w2`` (panels, H, LANES), ``b2`` (H,). A generator has ``w3``
    (panels of the outputs, H, LANES) and ``b3`` (padded d,); a critic ``w3`` (1, 1, H) and ``b3`` (1,).
    """

    flat: Array
    w1: Array
    b1: Array
    w2: Array
    b2: Array
    w3: Array
    b3: Array


class WganPlan(NamedTuple):
    """Constants of the training, in its precision; ``keep`` is one minus RMSprop's ``decay``."""

    rate: float
    decay: float
    keep: float
    epsilon: float
    clip: float
    cost_weight: float


class Trained(NamedTuple):
    """A network in training, RMSprop's moving means ``moments`` of squared gradients, and storage for a gradient."""

    network: WganNetwork
    moments: Array
    gradient: WganNetwork


class Scratch(NamedTuple):
    """Storage for one block of rows: inputs x and images y (d LANES,), units of both networks (H LANES,), a panel.

    ``slope`` is the derivative with respect to units, ``slope_y`` the derivative with respect to images, padded with
    zeros to whole panels, and ``lane_slope`` (LANES,) the derivative of the loss with respect to the critic's values.
    """

    x: Array
    y: Array
    slope_y: Array
    lane_slope: Array
    first: Array
    second: Array
    slope: Array
    generator_first: Array
    generator_second: Array
    panel: Array


@fused
def add_products(out: Array, weights: Array, x: Array) -> None:
    """Add sum_c weights[r, c] x[c, i] to out[r, i], in the order of c, four rows and four columns at a time.

    With single rows training takes twice as long, with single rows and columns four times.
    """
    for r in range(0, weights.shape[0], ROWS):
        o = out[r * LANES : (r + ROWS) * LANES]
        for c in range(0, weights.shape[1], ROWS):
            a0, a1, a2, a3 = weights[r, c], weights[r, c + 1], weights[r, c + 2], weights[r, c + 3]
            b0, b1, b2, b3 = weights[r + 1, c], weights[r + 1, c + 1], weights[r + 1, c + 2], weights[r + 1, c + 3]
            c0, c1, c2, c3 = weights[r + 2, c], weights[r + 2, c + 1], weights[r + 2, c + 2], weights[r + 2, c + 3]
            d0, d1, d2, d3 = weights[r + 3, c], weights[r + 3, c + 1], weights[r + 3, c + 2], weights[r + 3, c + 3]
            rows = x[c * LANES : (c + ROWS) * LANES]
            for i in range(LANES):
                x0, x1, x2, x3 = rows[i], rows[LANES + i], rows[2 * LANES + i], rows[3 * LANES + i]
                o[i] = o[i] + a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                o[LANES + i] = o[LANES + i] + b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                o[2 * LANES + i] = o[2 * LANES + i] + c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                o[3 * LANES + i] = o[3 * LANES + i] + d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3


@compiled
def transpose(a: Array, out: Array) -> None:
    """Transpose a (LANES, LANES) into ``out``."""
    for i in range(LANES):
        for k in range(LANES):
            out[i * LANES + k] = a[k * LANES + i]


@compiled
def affine(out: Array, w: Array, b: Array, x: Array) -> None:
    """Compute out = w'x + b for the len(b) units of a layer."""
    for p in range(w.shape[0]):
        units = min(LANES, b.shape[0] - p * LANES)
        o = out[p * AREA : p * AREA + units * LANES]
        for k in range(units):
            for i in range(LANES):
                o[k * LANES + i] = b[p * LANES + k]
        add_products(o, w[p, :, :units].T, x)


@compiled
def rectify(h: Array) -> None:
    """Replace h by max(h, 0); NaN stays NaN."""
    zero = h.dtype.type(0)
    for i in range(h.shape[0]):
        h[i] = zero if h[i] < zero else h[i]


@compiled
def stop_at_inactive(slope: Array, h: Array) -> None:
    """Backpropagate ``slope`` through a rectifier: set it to 0 for inactive units."""
    zero = h.dtype.type(0)
    for i in range(h.shape[0]):
        slope[i] = zero if h[i] <= zero else slope[i]


@compiled
def to_inputs(out: Array, w: Array, slope: Array, units: int) -> None:
    """Compute the derivative with respect to a layer's inputs, w slope."""
    out[:] = out.dtype.type(0)
    for p in range(w.shape[0]):
        inside = min(LANES, units - p * LANES)
        add_products(out, w[p, :, :inside], slope[p * AREA : p * AREA + inside * LANES])


@compiled
def add_weight_gradient(w: Array, b: Array, inputs: Array, slope: Array, panel: Array) -> None:
    """Add sum_i inputs[j, i] slope[k, i] to w[j, k] and sum_i slope[k, i] to b[k], for slopes in whole panels."""
    for p in range(w.shape[0]):
        transpose(slope[p * AREA : (p + 1) * AREA], panel)
        gradient = b[p * LANES : (p + 1) * LANES]
        for i in range(LANES):
            row = panel[i * LANES : (i + 1) * LANES]
            for k in range(gradient.shape[0]):
                gradient[k] += row[k]
        add_products(w[p].reshape(w.shape[1] * LANES), inputs.reshape((w.shape[1], LANES))[:, :LANES], panel)


@compiled
def critic_units(critic: WganNetwork, x: Array, first: Array, second: Array) -> None:
    """Compute the first layer's units after the rectifier, and the second layer's units before it."""
    affine(first, critic.w1, critic.b1, x)
    rectify(first)
    affine(second, critic.w2, critic.b2, first)


@compiled
def output_slope(second: Array, w3: Array, lane_slope: Array) -> None:
    """Replace the second layer's units by the derivative of sum_i lane_slope_i D(x_i) with respect to them."""
    zero = second.dtype.type(0)
    for k in range(w3.shape[0]):
        h, weight = second[k * LANES : (k + 1) * LANES], w3[k]
        for i in range(LANES):
            h[i] = zero if h[i] <= zero else lane_slope[i] * weight


@compiled
def add_output_gradient(h: Array, lane_slope: Array, w3: Array, for_w3: Array, for_b2: Array) -> None:
    """Add the gradients of w3 and b2 for LANES units h (rows, LANES); h becomes the derivative before the rectifier."""
    zero = h.dtype.type(0)
    for i in range(LANES):
        row, s = h[i * LANES : (i + 1) * LANES], lane_slope[i]
        for k in range(LANES):
            for_w3[k] += zero if row[k] <= zero else s * row[k]
            row[k] = zero if row[k] <= zero else s * w3[k]
            for_b2[k] += row[k]


@compiled
def add_critic_gradient(critic: WganNetwork, x: Array, work: Scratch, gradient: WganNetwork) -> None:
    """Add the gradient of sum_i lane_slope_i D(x_i) with respect to the critic's parameters."""
    first, second, panel = work.first, work.second, work.panel
    critic_units(critic, x, first, second)
    w3, for_w3 = critic.w3[0, 0], gradient.w3[0, 0]
    inputs = first.reshape((first.shape[0] // LANES, LANES))[:, :LANES]
    for p in range(critic.w2.shape[0]):
        units = slice(p * LANES, (p + 1) * LANES)
        transpose(second[p * AREA : (p + 1) * AREA], panel)
        add_output_gradient(panel, work.lane_slope, w3[units], for_w3[units], gradient.b2[units])
        add_products(gradient.w2[p].reshape(first.shape[0]), inputs, panel)
    output_slope(second, w3, work.lane_slope)
    to_inputs(work.slope, critic.w2, second, w3.shape[0])
    stop_at_inactive(work.slope, first)
    add_weight_gradient(gradient.w1, gradient.b1, x, work.slope, panel)
    for i in range(LANES):
        gradient.b3[0] += work.lane_slope[i]


@compiled
def generate(generator: WganNetwork, work: Scratch) -> None:
    """Compute y = G(x)."""
    affine(work.generator_first, generator.w1, generator.b1, work.x)
    rectify(work.generator_first)
    affine(work.generator_second, generator.w2, generator.b2, work.generator_first)
    rectify(work.generator_second)
    affine(work.y, generator.w3, generator.b3, work.generator_second)


@compiled
def add_cost_slope(x: Array, y: Array, weight: float, lane_slope: Array, slope: Array) -> None:
    """Add the y-derivative of lambda mean_i (sum_j |x_ij - y_ij|)^2; ``lane_slope`` is -1/n, or 0 without a row."""
    zero = y.dtype.type(0)
    for i in range(LANES):
        distance = zero
        for c in range(i, y.shape[0], LANES):
            distance += abs(y[c] - x[c])
        steepness = -(weight + weight) * lane_slope[i] * distance
        for c in range(i, y.shape[0], LANES):
            if y[c] > x[c]:
                slope[c] += steepness
            elif y[c] < x[c]:
                slope[c] -= steepness


@compiled
def add_generator_gradient(
    generator: WganNetwork, critic: WganNetwork, plan: WganPlan, work: Scratch, gradient: WganNetwork
) -> None:
    """Add the gradient of sum_i lane_slope_i D(G(x_i)) plus the cost with respect to the generator's parameters."""
    generate(generator, work)
    critic_units(critic, work.y, work.first, work.second)
    output_slope(work.second, critic.w3[0, 0], work.lane_slope)
    to_inputs(work.slope, critic.w2, work.second, critic.b2.shape[0])
    stop_at_inactive(work.slope, work.first)
    slope_y = work.slope_y[: work.y.shape[0]]
    to_inputs(slope_y, critic.w1, work.slope, critic.b1.shape[0])
    add_cost_slope(work.x, work.y, plan.cost_weight, work.lane_slope, slope_y)

    first, second, slope, panel = work.generator_first, work.generator_second, work.slope, work.panel
    add_weight_gradient(gradient.w3, gradient.b3, second, work.slope_y, panel)
    to_inputs(slope, generator.w3, slope_y, generator.b3.shape[0])
    stop_at_inactive(slope, second)
    add_weight_gradient(gradient.w2, gradient.b2, first, slope, panel)
    to_inputs(work.first, generator.w2, slope, generator.b2.shape[0])
    stop_at_inactive(work.first, first)
    add_weight_gradient(gradient.w1, gradient.b1, work.x, work.first, panel)


@compiled
def descend(trained: Trained, plan: WganPlan, bound: float) -> None:
    """Make one step of RMSprop, clip each value to the bound, and reset the gradient to 0.

    Squared gradients are at least TINIEST squared, because operations on subnormal numbers are a hundred times slower.
    A root of 10^-15 does not change the last digit of epsilon (10^-7).
    """
    rate, decay, keep, epsilon = plan.rate, plan.decay, plan.keep, plan.epsilon
    values, moments, gradient = trained.network.flat, trained.moments, trained.gradient.flat
    zero, tiniest = values.dtype.type(0), values.dtype.type(TINIEST)
    for i in range(values.shape[0]):
        g = gradient[i]
        size = max(abs(g), tiniest)
        moments[i] = decay * moments[i] + keep * size * size
        value = values[i] - rate * (g / (math.sqrt(moments[i]) + epsilon))
        # These comparisons leave NaN unchanged.
        value = -bound if value < -bound else value
        values[i] = bound if value > bound else value
        gradient[i] = zero


@compiled
def gather(features: Array, rows: Array, slope: float, x: Array, lane_slope: Array) -> None:
    """Copy up to LANES rows into lanes with ``slope``; a lane without a row repeats the first row with slope 0."""
    zero = x.dtype.type(0)
    for i in range(LANES):
        row = rows[i if i < rows.shape[0] else 0]
        lane_slope[i] = slope if i < rows.shape[0] else zero
        for c in range(features.shape[1]):
            x[c * LANES + i] = features[row, c]


@compiled_entry
def train(
    source: Array, target: Array, rows: Array, generator: Trained, critic: Trained, plan: WganPlan, work: Scratch
) -> None:
    """Train on the minibatches ``rows`` (steps, 2 rounds + 1, n): target and source in turn, then the generator's.

    Networks and moments are updated in place. Gradients are 0 before and after.
    """
    rounds, n = rows.shape[1] // 2, rows.shape[2]
    number = source.dtype.type
    share, infinity = number(1) / number(n), number(np.inf)
    for t in range(rows.shape[0]):
        for r in range(rounds):
            for start in range(0, n, LANES):
                gather(target, rows[t, 2 * r, start : start + LANES], -share, work.x, work.lane_slope)
                add_critic_gradient(critic.network, work.x, work, critic.gradient)
            descend(critic, plan, infinity)
            for start in range(0, n, LANES):
                gather(source, rows[t, 2 * r + 1, start : start + LANES], share, work.x, work.lane_slope)
                generate(generator.network, work)
                add_critic_gradient(critic.network, work.y, work, critic.gradient)
            descend(critic, plan, plan.clip)
        for start in range(0, n, LANES):
            gather(source, rows[t, 2 * rounds, start : start + LANES], -share, work.x, work.lane_slope)
            add_generator_gradient(generator.network, critic.network, plan, work, generator.gradient)
        descend(generator, plan, infinity)
