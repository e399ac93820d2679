r"""Who flips whatever the fit: decisions about the counterparts that maps of resampled people give.

A map is fitted on people and by chance, and another fit has other counterparts. So the map is fitted R times more, each
time on people of both groups drawn again with replacement and with random numbers of its own, and asked about the
people of the source group themselves. A person's share is

.. math:: s_i = \#\{r : h(G_r(x_i)) \ne h(x_i)\} / R.

The person's own decision is the same in all of them, so she flips in one way only. Her flip *holds* where s_i is at
least a stated share.
"""

import math
from dataclasses import dataclass
from typing import Literal

from fairness_audits.audits.fliptest.flipsets import FLIPSETS
from fairness_audits.values import Array


@dataclass(frozen=True)
class Refits:
    """Decisions h(x) about n people, (n,) in {0, 1}, and about their counterparts in R maps, (R, n).

    -1 stands where a map has no finite image of a person, who does not flip there. ``stated`` is the share from which
    on a flip holds.

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
        """In how many of the maps each person flips, (n,)."""
        return ((self.image_decisions >= 0) & (self.image_decisions != self.decision)).sum(axis=0)

    @property
    def share(self) -> Array:
        """In which share of the maps each person flips, (n,)."""
        return self.flips / len(self.image_decisions)

    @property
    def favoured(self) -> Array:
        """In how many of the maps the counterpart is decided positively, (n,)."""
        return (self.image_decisions == 1).sum(axis=0)

    @property
    def needed(self) -> int:
        """The fewest maps that are the stated share of all."""
        return math.ceil(self.stated * len(self.image_decisions) - 1e-9)

    @property
    def holds(self) -> Array:
        """Whose flip holds, (n,) bool."""
        return self.flips >= self.needed

    @property
    def ever(self) -> Array:
        """Who flips in at least one of the maps, (n,) bool."""
        return self.flips > 0

    @property
    def sizes(self) -> dict[Literal["positive", "negative"], Array]:
        """The sizes of the flipsets in each map, (R,) by name."""
        differ = (self.image_decisions >= 0) & (self.image_decisions != self.decision)
        return {name: differ[:, self.decision == own].sum(axis=1) for name, own in zip(FLIPSETS, (1, 0), strict=True)}

    def counted(self, people: Array) -> dict[str, int]:
        """How many of the ``people`` (n,) bool could be in each flipset, by name: those with its decision."""
        return {name: int((people & (self.decision == own)).sum()) for name, own in zip(FLIPSETS, (1, 0), strict=True)}
