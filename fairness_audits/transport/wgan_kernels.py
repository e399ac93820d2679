r"""The iterations of one Wasserstein GAN, compiled; what is computed is stated in ``fairness_audits.transport.wgan``.

Import this module only where it is used: it imports the compiler.

The rows of a minibatch lie side by side, one in each of LANES lanes, so a vector instruction treats as many rows as a
register has room for: a layer's units (or inputs) are the rows of a matrix with LANES columns, stored flat because
distances that are known when compiling are what lets inner loops become vector instructions. A gradient of weights
sums over the lanes; there the derivatives are transposed first, and the lanes hold units instead.

Every operation is rounded as written, but that a product and the sum it enters are rounded once in
:func:`add_products`; the compiler may change nothing else. So the numbers depend neither on the width of a machine's
registers nor on whether the code was compiled just now or read back from disk.

Letters: d inputs, padded with zeros to a multiple of ROWS; H hidden units, padded to a multiple of LANES; n rows in
a minibatch, in blocks of LANES of which the last may have lanes without a row. Weights stand in *panels* of LANES
columns: ``w[p, j, k]`` leads from input j to unit p LANES + k. Padding has gradient 0 and stays 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fairness_audits.compiled import njit
from fairness_audits.values import Array

LANES = 64
AREA = LANES * LANES
ROWS = 4
"""Matrices in products have a multiple of them, and of columns."""
TINIEST = 1e-15

_njit: Any = njit
compiled_entry: Any = _njit(error_model="numpy", nogil=True, cache=True)
# Called by compiled code alone, so no door for Python is built.
_internal = {"error_model": "numpy", "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
compiled: Any = _njit(**_internal)
fused: Any = _njit(fastmath={"contract"}, **_internal)


class WganNetwork(NamedTuple):
    """A network's parameters, or their gradient: ``flat``, and views of it by layer.

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
    """Constants of the training, as numbers of its precision; ``keep`` is one minus RMSprop's ``decay``."""

    rate: float
    decay: float
    keep: float
    epsilon: float
    clip: float
    cost_weight: float


class Trained(NamedTuple):
    """A network in training, RMSprop's moving means ``moments`` of squared gradients, and memory for a gradient."""

    network: WganNetwork
    moments: Array
    gradient: WganNetwork


class Scratch(NamedTuple):
    """Memory for one block of rows: inputs x and images y (d LANES,), the units of both networks (H LANES,), a panel.

    ``slope`` is the derivative by units, ``slope_y`` that by images in whole panels of zeros, ``lane_slope`` (LANES,)
    that of the loss by the critic's values.
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
    """out[r, i] += sum_c weights[r, c] x[c, i], c rising; four rows and four columns at a time.

    Row by row the loop takes a training twice the time, column by column too four times.
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
    """Of a (LANES, LANES)."""
    for i in range(LANES):
        for k in range(LANES):
            out[i * LANES + k] = a[k * LANES + i]


@compiled
def affine(out: Array, w: Array, b: Array, x: Array) -> None:
    """out = w'x + b for the len(b) units of a layer."""
    for p in range(w.shape[0]):
        units = min(LANES, b.shape[0] - p * LANES)
        o = out[p * AREA : p * AREA + units * LANES]
        for k in range(units):
            for i in range(LANES):
                o[k * LANES + i] = b[p * LANES + k]
        add_products(o, w[p, :, :units].T, x)


@compiled
def rectify(h: Array) -> None:
    """max(h, 0), and NaN where h is NaN."""
    zero = h.dtype.type(0)
    for i in range(h.shape[0]):
        h[i] = zero if h[i] < zero else h[i]


@compiled
def stop_at_inactive(slope: Array, h: Array) -> None:
    """The derivative before a rectifier, from that after it: 0 where the unit is inactive."""
    zero = h.dtype.type(0)
    for i in range(h.shape[0]):
        slope[i] = zero if h[i] <= zero else slope[i]


