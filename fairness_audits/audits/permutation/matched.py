r"""Two groups compared within pairs of rows that are otherwise the same, such as a prompt with either of two names.

Let delta_i be the value of the row of group A in pair i minus that of the row of group B. If only the metric is equal,
delta has mean 0. For a rate, the pairs with delta = 1 among those that differ are binomial with probability 1/2:
McNemar's exact test. Otherwise the signs of the pairs, or of whole clusters of pairs, are flipped at random, and

.. math:: T = \bar\delta / \sqrt v, \qquad v = \frac{C}{C - 1} \frac{\sum_c (S_c - m_c \bar\delta)^2}{n^2},

is computed anew, with the sums S_c of delta over the m_c pairs of each of C clusters. Without clusters, it is Student's
statistic of paired differences. Intervals and margins allow for values that were not seen if few units differ.

References
----------
McNemar 1947; Tango 1998 (bounds and interval of a difference of rates); Fisher 1935 (random signs).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln, ndtr

from fairness_audits.audits.inference import unseen
from fairness_audits.audits.permutation.doubts import Doubt
from fairness_audits.audits.permutation.draws import generator
from fairness_audits.audits.permutation.equivalence import Bounds, Equivalence, tested
from fairness_audits.audits.permutation.exact import ExactP, p_at
from fairness_audits.audits.permutation.intervals import Interval, agreeing, within
from fairness_audits.audits.permutation.metrics import Mean, Rate
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import MatchedRows
from fairness_audits.audits.permutation.paired import SIGNS_AT_ONCE, score_interval, score_statistic, values
from fairness_audits.audits.permutation.score_tests import OneSided
from fairness_audits.audits.permutation.statistics import CANCELLED, MetricEstimate, freedom, without_rounding
from fairness_audits.audits.permutation.units import LEAST_UNITS
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


@dataclass(frozen=True)
class Pairs:
    """The values of n pairs, (2, n): of the row in group A and of that in B. ``unit`` (n,) codes what is flipped."""

    value: Array
    unit: Array

    @classmethod
    def of(cls, data: MatchedRows, metric: Rate | Mean) -> Pairs:
        """Return the pairs of groups 0 and 1 on which a metric is computed.

        Raises InvalidInput if a rate is computed on one row of a pair only, because its labels differ.
        """
        output = data.prediction if isinstance(metric, Rate) else data.score
        assert output is not None
        value, among = values(metric, data.label, output)
        rows = [np.flatnonzero(data.group == group) for group in (0, 1)]
        match, *places = np.intersect1d(data.match[rows[0]], data.match[rows[1]], return_indices=True)
        a, b = rows[0][places[0]], rows[1][places[1]]
        if (torn := match[among[a] != among[b]]).size:
            problem = (
                f"{torn.size:,} pairs have different labels in their rows, such as {data.names[torn[0]]!r}, so "
                f"{metric.name} is computed on one row of the pair only"
            )
            remedy = "Give both rows of a pair the same label, or use the selection rate"
            raise InvalidInput(problem, option="matched", remedy=remedy)
        a, b = a[among[a]], b[among[a]]
        unit = np.arange(len(a)) if data.whole is None else np.unique(data.whole[a], return_inverse=True)[1]
        return cls(np.stack([value[a], value[b]]), unit)

    @property
    def n(self) -> int:
        return len(self.unit)

    @property
    def units(self) -> int:
        """The number of pairs, or of clusters of pairs."""
        return len(np.unique(self.unit))

    @cached_property
    def delta(self) -> Array:
        """A minus B in each pair, (n,)."""
        return np.asarray(self.value[0] - self.value[1])

    @property
    def higher(self) -> tuple[int, int]:
        """The numbers of pairs with a higher value in A, and in B."""
        return int((self.delta > 0).sum()), int((self.delta < 0).sum())

    def doubt(self, observed: MetricEstimate, level: float) -> Doubt:
        """Bound the mean difference if few units have one, or all the same: the values of others are in this range."""
        margin, differing = 0.0, len(np.unique(self.unit[self.delta != 0]))
        if differing < LEAST_UNITS or without_rounding(observed).variance[0] == 0:
            share = float(unseen(np.asarray(self.units), level))
            margin = share * (float(np.ptp(self.value)) + abs(float(self.delta.mean())))
        return Doubt(np.array([[margin, 0.0]] * 2), level)


@dataclass(frozen=True)
class McNemar:
    """The exact test of two rates in ``n`` pairs: ``up`` pairs have the event in A only, and ``down`` in B only."""

    up: int
    down: int
    n: int

    @property
    def p(self) -> ExactP:
        """The p-values of equal rates."""
        changed = self.up + self.down
        rarer = np.minimum(np.arange(changed + 1), np.arange(changed + 1)[::-1])
        logs = gammaln(changed + 1) - gammaln(rarer + 1) - gammaln(changed - rarer + 1) - changed * np.log(2)
        return p_at(self.up, np.exp(logs))

    @property
    def statistic(self) -> float:
        return score_statistic(self.up, self.down, self.n, 0.0)

    def stated(self, settings: Settings, rejected: bool) -> Interval:
        """Return Tango's interval in agreement with the test; one end is open for a one-sided test."""
        low, high = score_interval(self.up, self.down, self.n, settings.level)
        low, high = -1.0 if settings.alternative == "less" else low, 1.0 if settings.alternative == "greater" else high
        return agreeing((low, high), (self.up - self.down) / self.n, rejected)

    def test(self, at: float) -> OneSided:
        """Test whether the difference is above or below a value."""
        z = score_statistic(self.up, self.down, self.n, at)
        return OneSided(float(ndtr(-z)), float(ndtr(z)))

    def equivalence(self, bounds: Bounds, alpha: float) -> Equivalence:
        """Test bounds of the difference."""
        p_within, p_beyond = tested(self.test, bounds)
        stated = within(score_interval(self.up, self.down, self.n, alpha), bounds.ends, p_within <= alpha)
        return Equivalence(bounds, (self.up - self.down) / self.n, stated, p_within, p_beyond, "score")


