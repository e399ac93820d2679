"""The exact distance to the decision boundary of a linear classifier, in closed form."""

import numpy as np

from fairness_audits.attacks import Distances
from fairness_audits.values import Array

BLOCK_NUMBERS = 1 << 22
"""Maximum number of float64 numbers in an intermediate array."""


def linear_distance(weight: Array, bias: Array, images: Array, label: Array) -> Distances:
    """Compute the exact distance of each point to the decision boundary of a linear classifier.

    d(x) = min_{k != y} (z_y - z_k) / ||w_y - w_k||_2  for z = W x + b if z_y is the largest, otherwise 0.

    The box [0, 1]^d is ignored: the closest point of another class may be outside it.

    Parameters
    ----------
    weight, bias : ndarray of shape (K, d) and (K,)
        W and b, which act on flattened pixels.
    images : ndarray of shape (n, ...)
        d pixels each.
    label : ndarray of shape (n,)
        Integer classes y.

    Returns
    -------
    Distances
        Computed in float64. Classes with equal weights have no boundary. A point whose class has no boundary counts as
        failed.

    References
    ----------
    Nanda et al. 2021, section 4.1.

    Examples
    --------
    The boundary of z = (3 a + 4 b - 2, 0) is 3 a + 4 b = 2:

    >>> weight, bias = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([-2.0, 0.0])
    >>> linear_distance(weight, bias, np.array([[0.5, 0.5], [0.1, 0.1]]), np.array([0, 1])).distance
    array([0.3 , 0.26])

    """
    w, b, y = np.asarray(weight, dtype=float), np.asarray(bias, dtype=float), np.asarray(label)
    steep = np.stack([np.linalg.norm(w - own, axis=1) for own in w])
    distance = np.empty(len(y))
    size = max(1, BLOCK_NUMBERS // w.shape[1])
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        z = np.asarray(images[rows], dtype=float).reshape(-1, w.shape[1]) @ w.T + b
        own = y[rows, None]
        gap, norm = np.take_along_axis(z, own, axis=1) - z, steep[y[rows]]
        # Exclude the point's own class.
        far = np.divide(gap, norm, out=np.full_like(gap, np.inf), where=norm > 0)
        distance[rows] = np.where(z.argmax(axis=1) == y[rows], far.min(axis=1), 0.0)
    failed = ~np.isfinite(distance)
    return Distances(np.where(failed, np.nan, distance), failed, None, len(y))


def crossing(weight: Array, bias: Array, images: Array, label: Array) -> Array:
    """Return the closest boundary point of W x + b for each image, in the images' shape, float32.

    An image whose class has no boundary is unchanged. Parameters are those of :func:`linear_distance`.
    """
    w, b, y = np.asarray(weight, dtype=float), np.asarray(bias, dtype=float), np.asarray(label)
    x = np.asarray(images, dtype=float).reshape(len(images), w.shape[1])
    apart = np.array([np.linalg.norm(w - own, axis=1) for own in w])[y]
    z = x @ w.T + b
    gap = np.take_along_axis(z, y[:, None], axis=1) - z
    nearest = np.divide(gap, apart, out=np.full_like(gap, np.inf), where=apart > 0).argmin(axis=1)
    rows = np.arange(len(x))
    steep = np.where(apart[rows, nearest] > 0, apart[rows, nearest], 1.0)
    moved = x + (gap[rows, nearest] / steep**2)[:, None] * (w[nearest] - w[y])
    return np.where(apart[rows, nearest, None] > 0, moved, x).astype(np.float32).reshape(np.shape(images))
