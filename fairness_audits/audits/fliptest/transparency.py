r"""Transparency reports: the features in which the members of a flipset differ from their counterparts.

.. math:: \frac{1}{|F^\star|} \sum_{x \in F^\star} (x - G(x)), \qquad
          \frac{1}{|F^\star|} \sum_{x \in F^\star} \operatorname{sign}(x - G(x)), \qquad \star \in \{+, -\}

Each statistic ranks the features by absolute value. Mean shifts are ranked in units that the features share. These are
the model's units if it sees standardised features, as in most of the paper's studies. Otherwise they are the ``units``
that you pass. Beyond the paper, each line has intervals (``fairness_audits.audits.fliptest.intervals``) and a word that
follows from its interval, its :func:`standing`. Source: Black et al. 2020, Definition 2.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairness_audits.audits.fliptest.intervals import mean_intervals, sign_intervals
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

Standing = Literal["noise", "stands out"]
NOISE: Standing = "noise"
STANDS_OUT: Standing = "stands out"


@dataclass(frozen=True)
class TransparencyReport:
    """One line for each of d features, (d,) each; all NaN for an empty flipset.

    ``mean_shift`` and ``mean_sign`` are the two vectors of Definition 2, of x - G(x), with intervals. Shifts are in the
    features' own units. ``rank_mean`` (of the shift over its unit) and ``rank_sign`` are 1 for the largest absolute
    value. Ties share the smaller rank; features that are not lines of the report have NaN. ``feature_mean`` is the
    members' mean of x.
    """

    mean_shift: Array
    mean_shift_ci_low: Array
    mean_shift_ci_high: Array
    mean_sign: Array
    mean_sign_ci_low: Array
    mean_sign_ci_high: Array
    rank_mean: Array
    rank_sign: Array
    feature_mean: Array


def transparency_report(
    features: Array,
    images: Array,
    members: Array,
    bootstraps: int,
    alpha: float,
    rng: np.random.Generator,
    lines: Array | None = None,
    units: Array | None = None,
) -> TransparencyReport:
    """Compute the report of one flipset from features and images (n, d) of the whole group and ``members`` (n,) bool.

    Intervals have level 1 - ``alpha``; intervals of mean shifts use ``bootstraps`` resamples. ``lines`` (d,) bool are
    the ranked features, None for all. Exclude features that define the group, because they change for everyone.
    ``units`` (d,) are the units in which shifts are ranked, None for the features' own. Raises InvalidInput if shapes
    differ, values are not finite or units are not positive.
    """
    if features.ndim != 2 or images.shape != features.shape or members.shape != features.shape[:1]:
        raise InvalidInput(
            "expected features and images of shape (n, d) and members (n,), "
            f"found {features.shape}, {images.shape} and {members.shape}",
            option="members" if images.shape == features.shape else "images",
        )
    if not (np.isfinite(features).all() and np.isfinite(images).all()):
        raise InvalidInput(
            "features or images are not finite",
            option="images" if np.isfinite(features).all() else "features",
            remedy="Leave those people out of the report, and count them",
        )
    d = features.shape[1]
    units = np.ones(d) if units is None else units
    if units.shape != (d,) or not (units > 0).all():
        raise InvalidInput(f"expected a positive unit for each of {d} features, found {units}", option="units")
    lines = np.ones(d, dtype=bool) if lines is None else lines
    if not members.any():
        return TransparencyReport(*np.full((9, d), np.nan))
    shift = (features - images)[members]
    signs = np.sign(shift)
    mean_shift, mean_sign = shift.mean(axis=0), signs.mean(axis=0)
    shift_low, shift_high = mean_intervals(shift, bootstraps, alpha, rng)
    sign_low, sign_high = sign_intervals(signs, alpha)
    rank_mean, rank_sign = np.full((2, d), np.nan)
    rank_mean[lines] = ranks(mean_shift[lines] / units[lines])
    rank_sign[lines] = ranks(mean_sign[lines])
    return TransparencyReport(
        mean_shift=mean_shift,
        mean_shift_ci_low=shift_low,
        mean_shift_ci_high=shift_high,
        mean_sign=mean_sign,
        mean_sign_ci_low=sign_low,
        mean_sign_ci_high=sign_high,
        rank_mean=rank_mean,
        rank_sign=rank_sign,
        feature_mean=features[members].mean(axis=0),
    )


def ranks(values: Array) -> Array:
    """Rank by absolute value (c,): 1 is the largest, and ties share the smaller rank."""
    smaller_first = -np.abs(values)
    return 1 + np.searchsorted(np.sort(smaller_first), smaller_first, side="left")


def standing(low: float, high: float) -> Standing:
    """Return how to read a line with the interval [low, high].

    - *noise*: the interval covers 0, so the shift could have the other sign with another map or other people. Lines
      without an interval count as noise too, because nothing shows otherwise.
    - *stands out*: the interval excludes 0. The shift may still be the shift of the whole group, and then it does not
      distinguish those who flip.
    """
    return STANDS_OUT if low > 0 or high < 0 else NOISE
