r"""Both of SenSR's attacks on LANES samples at once, compiled.

What makes it fast:

- The samples lie side by side, one in each lane of a vector register, so no sum runs across a register.
- The subspace attack moves the hidden units along fixed vectors, h = h_0 + sum_k a_k W D_k, so a step costs K
  multiplications a unit and never touches the inputs.
- The full attack takes tiny steps: one step of Adam moves a coordinate by at most its rate times
  :func:`largest_step`, so unit j cannot change sign within |h_j| / (rate largest_step |W_j|_1) steps. While no unit
  does, the gradient of the margin, q = sum_{j: h_j > 0} v_j W_j, is constant, and a step moves the margin by q . step.
  Only units so near to 0 that they could cross it are looked at again, no sooner than this bound says, and q is
  corrected by one row of W where one has crossed.

Letters: d inputs and one more that is always 1 (its weights are the biases), H units, both padded with zeros to a
multiple of UNROLL; K sensitive directions, padded with zeros to an even number; n samples in a batch. The margin of
class 1 over class 0 is z = sum_j v_j max(W_j . x, 0) + c, the sign s = 2 y - 1, and 0 in a lane that holds no sample.
Gradients are those of the *sum* of the batch's losses and Adam's epsilon is n times larger instead: the iterates are
those of the mean, and fewer numbers underflow. A matrix with one row for each coordinate or unit and LANES columns is
stored flat, since distances that are known when compiling are what lets the inner loops become vector instructions.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from fairness_audits.compiled import njit
from fairness_audits.values import Array
from pipeline.training import sensr_config
from pipeline.training.sensr_config import BETA_1, BETA_2

LANES = 32
UNROLL = 4
TERMS = 10
"""Of the series of the exponential, on arguments up to log(2) / 2: a relative error of 1e-11, or rounding."""
TINIEST = 1e-17
"""A smaller gradient enters Adam's second moment as this one; see :func:`second_moment`. Its square is normal."""

_njit: Any = numba.njit
# Called by compiled code alone, so no door for Python is built.
_internal = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# The one function that Python calls. It takes 10 CPU-seconds to compile, so its machine code is cached, together with
# that of the functions that it calls.
_files = [__file__.removesuffix("lanes.py") + name for name in ("lanes.py", "attacks.py", "training.py")]
_sources = [*_files, sensr_config.__file__]
compiled_entry: Any = njit(sources=_sources, fastmath={"contract"}, nogil=True, error_model="numpy", cache=True)
# A product and the sum that follows may be rounded once instead of twice; in sums over a batch the order is free too.
compiled: Any = _njit(fastmath={"contract"}, **_internal)
compiled_sums: Any = _njit(fastmath={"contract", "reassoc", "nsz"}, **_internal)


class SensrNetwork(NamedTuple):
    """W (H, d) and its transpose, v (H,), c (1,), the effects W D_k (K, H), and |W_j|_1 (H,)."""

    weights: Array
    transposed: Array
    output: Array
    bias: Array
    effects: Array
    norms: Array


class Attack(NamedTuple):
    """What both attacks need besides the network.

    ``directions`` D and orthonormal ``basis`` U (K, d); ``subspace_rates`` and ``full_rates`` with the factor of each
    step of Adam in them, the latter for rate 1; ``epsilon`` (1,), n times Adam's; ``series`` 1 / k! for k < TERMS;
    ``power`` and ``bits``, one memory of LANES numbers as floating-point and as integers; d without padding and
    without the input that is always 1; :func:`largest_step` of the full attack.
    """

    directions: Array
    basis: Array
    subspace_rates: Array
    full_rates: Array
    epsilon: Array
    series: Array
    power: Array
    bits: Array
    inputs: int
    largest: float


def corrected_rates(rate: float, steps: int) -> Array:
    """rate sqrt(1 - b_2^t) / (1 - b_1^t) for t = 1, ..., steps: Adam's step sizes as TensorFlow 1 corrects them."""
    t = np.arange(1, steps + 1)
    return np.asarray(rate * np.sqrt(1 - BETA_2**t) / (1 - BETA_1**t))


def largest_step(steps: int) -> float:
    r"""The most that one of the first ``steps`` steps of Adam can move a coordinate, whatever the gradients, at rate 1.

    By the Cauchy-Schwarz inequality, for any gradients g_1, ..., g_t,

    .. math:: m_t^2 = (1 - b_1)^2 \Big(\sum_{j < t} b_1^j g_{t-j}\Big)^2
              \le \frac{(1 - b_1)^2}{1 - b_2} \sum_{j < t} (b_1^2 / b_2)^j \; v_t .
    """
    ratio = BETA_1**2 / BETA_2
    sums = (1 - ratio ** np.arange(1, steps + 1)) / (1 - ratio)
    return float((corrected_rates(1.0, steps) * (1 - BETA_1) * np.sqrt(sums / (1 - BETA_2))).max(initial=0.0))


@compiled
def second_moment(second: float, gradient: float, keep: float, add: float, tiniest: float) -> float:
    """b_2 v + (1 - b_2) max(|g|, TINIEST)^2: Adam's second moment, kept a normal number.

    Smaller ones cost some processors a hundred times the time, and samples whose loss is all but 0 make a hundred
    thousand of them in an iteration. A root of 10^-17 is lost in Adam's epsilon (n 10^-8, for n samples) to the last
    digit of float32, and a moment whose root is not is so much larger that (1 - b_2) 10^-34 is lost in it.
    """
    size = abs(gradient)
    size = tiniest if size < tiniest else size
    return keep * second + add * size * size


