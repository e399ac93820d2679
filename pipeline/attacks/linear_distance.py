"""The exact distance to the decision boundary of a linear classifier, in closed form."""

from collections.abc import Callable

import numpy as np

from pipeline.attacks import Distances
from pipeline.types import Array

BLOCK_NUMBERS = 1 << 22
"""At most so many float64 numbers in one array of intermediate results."""


def linear_distance(weight: Array, bias: Array, images: Array, label: Array) -> Distances:
    """d(x) = min_{k != y} (z_y - z_k) / ||w_y - w_k||_2  for z = W x + b, where z_y is the largest; 0 where it is not.

    The box [0, 1]^d is ignored: the closest point of another class may lie outside it.

    Parameters: ``weight`` (K, d) and ``bias`` (K,) act on flattened pixels; ``images`` (n, ...) with d pixels each;
    ``label`` (n,). Computed in float64. Classes of equal weights have no boundary between them; a point whose class has
    none with any other has failed.
    Source: Nanda et al. 2021, section 4.1.
    """

    def each(w: Array, gap: Array, y: Array, _: Array) -> Array:
        steep = np.stack([np.linalg.norm(w - own, axis=1) for own in w])[y]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(steep > 0, gap / steep, np.inf)

    return _distances(weight, bias, images, label, each, 1)


def linear_distance_in_box(weight: Array, bias: Array, images: Array, label: Array) -> Distances:
    """min_{k != y} min ||delta||_2  subject to  z_k(x + delta) >= z_y(x + delta)  and  x + delta in [0, 1]^d.

    A class that the box holds no point of is infinitely far. Parameters and failures as
    :func:`linear_distance`, which is never above this.
    """

    def each(w: Array, gap: Array, y: Array, x: Array) -> Array:
        return to_plane_in_box(gap, w[y][:, None] - w, x[:, None])

    return _distances(weight, bias, images, label, each, len(np.atleast_1d(bias)))


def to_plane_in_box(gap: Array, v: Array, x: Array) -> Array:
    """||delta(t)||_2 at the t >= 0 where v' delta(t) = -gap,  delta(t) = clip(x - t v, 0, 1) - x; inf without such t.

    -v' delta(t) rises piecewise linearly in t; its pieces end where a pixel meets its bound, at t_j = x_j / v_j or
    (x_j - 1) / v_j. Shapes: ``gap`` (n, k) >= 0, ``v`` (n, k, d), ``x`` (n, 1, d); result (n, k).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        end = np.where(v > 0, x / v, np.where(v < 0, (x - 1) / v, np.inf))
    order = end.argsort(axis=2)
    end = np.take_along_axis(end, order, axis=2)
    end = np.where(np.isfinite(end), end, 0.0)
    square = np.take_along_axis(v**2, order, axis=2)
    # At the end of piece j pixels 1..j have met their bounds, and all others have moved by t_j v.
    bound = np.cumsum(square * end, axis=2)
    free = np.cumsum(square[..., ::-1], axis=2)[..., ::-1] - square
    reached = bound + free * end
    piece = np.minimum((reached < gap[..., None]).sum(axis=2, keepdims=True), v.shape[2] - 1)

    def at_piece(values: Array) -> Array:
        return np.take_along_axis(values, piece, axis=2)[..., 0]

    with np.errstate(divide="ignore", invalid="ignore"):
        t = (gap - at_piece(bound - square * end)) / at_piece(free + square)
    possible = reached.max(axis=2) >= gap
    t = np.where(possible & np.isfinite(t), t, 0.0)
    delta = np.clip(x - t[..., None] * v, 0, 1) - x
    return np.where(possible, np.linalg.norm(delta, axis=2), np.inf)


def _distances(
    weight: Array,
    bias: Array,
    images: Array,
    label: Array,
    each: Callable[[Array, Array, Array, Array], Array],
    arrays: int,
) -> Distances:
    """The least of ``each``(W, gaps, labels, pixels) over the other classes; failures and wrong predictions marked."""
    w, b, y = np.asarray(weight, dtype=float), np.asarray(bias, dtype=float), np.asarray(label)
    distance = np.empty(len(y))
    size = max(1, BLOCK_NUMBERS // (arrays * w.shape[1]))
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        x = np.asarray(images[rows], dtype=float).reshape(-1, w.shape[1])
        z, own = x @ w.T + b, y[rows, None]
        gap = np.take_along_axis(z, own, axis=1) - z
        far = each(w, gap, y[rows], x)
        np.put_along_axis(far, own, np.inf, axis=1)
        distance[rows] = np.where(z.argmax(axis=1) == y[rows], far.min(axis=1), 0.0)
    failed = ~np.isfinite(distance)
    return Distances(np.where(failed, np.nan, distance), failed, None, len(y))