@compiled
def to_inputs(out: Array, w: Array, slope: Array, units: int) -> None:
    """The derivative by a layer's inputs, w slope."""
    out[:] = out.dtype.type(0)
    for p in range(w.shape[0]):
        inside = min(LANES, units - p * LANES)
        add_products(out, w[p, :, :inside], slope[p * AREA : p * AREA + inside * LANES])


@compiled
def add_weight_gradient(w: Array, b: Array, inputs: Array, slope: Array, panel: Array) -> None:
    """w[j, k] += sum_i inputs[j, i] slope[k, i] and b[k] += sum_i slope[k, i], for slopes in whole panels."""
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
    """The first layer's units after the rectifier, the second's before it."""
    affine(first, critic.w1, critic.b1, x)
    rectify(first)
    affine(second, critic.w2, critic.b2, first)


@compiled
def output_slope(second: Array, w3: Array, lane_slope: Array) -> None:
    """The derivative of sum_i lane_slope_i D(x_i) by the second layer's units, in their place."""
    zero = second.dtype.type(0)
    for k in range(w3.shape[0]):
        h, weight = second[k * LANES : (k + 1) * LANES], w3[k]
        for i in range(LANES):
            h[i] = zero if h[i] <= zero else lane_slope[i] * weight


@compiled
def add_output_gradient(h: Array, lane_slope: Array, w3: Array, for_w3: Array, for_b2: Array) -> None:
    """For LANES units h (rows, LANES): the gradient of w3 and b2; h becomes the derivative by the units' sums."""
    zero = h.dtype.type(0)
    for i in range(LANES):
        row, s = h[i * LANES : (i + 1) * LANES], lane_slope[i]
        for k in range(LANES):
            for_w3[k] += zero if row[k] <= zero else s * row[k]
            row[k] = zero if row[k] <= zero else s * w3[k]
            for_b2[k] += row[k]


@compiled
def add_critic_gradient(critic: WganNetwork, x: Array, work: Scratch, gradient: WganNetwork) -> None:
    """The gradient of sum_i lane_slope_i D(x_i) by the critic's parameters."""
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
    """y = G(x)."""
    affine(work.generator_first, generator.w1, generator.b1, work.x)
    rectify(work.generator_first)
    affine(work.generator_second, generator.w2, generator.b2, work.generator_first)
    rectify(work.generator_second)
    affine(work.y, generator.w3, generator.b3, work.generator_second)


@compiled
def add_cost_slope(x: Array, y: Array, weight: float, lane_slope: Array, slope: Array) -> None:
    """Add the derivative by y of lambda mean_i (sum_j |x_ij - y_ij|)^2; ``lane_slope`` is -1/n, or 0 without a row."""
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
    """The gradient of sum_i lane_slope_i D(G(x_i)) plus the cost, by the generator's parameters."""
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
    """One step of RMSprop, then each value kept within the bound; the gradient becomes 0.

    A moment is kept from falling below TINIEST squared: numbers too small to be normal cost processors a hundred times
    the time, and a root of 10^-15 is lost in epsilon (10^-7) to the last digit.
    """
    rate, decay, keep, epsilon = plan.rate, plan.decay, plan.keep, plan.epsilon
    values, moments, gradient = trained.network.flat, trained.moments, trained.gradient.flat
    zero, tiniest = values.dtype.type(0), values.dtype.type(TINIEST)
    for i in range(values.shape[0]):
        g = gradient[i]
        size = max(abs(g), tiniest)
        moments[i] = decay * moments[i] + keep * size * size
        value = values[i] - rate * (g / (math.sqrt(moments[i]) + epsilon))
        # Written so that NaN stays NaN.
        value = -bound if value < -bound else value
        values[i] = bound if value > bound else value
        gradient[i] = zero


@compiled
def gather(features: Array, rows: Array, slope: float, x: Array, lane_slope: Array) -> None:
    """At most LANES rows into lanes with ``slope``; a lane without a row repeats the first one with slope 0."""
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
    """Train on the minibatches ``rows`` (steps, 2 rounds + 1, n): target and source in turn, then the generator's own.

    Networks and moments are updated in place; gradients are 0 before and after.
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
