r"""The measurement of FlipTest, from decisions about people and about their counterparts.

The audit of a user's model and the studies of the paper share these functions. Both find counterparts in their own way:
the audit converts images of a map to rows that its model can read, and the studies use the images as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Flipsets, RandomSplit, Sizes, halves
from fairness_audits.audits.fliptest.intervals import SizeIntervals, size_intervals
from fairness_audits.audits.fliptest.transparency import TransparencyReport, transparency_report
from fairness_audits.transport.cost import cost_matrix
from fairness_audits.transport.quality import ks, nearest_ks
from fairness_audits.values import Array

COST = "squared_l1"
"""Cost of the paper, and default cost of the maps that are compared with the floor."""


@dataclass(frozen=True)
class People:
    """n people as ``points`` (n, d), with a model's ``score`` (n,) and its ``decision`` (n,) in {0, 1}."""

    points: Array
    score: Array
    decision: Array

    def at(self, index: Array) -> "People":
        """Return some of the people."""
        return People(self.points[index], self.score[index], self.decision[index])


Decide = Callable[[Array, Array], People]
"""Function from points (n, d) to decisions about them; (n,) are the positions of the people whose points they are."""


@dataclass(frozen=True)
class FlipTest:
    """The flipsets of n ``people``. Their ``counterparts`` have the same order, and ``target`` are the m other people.

    ``intervals`` are those of the flipsets' sizes, and ``reports`` the transparency report of each flipset. ``moving``
    (k,) are the columns that the map moves, and ``units`` (d,) rank the mean shifts.
    """

    people: People
    counterparts: People
    target: People
    moving: Array
    units: Array
    flips: Flipsets
    intervals: SizeIntervals
    reports: Mapping[str, TransparencyReport]

    @property
    def ks(self) -> Array:
        """Return the :func:`distances` of the counterparts from the target group, (k + 1,)."""
        return distances(self.target, self.counterparts.points, self.counterparts.score, self.moving)

    @property
    def nearest_ks(self) -> Array:
        """Return the distance of each moving column after :func:`fairness_audits.transport.quality.nearest_values`.

        Images of a learned map never hit the values of a discrete column exactly, so their :attr:`ks` is too large.
        (k,), NaN without people.
        """
        real, images = (some.points[:, self.moving] for some in (self.target, self.counterparts))
        return nearest_ks(real, images) if len(images) else np.full(len(self.moving), np.nan)


def distances(target: People, points: Array, score: Array, moving: Array) -> Array:
    """Return the Kolmogorov-Smirnov distances of counterparts (n, d) and their score (n,) from the target group.

    The ``moving`` columns (k,) have the first k distances, and the score has the last one. Under a perfect map, the
    score has the target group's distribution, so its distance also reflects dependence between columns. Raises
    InvalidInput for points or scores that are not finite.
    """
    sides = ((target.points, target.score), (points, score))
    return ks(*(np.column_stack([x[:, moving], scores]) for x, scores in sides))


def flip_test(
    people: People,
    counterparts: People,
    target: People,
    *,
    moving: Array,
    alpha: float,
    bootstraps: int,
    rngs: Sequence[np.random.Generator],
    units: Array | None = None,
) -> FlipTest:
    r"""Compare people with their counterparts.

    .. math:: F^+ = \{x : h(x) > h(G(x))\}, \qquad F^- = \{x : h(x) < h(G(x))\}

    Parameters
    ----------
    people, counterparts : People
        The n people x and their counterparts G(x), in the same order. Leave out people whose image is not finite, and
        count them.
    target : People
        The m people of the other group.
    moving : ndarray of shape (k,)
        Columns that the map moves. The others change for everyone by construction and have no rank.
    alpha : float
        All intervals have level 1 - alpha.
    bootstraps : int
        Number of resamples for the intervals of mean shifts.
    rngs : sequence of two numpy.random.Generator
        One for each of FLIPSETS. If both are the same object, the flipsets draw from it in turn.
    units : ndarray of shape (d,), optional
        Units in which mean shifts are ranked. The default is the columns' own.

    Returns
    -------
    FlipTest
        The flipsets, intervals of their sizes in people, and a transparency report of each.

    Raises
    ------
    InvalidInput
        If shapes differ, points are not finite, decisions are not 0 or 1, or units are not positive.

    References
    ----------
    Black, Yeom and Fredrikson 2020, Definitions 1 and 2.

    Examples
    --------
    >>> x = np.array([[2.0], [3.0], [0.0]])
    >>> people, images = (People(points, points[:, 0], 1 * (points[:, 0] > 1)) for points in (x, x - 1))
    >>> rngs = [np.random.default_rng(0)] * 2
    >>> found = flip_test(people, images, people, moving=np.array([0]), alpha=0.05, bootstraps=10, rngs=rngs)
    >>> found.flips.sizes
    {'positive': 1, 'negative': 0}
    >>> found.reports["positive"].mean_shift
    array([1.])

    """
    flips = Flipsets(people.decision, counterparts.decision)
    units = np.ones(people.points.shape[1]) if units is None else units
    sides = people.points, counterparts.points
    return FlipTest(
        people=people,
        counterparts=counterparts,
        target=target,
        moving=moving,
        units=units,
        flips=flips,
        intervals=size_intervals(**flips.sizes, n=len(people.decision), alpha=alpha),
        reports={
            name: transparency_report(*sides, getattr(flips, name), bootstraps, alpha, rng, moving, units)
            for name, rng in zip(FLIPSETS, rngs, strict=True)
        },
    )