@dataclass(frozen=True)
class SignFlips:
    """The mean difference of pairs as the metric of group A, and 0 as that of B, under random signs of the units."""

    pairs: Pairs
    seed: int

    @cached_property
    def sums(self) -> tuple[Array, Array]:
        """The sum of delta and the number of pairs of each unit, (C,)."""
        unit = self.pairs.unit
        return np.bincount(unit, self.pairs.delta), np.bincount(unit).astype(float)

    @property
    def observed(self) -> MetricEstimate:
        total, size = self.sums
        return self._estimate(np.asarray(total.sum()), np.asarray((size * total).sum()))

    @property
    def units(self) -> tuple[int, ...]:
        return (self.pairs.units,) * 2

    def permuted(self, block: int, size: int) -> MetricEstimate:
        """Return the estimates under ``size`` draws of the signs."""
        rng, (total, m) = generator(self.seed, block), self.sums
        found = np.zeros((size, 2))
        for start in range(0, len(total), step := max(1, SIGNS_AT_ONCE // size)):
            own = np.stack([total, m * total], axis=-1)[start : start + step]
            found += (2.0 * rng.integers(0, 2, (size, len(own)), dtype=np.int8) - 1) @ own
        return self._estimate(*found.T)

    def _estimate(self, total: Array, crossed: Array) -> MetricEstimate:
        """Compute mean and variance from the sums of S_c and m_c S_c, whose squares no sign changes."""
        sums, m = self.sums
        n, units = self.pairs.n, np.asarray(len(sums))
        mean, scale = total / n, (sums**2).sum()
        squares = scale - 2 * mean * crossed + mean**2 * (m**2).sum()
        squares = np.where(squares < CANCELLED * scale, 0.0, squares)
        variance = units / freedom(units) * squares / n**2
        return MetricEstimate(np.stack([mean, 0 * mean]), np.stack([variance, 0 * mean]))
