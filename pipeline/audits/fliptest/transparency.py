r"""Transparency reports: in which features the members of a flipset differ from their counterparts.

.. math:: \frac{1}{|F^\star|} \sum_{x \in F^\star} (x - G(x)), \qquad
          \frac{1}{|F^\star|} \sum_{x \in F^\star} \operatorname{sign}(x - G(x)), \qquad \star \in \{+, -\}

Each gives a ranking of the features, by absolute value. A mean shift is ranked in units that features share: those of
the model where it sees standardised features, as in most of the paper's studies; else in the ``units`` that are given.
Source: Black et al. 2020, Definition 2; the intervals and the p-values are beyond it
(``pipeline.audits.fliptest.intervals``, ``pipeline.audits.fliptest.significance``), and so is the word that they make
of a line (``pipeline.audits.fliptest.standing``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.audits.correction import corrected
from pipeline.audits.fliptest.intervals import mean_intervals, sign_intervals
from pipeline.audits.fliptest.significance import subset_p_values
from pipeline.audits.precision import Precision
from pipeline.types import Array


@dataclass(frozen=True)
class TransparencyReport:
    """One line for each of d features, (d,) each; all NaN for an empty flipset.

    ``mean_shift`` and ``mean_sign``: the two vectors of Definition 2, x - G(x), with intervals; shifts as the features
    are. ``rank_mean`` (of the shift over its unit) and ``rank_sign``: 1 for the largest absolute value, ties share the
    smaller rank. ``mean_shift_p`` and ``mean_sign_p``: whether the flipset differs from the rest of its group. The
    ``_adjusted`` ones are Holm's over all lines of both rankings of this report. ``feature_mean``: the members' mean of
    x. Ranks and p-values are NaN for features that are no line of the report.
    """

    mean_shift: Array
    mean_shift_ci_low: Array
    mean_shift_ci_high: Array
    mean_shift_p: Array
    mean_shift_p_adjusted: Array
    mean_sign: Array
    mean_sign_ci_low: Array
    mean_sign_ci_high: Array
    mean_sign_p: Array
    mean_sign_p_adjusted: Array
    rank_mean: Array
    rank_sign: Array
    feature_mean: Array


def transparency_report(
    features: Array,
    images: Array,
    members: Array,
    precision: Precision,
    rng: np.random.Generator,
    lines: Array | None = None,
    units: Array | None = None,
) -> TransparencyReport:
    """The report of one flipset: features and images (n, d) of the whole group, its ``members`` (n,) bool.

    ``lines`` (d,) bool says which features are ranked and tested; None for all. A feature that defines the group
    changes for everyone, and is better left out. ``units`` (d,) are what shifts are ranked in; None for the features'
    own. Raises ValueError for unequal shapes, for values that are not finite and for units that are not positive.
    """
    if features.ndim != 2 or images.shape != features.shape or members.shape != features.shape[:1]:
        raise ValueError(
            "expected features and images of shape (n, d) and members (n,), "
            f"found {features.shape}, {images.shape} and {members.shape}"
        )
    if not (np.isfinite(features).all() and np.isfinite(images).all()):
        raise ValueError("features or images are not finite: leave those people out of the report, and count them")
    d = features.shape[1]
    units = np.ones(d) if units is None else units
    if units.shape != (d,) or not (units > 0).all():
        raise ValueError(f"expected a positive unit for each of {d} features, found {units}")
    lines = np.ones(d, dtype=bool) if lines is None else lines
    shift = features - images
    values = np.hstack([shift, np.sign(shift)])
    if not members.any():
        return TransparencyReport(*np.full((13, d), np.nan))
    mean = values[members].mean(axis=0)
    ends = (
        mean_intervals(shift[members], precision.bootstraps, precision.alpha, rng),
        sign_intervals(values[members, d:], precision.alpha),
    )
    low, high = (np.concatenate(both) for both in zip(*ends, strict=True))
    tested = np.tile(lines, 2)
    p, rank = np.full(2 * d, np.nan), np.full(2 * d, np.nan)
    p[tested] = subset_p_values(values[:, tested], members, precision.permutations, rng)
    adjusted = corrected(p, "holm")
    rank[:d][lines] = ranks(mean[:d][lines] / units[lines])
    rank[d:][lines] = ranks(mean[d:][lines])
    by_kind = [np.split(column, 2) for column in (mean, low, high, p, adjusted)]
    shifts, signs = zip(*by_kind, strict=True)
    columns = [*shifts, *signs, *np.split(rank, 2), features[members].mean(axis=0)]
    return TransparencyReport(*columns)


def ranks(values: Array) -> Array:
    """1 for the largest absolute value (c,), and so on; ties share the smaller rank."""
    smaller_first = -np.abs(values)
    return 1 + np.searchsorted(np.sort(smaller_first), smaller_first, side="left")
