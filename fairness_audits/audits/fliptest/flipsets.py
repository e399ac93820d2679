r"""Flipsets: the people whose outcome changes when they are mapped to their counterpart in the other group.

.. math:: F^+ = \{x : h(x) > h(G(x))\}, \qquad F^- = \{x : h(x) < h(G(x))\}, \qquad F = F^+ \cup F^-

Summing h(x) - h(G(x)) over the group shows that the net size is a difference of two counts of positive decisions:

.. math:: |F^+| - |F^-| = |\{x : h(x) = 1\}| - |\{x : h(G(x)) = 1\}|

If G maps one group onto the other one to one, the last count is that of the other group: the net size is 0 if and only
if h has demographic parity on these rows (Proposition 2); if both groups are restricted to one true label, if and only
if it has equal opportunity for that label.

The noise floor are the flipsets that a map finds between groups that are alike, because people were dealt into them at
random: every flip between them is made by the map and by chance, the null of section 5.1 for the data and the model
that are audited. With the sizes S_1, ..., S_B of B deals,

.. math:: p = \frac{1 + \#\{b : S_b \ge S\}}{B + 1}, \qquad
          u = S_{(\lceil (1 - \alpha)(B + 1) \rceil)},

p is that of an observed size S, and u is what one more deal goes beyond with probability at most alpha: of 19 deals and
alpha = .05, the largest. Fewer deals than 1 / alpha - 1 have no such u.

Exact transport between two halves of one group is an assignment, for a few hundred people a matter of milliseconds
(:func:`sizes_between_halves`); a learned map would have to be trained for each deal, so the audit has no such floor for
learned maps. With fewer people counterparts lie further apart, and more people flip: where a half is smaller than the
audited group, the floor is rather too high than too low.

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


@dataclass(frozen=True)
class Flipsets:
    """Decisions h(x) about n people and h(G(x)) about their counterparts, (n,) in {0, 1}.

    ``positive``, ``negative`` and ``either`` are the members of F+, F- and F, (n,) bool. Raises InvalidInput for arrays
    of unequal shape and for decisions that are neither 0 nor 1.
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
        """F+: the person is decided for, the counterpart against."""
        return self.decision > self.decision_image

    @property
    def negative(self) -> Array:
        """F-: the person is decided against, the counterpart for."""
        return self.decision < self.decision_image

    @property
    def either(self) -> Array:
        """F: the two are decided otherwise."""
        return self.decision != self.decision_image

    @property
    def net(self) -> int:
        """|F+| - |F-|."""
        return self.sizes["positive"] - self.sizes["negative"]

    @property
    def sizes(self) -> dict[str, int]:
        """|F+| and |F-|, by name."""
        return {name: int(getattr(self, name).sum()) for name in FLIPSETS}

    @property
    def eligible(self) -> dict[str, int]:
        """How many people have the decision that members of each flipset have, by name."""
        favoured = int(self.decision.sum())
        return {"positive": favoured, "negative": len(self.decision) - favoured}


def judged(classifier: Classifier, repetition: int, x: Array, coin: Array | None = None) -> tuple[Array, Array]:
    """Compute scores and decisions h(x) of a classifier, whatever its architecture.

    Parameters
    ----------
    classifier : Classifier
        The classifiers of all repetitions.
    repetition : int
        Which of them decides.
    x : ndarray of shape (n, d)
        Rows of features.
    coin : ndarray of shape (n,), optional
        Uniform in [0, 1). With it h(x) = 1 with probability P(y = 1 | x); without it h(x) is the classifier's own
        decision.

    Returns
    -------
    score : ndarray of shape (n,)
        P(y = 1 | x) for an architecture with probabilities, and for the others what their decision compares with a
        threshold: a predicted outcome, or the decision value of a support vector machine. One evaluation gives scores
        and decisions where scores say decisions.
    decision : ndarray of shape (n,)
        In {0, 1}, int64.

    Raises
    ------
    InvalidInput
        For coins where scores are no probabilities.

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
"""The paper's, and that of the maps that the floor stands beside unless their settings say otherwise."""