@compiled
def add_products(out: Array, weights: Array, x: Array) -> None:
    """out[r, i] += sum_c weights[r, c] x[c, i], four rows and four columns at a time."""
    for r in range(0, weights.shape[0], UNROLL):
        o = out[r * LANES : (r + UNROLL) * LANES]
        for c in range(0, weights.shape[1], UNROLL):
            a0, a1, a2, a3 = weights[r, c], weights[r, c + 1], weights[r, c + 2], weights[r, c + 3]
            b0, b1, b2, b3 = weights[r + 1, c], weights[r + 1, c + 1], weights[r + 1, c + 2], weights[r + 1, c + 3]
            c0, c1, c2, c3 = weights[r + 2, c], weights[r + 2, c + 1], weights[r + 2, c + 2], weights[r + 2, c + 3]
            d0, d1, d2, d3 = weights[r + 3, c], weights[r + 3, c + 1], weights[r + 3, c + 2], weights[r + 3, c + 3]
            rows = x[c * LANES : (c + UNROLL) * LANES]
            for i in range(LANES):
                x0, x1, x2, x3 = rows[i], rows[LANES + i], rows[2 * LANES + i], rows[3 * LANES + i]
                o[i] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                o[LANES + i] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                o[2 * LANES + i] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                o[3 * LANES + i] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3


@compiled
def margins(hidden: Array, network: SensrNetwork, margin: Array) -> None:
    """z = sum_j v_j max(h_j, 0) + c."""
    zero = hidden.dtype.type(0)
    for i in range(LANES):
        margin[i] = network.bias[0]
    v = network.output
    for j in range(0, v.shape[0], UNROLL):
        v0, v1, v2, v3 = v[j], v[j + 1], v[j + 2], v[j + 3]
        h = hidden[j * LANES : (j + UNROLL) * LANES]
        for i in range(LANES):
            h0, h1, h2, h3 = h[i], h[LANES + i], h[2 * LANES + i], h[3 * LANES + i]
            low = v0 * (h0 if h0 > zero else zero) + v1 * (h1 if h1 > zero else zero)
            margin[i] += low + (v2 * (h2 if h2 > zero else zero) + v3 * (h3 if h3 > zero else zero))


@compiled
def slopes(margin: Array, sign: Array, attack: Attack, slope: Array) -> None:
    """d loss / dz = -s / (1 + exp(s z)), by exp(-|z|) = 2^-m sum_k f^k / k! with |z| = m log 2 - f.

    Beyond s z = 60 it is taken for 0 (it is below 1e-26): products of such slopes would leave the range of float32.
    """
    power, bits, series = attack.power, attack.bits, attack.series
    number, integer = power.dtype.type, bits.dtype.type
    zero, one, half, deepest = number(0), number(1), number(0.5), number(-60)
    # log(2) in two parts, the first with so few digits that m times it is exact.
    octaves, octave, rest = number(1.4426950408889634), number(0.693359375), number(-2.1219444005469057e-4)
    s2, s3, s4, s5 = series[2], series[3], series[4], series[5]
    s6, s7, s8, s9 = series[6], series[7], series[8], series[9]
    digits = integer(23 if power.itemsize == 4 else 52)
    origin = integer(127 if power.itemsize == 4 else 1023)
    for i in range(LANES):
        agreement = margin[i] * sign[i]
        exponent = -agreement if agreement > zero else agreement
        exponent = exponent if exponent > deepest else deepest
        m = integer(half - exponent * octaves)
        bits[i] = (origin - m) << digits
        f = exponent + number(m) * octave + number(m) * rest
        tail = s5 + f * (s6 + f * (s7 + f * (s8 + f * s9)))
        slope[i] = one + f * (one + f * (s2 + f * (s3 + f * (s4 + f * tail))))
    for i in range(LANES):
        agreement = margin[i] * sign[i]
        decay = slope[i] * power[i] if agreement < -deepest else zero
        slope[i] = -sign[i] * (decay if agreement > zero else one) / (one + decay)


@compiled
def total_loss(margin: Array, sign: Array) -> float:
    """sum_i log(1 + exp(-s_i z_i)) over the lanes that hold a sample; the logarithm is taken once, of the product.

    1 + exp(-|z|) is 1 in float64 beyond |z| = 40. It is not worked out there: it would underflow beyond 708.
    """
    total, product = 0.0, 1.0
    for i in range(LANES):
        if sign[i] != 0:
            agreement = margin[i] * sign[i]
            total += max(-agreement, 0.0)
            # Written so that NaN stays NaN.
            if not abs(agreement) > 40:
                product *= 1.0 + math.exp(-abs(agreement))
    return total + math.log(product)


@compiled
def shift(hidden: Array, effects: Array, a: Array) -> None:
    """h += sum_k a_k W D_k, two directions and four units at a time."""
    for k in range(0, effects.shape[0], 2):
        e, f, pair = effects[k], effects[k + 1], a[k * LANES : (k + 2) * LANES]
        for j in range(0, effects.shape[1], UNROLL):
            e0, e1, e2, e3 = e[j], e[j + 1], e[j + 2], e[j + 3]
            f0, f1, f2, f3 = f[j], f[j + 1], f[j + 2], f[j + 3]
            h = hidden[j * LANES : (j + UNROLL) * LANES]
            for i in range(LANES):
                a0, a1 = pair[i], pair[LANES + i]
                h[i] += e0 * a0 + f0 * a1
                h[LANES + i] += e1 * a0 + f1 * a1
                h[2 * LANES + i] += e2 * a0 + f2 * a1
                h[3 * LANES + i] += e3 * a0 + f3 * a1
