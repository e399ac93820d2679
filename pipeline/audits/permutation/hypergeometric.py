r"""The hypergeometric distribution for any number of units: its probabilities around a centre, and draws from it.

.. math:: P(X = x) = \binom{K}{x} \binom{N - K}{m - x} \Big/ \binom{N}{m}

X counts the marked among m drawn without replacement from N units, K of which are marked.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from pipeline.types import Array

UNDERFLOW = 750.0
"""exp(-UNDERFLOW) is less than the smallest double."""

NUMPY_LIMIT = 10**9
"""NumPy draws hypergeometric numbers only from fewer units of either kind."""

SMALLEST_STIRLING = 256
"""From here on three terms of Stirling's series are exact in double precision."""


class Window(NamedTuple):
    """Consecutive integers x and log P(X = x) - log P(X = centre)."""

    x: Array
    log_weight: Array


def window(marked: int, total: int, size: int, centre: int | None = None, depth: float = UNDERFLOW) -> Window:
    """log P(X = x) - log P(X = centre) for all x within sqrt(m' ``depth`` / 2) of ``centre``, by default the mode.

    By Hoeffding's bound P(|X - EX| >= t) <= 2 exp(-2 t^2 / m'), with m' the least of m, N - m, K and N - K, what is
    left out about the mode is below exp(-depth): the cost grows with the root of the number of units. Sums of
    the logarithms of P(x + 1) / P(x) = (K - x)(m - x) / ((x + 1)(N - K - m + x + 1)), outwards from the centre, keep
    the precision that differences of log-factorials would lose.
    """
    low, high = max(0, size - (total - marked)), min(size, marked)
    mode = (marked + 1) * (size + 1) // (total + 2)
    middle = min(max(mode if centre is None else centre, low), high)
    reach = int(np.sqrt(min(size, total - size, marked, total - marked) * depth / 2)) + 2
    x = np.arange(max(low, middle - reach), min(high, middle + reach) + 1)
    k = x[:-1].astype(float)
    steps = np.log((marked - k) / (k + 1)) + np.log((size - k) / (total - marked - size + k + 1))
    below = middle - x[0]
    downward, upward = -np.cumsum(steps[:below][::-1])[::-1], np.cumsum(steps[below:])
    return Window(x, np.concatenate([downward, [0.0], upward]))


def draw(marked: Array, others: Array, size: Array, rng: np.random.Generator) -> Array:
    """One hypergeometric number for each entry: ``size`` drawn from ``marked`` + ``others`` units; shapes broadcast."""
    marked, others, size = np.broadcast_arrays(marked, others, size)
    huge = (marked >= NUMPY_LIMIT) | (others >= NUMPY_LIMIT)
    if not huge.any():
        return rng.hypergeometric(marked, others, size)
    drawn = np.empty(marked.shape, dtype=np.int64)
    drawn[~huge] = rng.hypergeometric(marked[~huge], others[~huge], size[~huge])
    drawn[huge] = draw_huge(marked[huge], others[huge], size[huge], rng)
    return drawn


def draw_huge(marked: Array, others: Array, size: Array, rng: np.random.Generator) -> Array:
    r"""The same for any number of units, by ratio of uniforms: (n,) each -> (n,).

    With U, V uniform, x = floor(a + h (V - 1/2) / U) is accepted if U^2 <= P(x) / P(mode), where a = EX + 1/2 and
    h = 2 sqrt(2/e) sqrt(Var X + 1/2) + 3 - 2 sqrt(3/e) (Stadlober 1990). The ratio of probabilities is exact to about
    1e-9 for 1e15 units, where log-factorials would be lost in rounding.
    """
    total = marked + others
    share, left = marked / total, (total - size) / np.maximum(total - 1, 1)
    centre = size * share + 0.5
    width = 2 * np.sqrt(2 / np.e) * np.sqrt(size * share * (1 - share) * left + 0.5) + 3 - 2 * np.sqrt(3 / np.e)
    low, high = np.maximum(0, size - others), np.minimum(size, marked)
    mode = np.clip(((marked + 1.0) * ((size + 1.0) / (total + 2.0))).astype(np.int64), low, high)
    drawn, todo = np.empty(len(marked), dtype=np.int64), np.arange(len(marked))
    while todo.size:
        u, v = 1 - rng.random(todo.size), rng.random(todo.size)
        x = np.floor(centre[todo] + width[todo] * (v - 0.5) / u)
        inside = (x >= low[todo]) & (x <= high[todo])
        x = np.where(inside, x, mode[todo]).astype(np.int64)
        log_ratio = _log_ratio(marked[todo], others[todo], size[todo], mode[todo], x - mode[todo])
        accepted = inside & (2 * np.log(u) <= log_ratio)
        drawn[todo[accepted]] = x[accepted]
        todo = todo[~accepted]
    return drawn


def _log_ratio(marked: Array, others: Array, size: Array, x: Array, step: Array) -> Array:
    """log P(X = x + step) - log P(X = x)."""
    growing = _log_factorial_step(x, step) + _log_factorial_step(others - size + x, step)
    return -growing - _log_factorial_step(marked - x, -step) - _log_factorial_step(size - x, -step)


def _log_factorial_step(k: Array, step: Array) -> Array:
    """log (k + step)! - log k!; by the difference of Stirling's series where both are large."""
    j = k + step
    large = np.minimum(j, k) >= SMALLEST_STIRLING
    i, m, d = (np.where(large, values, 1.0) for values in (j, k, step))
    series = d * np.log(m) + (i + 0.5) * np.log1p(d / m) - d
    series += (1 / i - 1 / m) / 12 - (1 / i**3 - 1 / m**3) / 360
    return np.where(large, series, gammaln(np.where(large, 1, j) + 1.0) - gammaln(np.where(large, 1, k) + 1.0))
