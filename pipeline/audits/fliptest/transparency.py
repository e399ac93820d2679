r"""Transparency reports: in which features the members of a flipset differ from their counterparts.

.. math:: \frac{1}{|F^\star|} \sum_{x \in F^\star} (x - G(x)), \qquad
          \frac{1}{|F^\star|} \sum_{x \in F^\star} \operatorname{sign}(x - G(x)), \qquad \star \in \{+, -\}

Each gives a ranking of the features, by absolute value. A mean shift is ranked in units that features share: those of
the model where it sees standardised features, as in most of the paper's studies; else in the ``units`` that are given.
Beyond the paper are intervals (``pipeline.audits.fliptest.intervals``), the p-values of :func:`subset_p_values`, and a
word for each line, its :func:`standing`. Source: Black et al. 2020, Definition 2.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.audits.fliptest.intervals import mean_intervals, sign_intervals
from pipeline.audits.inference import Precision, corrected
from pipeline.audits.permutation.monte_carlo import ROUNDING, monte_carlo_p
from pipeline.types import Array

MEMBERS_AT_ONCE = 2**22
"""Drawn members held in memory at a time."""

Standing = Literal["noise", "as the whole group", "stands out"]
NOISE: Standing = "noise"
AS_GROUP: Standing = "as the whole group"
STANDS_OUT: Standing = "stands out"


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


def subset_p_values(values: Array, members: Array, draws: int, rng: np.random.Generator) -> Array:
    r"""Two-sided p-values (c,) of the means of values (n, c) over the ``members`` (n,) bool, from ``draws`` subsets.

    Under the null hypothesis that flipping has nothing to do with a column v, the k members are a random subset of the
    n people of the group. With T(A) = |mean over A of v - mean over all of v|,

    .. math:: p = \frac{1 + \#\{b : T(A_b) \ge T(F)\}}{B + 1}, \qquad A_1, \dots, A_B \text{ random subsets of size } k,

    which is at most alpha with probability at most alpha under the null, whatever n, k and the distribution of v. The
    subsets are drawn, because for small flipsets and skewed shifts the normal limit of the mean of a sample without
    replacement is wrong by large factors in the tails, where adjusted p-values are decided. With v centred, its sum
    over A is minus the sum over the others, so the smaller of the two is drawn. The same subsets serve all columns. NaN
    without members.

    A small p-value says that the flipset shifts otherwise than its group. A large one does not make a shift noise: that
    of everybody alike is as large in any part of the group (:func:`standing`). Whether flips of this number arise from
    errors of the map is another question again; its null is a map between identical distributions (Black et al. 2020,
    section 5.1), where every flip is noise (``pipeline.audits.fliptest.flipsets``).
    """
    n, k = len(values), int(members.sum())
    if k == 0:
        return np.full(values.shape[1], np.nan)
    centred = values - values.mean(axis=0)
    # Sums in another order differ by rounding, which must not decide whether a subset is as extreme.
    slack = ROUNDING * n * np.abs(values).max(axis=0)
    least = np.abs(centred[members].sum(axis=0)) - slack
    drawn = min(k, n - k)
    extremes = np.zeros(values.shape[1], dtype=np.int64)
    at_once = max(1, MEMBERS_AT_ONCE // max(drawn, 1))
    for start in range(0, draws, at_once):
        sums = _subset_sums(centred, drawn, min(at_once, draws - start), rng)
        extremes += (np.abs(sums) >= least).sum(axis=0)
    return monte_carlo_p(extremes, draws)


def _subset_sums(values: Array, size: int, draws: int, rng: np.random.Generator) -> Array:
    """Column sums (draws, c) over random subsets of ``size`` rows of values (n, c)."""
    from scipy.sparse import csr_matrix

    chosen = np.empty((draws, size), dtype=np.int64)
    for row in chosen:
        row[:] = rng.choice(len(values), size, replace=False, shuffle=False)
    ends = np.arange(draws + 1) * size
    return csr_matrix((np.ones(draws * size), chosen.ravel(), ends), shape=(draws, len(values))) @ values


def standing(low: float, high: float, p: float, alpha: float) -> Standing:
    """How a line with the interval [low, high] and the adjusted p-value p is to be read.

    - *noise*: the interval covers 0. Another map or other people could turn the shift's sign. A line without an
      interval is noise: nothing shows that it is not.
    - *as the whole group*: the shift is there, but as many people of the group picked at random are as far from the
      group's mean (:func:`subset_p_values`). So it is not shown to be other than everybody's, and does not tell who
      flips; it may well be what makes people flip. However large and certain, it is no noise. A line without a p-value
      is as its group.
    - *stands out*: neither.
    """
    if not (low > 0 or high < 0):
        return NOISE
    return STANDS_OUT if p <= alpha else AS_GROUP