def noise_floor(decision: Array, splits: Sequence[RandomSplit], image_decisions: Array) -> Sizes:
    """Count the flips between groups that are alike, because people were split into them at random.

    Parameters
    ----------
    decision : ndarray of shape (N,)
        Decisions in {0, 1} about all people.
    splits : sequence of B RandomSplit
        Their n source people are mapped to their target people, by any map.
    image_decisions : ndarray of shape (B, n)
        Decisions about the counterparts of the source people, -1 for a person without a finite image, who does not
        flip.

    Returns
    -------
    Sizes
        The sizes of the flipsets in each split, in people.

    """
    return Sizes.of(decision[np.array([split.source for split in splits])], image_decisions)


def sizes_between_halves(
    people: People, moving: Array, decide: Decide, most: int, draws: int, rng: np.random.Generator
) -> tuple[Sizes, int]:
    """Measure the noise floor of exact transport between random halves of one group.

    Exact transport between two halves is an assignment, which takes milliseconds for a few hundred people. A learned
    map would need training for each split. With fewer people, counterparts are further apart and more people flip. If a
    half is smaller than the audited group, the floor is therefore too high rather than too low.

    Parameters
    ----------
    people : People
        The n people of the group.
    moving : ndarray of shape (k,)
        Columns that are transported. A counterpart keeps the person's values in all other columns.
    decide : callable
        Decides about counterparts (B * side, d), given the positions of their people in ``people``.
    most : int
        Largest number of people in a half.
    draws : int
        Number of splits.
    rng : numpy.random.Generator

    Returns
    -------
    sizes : Sizes
        The flipset sizes of each split, in people; none if a half has nobody.
    side : int
        Number of people in a half.

    """
    source, counterparts = matched_halves(people.points, moving, most, draws, rng)
    if not source.size:
        return Sizes(*np.empty((2, 0), dtype=np.int64)), source.shape[1]
    decided = decide(counterparts.reshape(-1, counterparts.shape[-1]), source.ravel()).decision
    return Sizes.of(people.decision[source], decided.reshape(source.shape)), source.shape[1]


def matched_halves(
    points: Array, moving: Array, most: int, draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Split people at random into halves, and match each person in one half with a counterpart in the other.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        The people.
    moving, most, draws, rng
        As in :func:`sizes_between_halves`.

    Returns
    -------
    source : ndarray of shape (B, side)
        Positions of the people of one half in each of the ``draws`` splits.
    counterparts : ndarray of shape (B, side, d)
        Their counterparts.

    """
    splits = halves(len(points), most, draws, rng)
    source = np.array([split.source for split in splits], dtype=np.int64).reshape(len(splits), -1)
    counterparts = points[source]
    if source.size:
        matched = np.stack([split.target[_matched(points[:, moving], split)] for split in splits])
        counterparts[..., moving] = points[matched][..., moving]
    return source, counterparts


def _matched(moving: Array, split: RandomSplit) -> Array:
    """Solve exact transport: return the partner (side,) in the other half of each person, at the least total cost."""
    from scipy.optimize import linear_sum_assignment

    _, partner = linear_sum_assignment(cost_matrix(moving[split.source], moving[split.target], COST))
    return np.asarray(partner)