Judge = Callable[[Array, Array], tuple[Array, Array]]
"""Features (n, d) and a coin for each person (n,) to scores and decisions, (n,) each."""


@dataclass(frozen=True)
class Deal:
    """People dealt into two groups: positions (n,) and (m,) among all of them."""

    source: Array
    target: Array


@dataclass(frozen=True)
class DealtSizes:
    """Sizes of the flipsets of B deals, (B,) each."""

    positive: Array
    negative: Array

    @classmethod
    def of(cls, flips: Sequence[Flipsets]) -> DealtSizes:
        """The sizes of each deal's flipsets."""
        sizes = [[one.sizes[name] for name in FLIPSETS] for one in flips]
        return cls(*np.array(sizes, dtype=np.int64).reshape(-1, 2).T)

    @property
    def either(self) -> Array:
        """How many people flip, either way."""
        return self.positive + self.negative

    @property
    def net(self) -> Array:
        """|F+| - |F-|."""
        return self.positive - self.negative

    def p_value(self, sizes: Array, observed: int) -> float:
        """The p-value of an observed size among those of the deals."""
        return float(monte_carlo_p(np.array([(sizes >= observed).sum()]), len(sizes))[0])


def deals(n: int, m: int, draws: int, rng: np.random.Generator, most: int | None = None) -> list[Deal]:
    """``draws`` ways to deal n + m people at random into n and m, of whom the first ``most`` of either are taken."""
    dealt = [rng.permutation(n + m) for _ in range(draws)]
    return [Deal(order[:n][:most], order[n:][:most]) for order in dealt]


def halves(people: int, most: int, draws: int, rng: np.random.Generator) -> list[Deal]:
    """``draws`` ways to deal people at random into two groups of one size, of at most ``most`` each.

    Whoever is left over is in neither.
    """
    side = min(people // 2, most)
    return [Deal(*np.split(rng.permutation(people)[: 2 * side], [side])) for _ in range(draws)]


def upper(sizes: Array, alpha: float) -> float:
    """Compute what the flipset of one more deal goes beyond with probability at most alpha.

    Parameters
    ----------
    sizes : ndarray of shape (B,)
        Sizes of the flipsets of B deals.
    alpha : float

    Returns
    -------
    float
        NaN where B deals are too few.

    Examples
    --------
    >>> upper(np.arange(19), 0.05), upper(np.arange(18), 0.05)
    (18.0, nan)

    """
    place = math.ceil((1 - alpha) * (len(sizes) + 1) - 1e-9)
    return float(np.sort(sizes)[place - 1]) if place <= len(sizes) else float("nan")


def sizes_between_halves(
    features: Array, coins: Array, transported: Array, judge: Judge, most: int, draws: int, rng: np.random.Generator
) -> tuple[DealtSizes, int]:
    """Flipset sizes of each of ``draws`` deals of these people (n, d), and how many stand on each side.

    At most ``most`` on a side. Columns that are not ``transported`` (d,) stay as they are. Nobody on a side, no sizes.
    """
    dealt = halves(len(features), most, draws, rng)
    side = min(len(features) // 2, most)
    if not dealt or not side:
        return DealtSizes.of([]), side
    people = np.concatenate([features[deal.source] for deal in dealt])
    coin = np.concatenate([coins[deal.source] for deal in dealt])
    counterparts = people.copy()
    matched = np.concatenate([deal.target[_matched(features[:, transported], deal)] for deal in dealt])
    counterparts[:, transported] = features[matched][:, transported]
    decided = (judge(rows, coin)[1].reshape(len(dealt), side) for rows in (people, counterparts))
    return DealtSizes.of([Flipsets(own, other) for own, other in zip(*decided, strict=True)]), side


def _matched(moving: Array, deal: Deal) -> Array:
    """Exact transport: whom of the one half each person of the other gets, (side,), so that costs are least in all."""
    from scipy.optimize import linear_sum_assignment

    _, partner = linear_sum_assignment(cost_matrix(moving[deal.source], moving[deal.target], COST))
    return np.asarray(partner)
