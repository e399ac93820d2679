r"""Flipsets: the people whose outcome changes when they are mapped to their counterpart in the other group.

.. math:: F^+ = \{x : h(x) > h(G(x))\}, \qquad F^- = \{x : h(x) < h(G(x))\}, \qquad F = F^+ \cup F^-

Summing h(x) - h(G(x)) over the group shows that the net size is a difference of two numbers of positive decisions:

.. math:: |F^+| - |F^-| = |\{x : h(x) = 1\}| - |\{x : h(G(x)) = 1\}|

If G maps one group one-to-one onto the other, the last count is the other group's count. The net size is then 0 if and
only if h has demographic parity on these rows (Proposition 2). If both groups are restricted to one true label, it is 0
if and only if h has equal opportunity for that label.

The noise floor consists of the flipsets that a map finds between groups that are alike because people were split into
them at random. The map and chance cause every flip between them. This is the null hypothesis of section 5.1, for the
audited data and model. With the sizes S_1, ..., S_B of B splits,

.. math:: p = \frac{1 + \#\{b : S_b \ge S\}}{B + 1}, \qquad
          u = S_{(\lceil (1 - \alpha)(B + 1) \rceil)},

p is the p-value of an observed size S. One more split exceeds u with probability at most alpha. With alpha = .05 and 19
splits, u is the largest size. With fewer than 1 / alpha - 1 splits, u does not exist.

Source: Black et al. 2020, Definition 1 and Proposition 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairness_audits.audits.permutation.monte_carlo import monte_carlo_p
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

FLIPSETS: tuple[Literal["positive", "negative"], ...] = ("positive", "negative")
ROUNDING = 1e-6
"""Distance, in people, of sizes of splits that are the same size: splits of another size are scaled."""


@dataclass(frozen=True)
class Flipsets:
    """Decisions h(x) about n people and h(G(x)) about their counterparts, (n,) in {0, 1}.

    ``positive``, ``negative`` and ``either`` mark the members of F+, F- and F, (n,) bool. Raises InvalidInput if the
    shapes differ or a decision is neither 0 nor 1.
    """

    decision: Array
    decision_image: Array

    def __post_init__(self) -> None:
        for name, values in (("decision", self.decision), ("decision_image", self.decision_image)):
            if np.ndim(values) != 1 or np.shape(values) != np.shape(self.decision):
                raise InvalidInput(
                    f"expected one {name} for each of {np.size(self.decision)} people, found shape {np.shape(values)}",
                    option=name,
                )
            if not np.isin(values, (0, 1)).all():
                problem = f"expected {name} in {{0, 1}}, found {np.unique(values)[:5]}"
                raise InvalidInput(problem, option=name, remedy="Apply a threshold first")

    @property
    def positive(self) -> Array:
        """Return F+: the decision is positive for the person and negative for the counterpart."""
        return self.decision > self.decision_image

    @property
    def negative(self) -> Array:
        """Return F-: the decision is negative for the person and positive for the counterpart."""
        return self.decision < self.decision_image

    @property
    def either(self) -> Array:
        """Return F: the two decisions differ."""
        return self.decision != self.decision_image

    @property
    def net(self) -> int:
        """Return |F+| - |F-|."""
        return self.sizes["positive"] - self.sizes["negative"]

    @property
    def sizes(self) -> dict[str, int]:
        """Return |F+| and |F-| by name."""
        return {name: int(getattr(self, name).sum()) for name in FLIPSETS}

    @property
    def eligible(self) -> dict[str, int]:
        """Return, for each flipset, how many people have the decision that its members have."""
        favoured = int(self.decision.sum())
        return {"positive": favoured, "negative": len(self.decision) - favoured}


@dataclass(frozen=True)
class RandomSplit:
    """People split into two groups: positions (n,) and (m,) among all people."""

    source: Array
    target: Array


@dataclass(frozen=True)
class Sizes:
    """Flipset sizes of B maps, (B,) each."""

    positive: Array
    negative: Array

    @classmethod
    def of(cls, decision: Array, image_decision: Array) -> Sizes:
        """Count from decisions about people, (B, n) or (n,), and about their counterparts, (B, n).

        A counterpart's decision is -1 if a map has no finite image of the person, who then does not flip.
        """
        return cls(*(((decision == own) & (image_decision == 1 - own)).sum(axis=-1) for own in (1, 0)))

    def scaled(self, share: float) -> Sizes:
        """Return the sizes in groups that are ``share`` times as large, which may be fractions."""
        return self if share == 1 else Sizes(self.positive * share, self.negative * share)

    @property
    def either(self) -> Array:
        """Return how many people flip in either direction."""
        return self.positive + self.negative

    @property
    def net(self) -> Array:
        """Return |F+| - |F-|."""
        return self.positive - self.negative

    def p_value(self, sizes: Array, observed: int) -> float:
        """Return the p-value of an observed size against the sizes of the splits, which may be rounded."""
        return float(monte_carlo_p(np.array([(sizes >= observed - ROUNDING).sum()]), len(sizes))[0])


def random_splits(n: int, m: int, draws: int, rng: np.random.Generator, most: int | None = None) -> list[RandomSplit]:
    """Split n + m people at random into n and m, ``draws`` times, and keep the first ``most`` of each group."""
    splits = [rng.permutation(n + m) for _ in range(draws)]
    return [RandomSplit(order[:n][:most], order[n:][:most]) for order in splits]


def halves(people: int, most: int, draws: int, rng: np.random.Generator) -> list[RandomSplit]:
    """Split people at random into two groups of equal size, at most ``most`` each, ``draws`` times.

    People who are left over are in neither group.
    """
    side = min(people // 2, most)
    return [RandomSplit(*np.split(rng.permutation(people)[: 2 * side], [side])) for _ in range(draws)]


def upper(sizes: Array, alpha: float) -> float:
    """Compute the size that one more split exceeds with probability at most alpha.

    Parameters
    ----------
    sizes : ndarray of shape (B,)
        Sizes of the flipsets of B splits.
    alpha : float

    Returns
    -------
    float
        NaN if there are too few splits.

    Examples
    --------
    >>> upper(np.arange(19), 0.05), upper(np.arange(18), 0.05)
    (18.0, nan)

    """
    place = math.ceil((1 - alpha) * (len(sizes) + 1) - 1e-9)
    return float(np.sort(sizes)[place - 1]) if place <= len(sizes) else float("nan")
