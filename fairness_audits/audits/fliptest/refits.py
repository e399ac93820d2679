r"""Stability of flips across fits: decisions about the counterparts from maps of resampled people.

A fitted map depends on the sample and on chance, and another fit gives other counterparts. We fit the map R more times.
Each fit uses people of both groups drawn with replacement and its own random numbers. Each map is evaluated on the
original people of the source group. A person's share is

.. math:: s_i = \#\{r : h(G_r(x_i)) \ne h(x_i)\} / R.

The person's own decision is the same in all maps, so a person flips in one direction only. The flip *holds* if s_i is
at least a stated share.
"""

import math
from dataclasses import dataclass

from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Sizes
from fairness_audits.values import Array


@dataclass(frozen=True)
class Refits:
    """Decisions h(x) about n people, (n,) in {0, 1}, and about their counterparts in R maps, (R, n).

    The value -1 means that a map has no finite image of a person; this person does not flip in this map. A flip holds
    if its share is at least ``stated``.

    Examples
    --------
    >>> import numpy as np
    >>> found = Refits(np.array([1, 0, 0]), np.array([[0, 0, 1], [0, 1, 1]]), 0.9)
    >>> found.share
    array([1. , 0.5, 1. ])
    >>> found.counted(found.holds)
    {'positive': 1, 'negative': 1}

    """

    decision: Array
    image_decisions: Array
    stated: float

    @property
    def flips(self) -> Array:
        """Return the number of maps in which each person flips, (n,)."""
        return ((self.image_decisions >= 0) & (self.image_decisions != self.decision)).sum(axis=0)

    @property
    def share(self) -> Array:
        """Return the share of maps in which each person flips, (n,)."""
        return self.flips / len(self.image_decisions)

    @property
    def favoured(self) -> Array:
        """Return the number of maps in which the counterpart has a positive decision, (n,)."""
        return (self.image_decisions == 1).sum(axis=0)

    @property
    def needed(self) -> int:
        """Return the fewest maps that are the stated share of all maps."""
        return math.ceil(self.stated * len(self.image_decisions) - 1e-9)

    @property
    def holds(self) -> Array:
        """Return whose flip holds, (n,) bool."""
        return self.flips >= self.needed

    @property
    def ever(self) -> Array:
        """Return who flips in at least one map, (n,) bool."""
        return self.flips > 0

    @property
    def sizes(self) -> Sizes:
        """Return the flipset sizes in each map, (R,)."""
        return Sizes.of(self.decision, self.image_decisions)

    def counted(self, people: Array) -> dict[str, int]:
        """Return how many of the ``people`` (n,) bool could be in each flipset, by name: those with its decision."""
        return {name: int((people & (self.decision == own)).sum()) for name, own in zip(FLIPSETS, (1, 0), strict=True)}
