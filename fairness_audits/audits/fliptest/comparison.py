"""Comparison of people with their counterparts: flipset sizes with intervals, and transparency reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Flipsets
from fairness_audits.audits.fliptest.intervals import SizeIntervals, size_intervals
from fairness_audits.audits.fliptest.transparency import TransparencyReport, transparency_report
from fairness_audits.values import Array


@dataclass(frozen=True)
class Comparison:
    """The flipsets of n people, intervals for their sizes, and the transparency report of each flipset."""

    flips: Flipsets
    intervals: SizeIntervals
    reports: Mapping[str, TransparencyReport]


def compare(
    points: Array,
    images: Array,
    flips: Flipsets,
    *,
    alpha: float,
    bootstraps: int,
    rngs: Sequence[np.random.Generator],
    moving: Array,
    units: Array | None = None,
) -> Comparison:
    """Compare people with their counterparts. Audits of a user's model and the studies share this function.

    ``points`` and ``images`` (n, d) are finite features of people and counterparts, and ``flips`` the decisions about
    them. All intervals have level 1 - ``alpha``; intervals of mean shifts use ``bootstraps`` resamples. ``rngs`` has a
    generator for each of FLIPSETS; if both are the same object, the flipsets draw from it in turn. ``moving`` (d,) bool
    are the features that a map moves; the others have no rank. ``units`` (d,) are those in which mean shifts are
    ranked, by default the features' own. Raises InvalidInput if shapes differ, values are not finite, or units are not
    positive.

    Examples
    --------
    >>> flips = Flipsets(np.array([1, 1, 0]), np.array([0, 1, 0]))
    >>> people = np.array([[2.0], [3.0], [0.0]])
    >>> rngs = [np.random.default_rng(0)] * 2
    >>> found = compare(people, people - 1, flips, alpha=0.05, bootstraps=10, rngs=rngs, moving=np.array([True]))
    >>> found.flips.sizes
    {'positive': 1, 'negative': 0}
    >>> found.reports["positive"].mean_shift
    array([1.])

    """
    return Comparison(
        flips,
        size_intervals(flips.sizes["positive"], flips.sizes["negative"], len(points), alpha),
        {
            name: transparency_report(points, images, getattr(flips, name), bootstraps, alpha, rng, moving, units)
            for name, rng in zip(FLIPSETS, rngs, strict=True)
        },
    )
