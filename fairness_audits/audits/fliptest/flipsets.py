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

Exact transport between two halves of one group is an assignment, which takes milliseconds for a few hundred people
(:func:`sizes_between_halves`). A learned map would need training for each split, so the audit has no such floor for
learned maps. With fewer people, counterparts are further apart and more people flip. If a half is smaller than the
audited group, the floor is therefore too high rather than too low.

Source: Black et al. 2020, Definition 1 and Proposition 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairness_audits.audits.permutation.monte_carlo import monte_carlo_p
from fairness_audits.errors import InvalidInput
from fairness_audits.models import architecture
from fairness_audits.transport.cost import cost_matrix
from fairness_audits.values import Array, Classifier

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


def judged(classifier: Classifier, repetition: int, x: Array, coin: Array | None = None) -> tuple[Array, Array]:
    """Compute scores and decisions h(x) of one ``repetition`` of a classifier of any architecture, for rows x (n, d).

    The score (n,) is P(y = 1 | x) for an architecture with probabilities. For others, it is the number that the
    decision compares with a threshold: a predicted outcome, or the decision value of a support vector machine. The
    decision (n,), int64 in {0, 1}, is the classifier's own. With a ``coin`` (n,), uniform in [0, 1), it is 1 with
    probability P(y = 1 | x). One evaluation gives both if the scores determine the decisions. Raises InvalidInput if
    coins are given and the scores are not probabilities.
    """
    model = architecture(classifier.architecture)
    own = {name: values[repetition : repetition + 1] for name, values in classifier.parameters.items()}
    score = np.asarray(model.score(own, x[None])[0], dtype=float)
    if coin is not None:
        if not hasattr(model, "log_probabilities"):
            raise InvalidInput(
                f"a randomised decision needs probabilities, but the scores of {classifier.method!r} (architecture "
                f"{classifier.architecture!r}) are none",
                option="coin",
                remedy="Audit its own decisions",
            )
        return score, (coin < score).astype(np.int64)
    decision = model.decided(own, score[None]) if hasattr(model, "decided") else model.predict(own, x[None])
    return score, np.asarray(decision[0], dtype=np.int64)


COST = "squared_l1"
"""Cost of the paper, and default cost of the maps that are compared with the floor."""

Judge = Callable[[Array, Array], tuple[Array, Array]]
"""Function from features (n, d) and a coin for each person (n,) to scores and decisions, (n,) each."""


@dataclass(frozen=True)
class RandomSplit:
    """People split into two groups: positions (n,) and (m,) among all people."""

    source: Array
    target: Array


@dataclass(frozen=True)
class SplitSizes:
    """Flipset sizes of B splits, (B,) each."""

    positive: Array
    negative: Array

    @classmethod
    def of(cls, flips: Sequence[Flipsets]) -> SplitSizes:
        """Return the flipset sizes of each split."""
        sizes = [[one.sizes[name] for name in FLIPSETS] for one in flips]
        return cls(*np.array(sizes, dtype=np.int64).reshape(-1, 2).T)

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


def sizes_between_halves(
    features: Array, coins: Array, transported: Array, judge: Judge, most: int, draws: int, rng: np.random.Generator
) -> tuple[SplitSizes, int]:
    """Return the flipset sizes of each of ``draws`` splits of these people (n, d), and the number of people on a side.

    A side has at most ``most`` people. Columns that are not ``transported`` (d,) keep their values. Without people on a
    side there are no sizes.
    """
    splits = halves(len(features), most, draws, rng)
    side = min(len(features) // 2, most)
    if not splits or not side:
        return SplitSizes.of([]), side
    people = np.concatenate([features[split.source] for split in splits])
    coin = np.concatenate([coins[split.source] for split in splits])
    counterparts = people.copy()
    matched = np.concatenate([split.target[_matched(features[:, transported], split)] for split in splits])
    counterparts[:, transported] = features[matched][:, transported]
    decided = (judge(rows, coin)[1].reshape(len(splits), side) for rows in (people, counterparts))
    return SplitSizes.of([Flipsets(own, other) for own, other in zip(*decided, strict=True)]), side


def _matched(moving: Array, split: RandomSplit) -> Array:
    """Solve exact transport: return the partner (side,) in the other half of each person, at the least total cost."""
    from scipy.optimize import linear_sum_assignment

    _, partner = linear_sum_assignment(cost_matrix(moving[split.source], moving[split.target], COST))
    return np.asarray(partner)
