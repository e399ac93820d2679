"""The fair metric, which defines the inputs that should be treated alike.

d(x, x')^2 = (x - x')' Sigma (x - x'). For a *sensitive subspace* spanned by the orthonormal columns of U, Sigma is the
projector I - U U' onto its complement. Points that differ only in sensitive directions have distance 0.

Source: Maity et al. 2021, "Statistical inference for individual fairness", sections 4.1, 4.2, F.2; the sensitive
subspace is that of Yurochkin et al. 2020.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array, Batch

RANK_TOLERANCE = 1e-8
"""A unit direction adds a dimension only if its length outside the span of the others exceeds this tolerance."""

MOST_TILT = 1e-3
"""A regression has converged if one more Newton step changes each coefficient by less than this share of the largest.
"""


@dataclass(frozen=True)
class FairMetric:
    """Squared distance (x - x')' matrix (x - x'); leading axes are repetitions.

    ``matrix`` (..., d, d) is Sigma = I - U U', and ``basis`` (..., d, k) is U. ``directions`` (..., m, d) spans the
    sensitive subspace; the given or learned directions are neither normalised nor orthogonal (m >= k).
    """

    matrix: Array
    basis: Array
    directions: Array

    @property
    def largest_eigenvalue(self) -> float:
        """The largest eigenvalue of Sigma: exactly 1, or 0 if every direction is sensitive."""
        return float(self.basis.shape[-1] < self.basis.shape[-2])

    def operator(self, like: Any) -> Callable[..., Any]:
        """Return (v, factor = 1) -> factor * v Sigma, a new array, for v (..., n, d) of the kind of ``like``.

        The kind is the array type, device and dtype. The product uses the basis, v - (v U) U', with 4 d k instead of 2
        d^2 operations per point. Raises InvalidInput if ``like`` is not floating point.
        """
        if not (like.dtype.kind == "f" if isinstance(like, np.ndarray) else like.is_floating_point()):
            problem = f"expected floating-point features, found {like.dtype}"
            raise InvalidInput(problem, option="features", remedy="Convert them")
        basis = self.basis.astype(like.dtype) if isinstance(like, np.ndarray) else like.new_tensor(self.basis)
        transposed = basis.swapaxes(-1, -2)
        if not isinstance(like, np.ndarray) and like.ndim == 2:
            # Torch does this in one pass over v.
            return lambda v, factor=1.0: v.addmm(v @ basis, transposed, beta=factor, alpha=-factor)

        def outside_subspace(v: Any, factor: float = 1.0) -> Any:
            within = (v @ basis) @ transposed
            within -= v
            within *= -factor
            return within

        return outside_subspace

    def squared_distance(self, x: Array, other: Array) -> Array:
        """Compute (x - x')' Sigma (x - x') for points (..., n, d): shape (..., n), never below 0."""
        difference = np.asarray(x) - np.asarray(other)
        # A projector is idempotent, so its quadratic form is the squared length: exact zero stays zero.
        return (self.operator(difference)(difference) ** 2).sum(axis=-1)


def from_directions(directions: Array) -> FairMetric:
    """Return Sigma = I - U U', with U an orthonormal basis of the span of the rows of ``directions`` (m, d).

    The rows are scaled to length 1. U holds their right singular vectors with singular value above RANK_TOLERANCE, so
    directions that repeat or combine others do not add a dimension. No rows (0, d) give the Euclidean metric. Raises
    InvalidInput for a wrong shape, a non-finite entry, or a direction of length 0.
    """
    rows = np.asarray(directions, dtype=float)
    if rows.ndim != 2:
        problem = f"expected sensitive directions of shape (number, features), found shape {rows.shape}"
        raise InvalidInput(problem, option="directions")
    if (infinite := ~np.isfinite(rows).all(axis=1)).any():
        problem = f"sensitive directions {_rows(infinite)} have entries that are not finite"
        raise InvalidInput(problem, option="directions", row=int(infinite.argmax()))
    # Divide by the largest entry first, so that lengths of tiny or huge directions neither underflow nor overflow.
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if (largest == 0).any():
        raise InvalidInput(
            f"sensitive directions {_rows(largest == 0)} are zero",
            option="directions",
            row=int((largest == 0).argmax()),
            remedy="Remove them: a direction needs a length",
        )
    unit = rows / largest[:, None]
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    _, singular, right = np.linalg.svd(unit, full_matrices=False)
    basis = right[singular > RANK_TOLERANCE].T
    return FairMetric(np.eye(rows.shape[1]) - basis @ basis.T, basis, rows)


def rotated(angle: float) -> FairMetric:
    """Return Sigma = v v', v = R(angle) (0, 1)' = (-sin, cos)': the metric of the plane that ignores ``angle``.

    The angle is in degrees; 0 ignores the first coordinate. Source: Maity et al. 2021, section 4.1 (its text: the
    printed formula lacks the cross term).
    """
    radians = np.deg2rad(angle)
    return from_directions(np.array([[np.cos(radians), np.sin(radians)]]))


def sensitive_directions(
    features: Array, protected: Mapping[str, Array], sensitive_inputs: Sequence[int] = (), counts: Array | None = None
) -> Array:
    """Return one direction per protected attribute and per sensitive input column: (m, d), not normalised.

    The direction of an attribute is the coefficient vector w of min_{w, b} sum_i log(1 + exp(-s_i (w'x_i + b))) + |w|^2
    / 2, where s_i = +-1 is the attribute: it is normal to the boundary between its two groups. The columns in
    ``sensitive_inputs`` are protected attributes themselves. They are left out of the regressions (w is 0 there), and
    their axes are added.

    The regression runs to convergence (gradient below 1e-10 by Newton's method): stopping early tilts the subspace by
    tens of degrees. Parameters: ``features`` (n, d), ``protected[name]`` (n,) in {0, 1}; ``counts`` (n,), how many
    people a row stands for. Raises InvalidInput for an attribute with other values or a single group, and for features
    that are not finite. Source: Maity et al. 2021, section 4.2, F.2.
    """
    features = np.asarray(features, dtype=float)
    if (infinite := ~np.isfinite(features).all(axis=1)).any():
        problem = f"rows {_rows(infinite)} of the features are not finite"
        raise InvalidInput(problem, option="features", row=int(infinite.argmax()), remedy="Remove them")
    d = features.shape[1]
    inputs = sorted(int(column) for column in sensitive_inputs)
    others = np.setdiff1d(np.arange(d), inputs)
    directions = np.zeros((len(protected) + len(inputs), d))
    for row, (name, values) in enumerate(protected.items()):
        groups = np.unique(values)
        if groups.tolist() != [0, 1]:
            problem = (
                f"expected both groups 0 and 1 of protected attribute {name!r}, found values {groups[:5].tolist()}"
            )
            remedy = "Code it as 0 and 1 with members of both, or drop it"
            raise InvalidInput(problem, option="protected", column=name, remedy=remedy)
        directions[row, others] = _logistic_coefficients(features[:, others], np.asarray(values), name, counts)
    directions[len(protected) + np.arange(len(inputs)), inputs] = 1.0
    return directions


def learn(
    features: Array, protected: Mapping[str, Array], sensitive_inputs: Sequence[int] = (), counts: Array | None = None
) -> FairMetric:
    """Return the metric that ignores the span of :func:`sensitive_directions`, with its parameters and errors."""
    return from_directions(sensitive_directions(features, protected, sensitive_inputs, counts))


def learn_batch(batch: Batch, sensitive_inputs: Sequence[int] = ()) -> FairMetric:
    """Learn the metric of each repetition of a batch: stacked matrix (R, d, d), basis (R, d, k), directions (R, m, d).

    Raises InvalidInput if the subspaces of the repetitions differ in dimension.
    """
    metrics = [
        learn(features, {name: values[r] for name, values in batch.protected.items()}, sensitive_inputs)
        for r, features in enumerate(batch.features)
    ]
    ranks = sorted({metric.basis.shape[1] for metric in metrics})
    if len(ranks) > 1:
        problem = (
            f"the sensitive subspaces of the repetitions have dimensions {ranks}, because the directions of some "
            "protected attributes are parallel in some splits"
        )
        raise InvalidInput(problem, option="protected", remedy="Learn the metric of each repetition separately")
    parts = ("matrix", "basis", "directions")
    return FairMetric(*(np.stack([getattr(metric, part) for metric in metrics]) for part in parts))


def principal_angles(a: FairMetric, b: FairMetric) -> Array:
    """Compute the angles theta_1 <= theta_2 <= ... in degrees between two sensitive subspaces: (..., min(k_a, k_b))."""
    from scipy.linalg import subspace_angles

    return np.rad2deg(subspace_angles(a.basis, b.basis))[..., ::-1]


def _logistic_coefficients(features: Array, group: Array, name: str, counts: Array | None) -> Array:
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    regression = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10, max_iter=500)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        # If the Hessian is singular because of very different column scales, scikit-learn falls back to L-BFGS.
        warnings.simplefilter("ignore", LinAlgWarning)
        refused: dict[str, Any] = {"option": "features", "column": name, "remedy": "Standardise the features"}
        problem = f"the regression of protected attribute {name!r} on the features did not converge"
        try:
            regression.fit(features, group, counts)
        except ConvergenceWarning as error:
            raise InvalidInput(f"{problem} ({error})", **refused) from error
    if _tilt(regression, features, group, counts) > MOST_TILT:
        raise InvalidInput(f"{problem}, because their scales differ too much", **refused)
    return np.asarray(regression.coef_[0])


def _tilt(regression: Any, features: Array, group: Array, counts: Array | None) -> float:
    """Return the largest change by one more Newton step over the largest coefficient, both in standard deviations."""
    spread = features.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    mean = features.mean(axis=0)
    p = regression.predict_proba(features)[:, 1]
    x = np.column_stack([(features - mean) / scale, np.ones(len(features))])
    own = regression.coef_[0] * scale
    penalty = np.append(scale**-2.0, 0.0)
    counts = np.ones(len(p)) if counts is None else np.asarray(counts, float)
    hessian = x.T @ (x * (counts * p * (1 - p))[:, None]) + np.diag(penalty)
    step = np.linalg.lstsq(hessian, x.T @ (counts * (p - group)) + penalty * np.append(own, 0.0), rcond=None)[0][:-1]
    return float(np.abs(step).max() / max(np.abs(own).max(), np.finfo(float).tiny))


def _rows(mask: Array) -> str:
    numbers = np.flatnonzero(mask)
    shown = ", ".join(str(number) for number in numbers[:5])
    return f"[{shown}{', ...' if len(numbers) > 5 else ''}]"
