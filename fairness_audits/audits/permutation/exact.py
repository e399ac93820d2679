r"""Exact tests of two equal rates by enumeration, with no Monte Carlo.

Permuting x events among m = m_A + m_B rows gives X_A, the events in group A, a hypergeometric distribution:

.. math:: P(X_A = x) = \binom{m_A}{x} \binom{m_B}{K - x} \Big/ \binom{m}{K}, \qquad K = x_A + x_B.

If the rates are equal, the events are exchangeable among the rows and this is the distribution of X_A given K. The
level of the test is then at most alpha in every sample: for TPR, FNR, FPR and TNR within a label, for precision and NPV
within a prediction, for accuracy and selection rate among all rows. It is Fisher's exact test of the corresponding
fourfold table.
"""

from typing import NamedTuple

import numpy as np

from fairness_audits.audits.permutation.draws import window
from fairness_audits.audits.permutation.monte_carlo import Alternative
from fairness_audits.values import Array

ALIKE = 1e-7
"""Relative distance within which probabilities count as equal, as in R's Fisher test."""

SMALLEST = float(np.finfo(float).tiny)
"""Replaces probabilities that are too small for a double."""


class Rates(NamedTuple):
    """Events and trials in groups A and B."""

    x_a: int
    m_a: int
    x_b: int
    m_b: int

    @property
    def events(self) -> int:
        return self.x_a + self.x_b

    @property
    def trials(self) -> int:
        return self.m_a + self.m_b

    @property
    def difference(self) -> float:
        return self.x_a / self.m_a - self.x_b / self.m_b


class ExactP(NamedTuple):
    """p-values of the two one-sided tests and the two-sided test."""

    greater: float
    less: float
    two_sided: float

    def of(self, alternative: Alternative) -> float:
        """Return the p-value of the alternative."""
        equal_tailed = min(1.0, 2 * min(self.greater, self.less))
        known = {"greater": self.greater, "less": self.less, "two-sided": self.two_sided, "equal-tailed": equal_tailed}
        return known[alternative]


def exact_p(rates: Rates) -> ExactP:
    """Compute P(X_A >= x_A), P(X_A <= x_A), and the probability of all outcomes no more probable than the observed one.

    The cost grows with the square root of the number of rows.

    References
    ----------
    Fisher 1934; DiCiccio et al. 2020, section 3.1.

    Examples
    --------
    >>> p = exact_p(Rates(8, 10, 2, 10))
    >>> round(p.greater, 4), round(p.two_sided, 4)
    (0.0115, 0.023)
    """
    x, log_weight = window(rates.events, rates.trials, rates.m_a)
    weight = np.exp(log_weight)
    return p_at(rates.x_a - int(x[0]), weight / weight.sum())


def p_at(at: int, weight: Array) -> ExactP:
    """Return the p-values of the outcome ``at`` among outcomes with these probabilities; others are impossible."""
    if not 0 <= at < len(weight):
        far = SMALLEST, 1.0
        greater, less = far if at > 0 else far[::-1]
        return ExactP(greater, less, SMALLEST)
    as_rare = weight <= weight[at] * (1 + ALIKE)
    # Sum each tail from its small terms, so that they are not lost.
    sums = weight[at:][::-1].sum(), weight[: at + 1].sum(), np.sort(weight[as_rare]).sum()
    greater, less, two_sided = (min(1.0, max(SMALLEST, float(total))) for total in sums)
    return ExactP(greater, less, two_sided)


def statistic(rates: Rates) -> float:
    r"""Compute T = D / sd(D), with the standard deviation of D = X_A / m_A - (K - X_A) / m_B over all permutations.

    .. math:: Var(D) = \frac{K (m - K)}{m (m - 1)} \frac{m}{m_A m_B}
    """
    variance = rates.events * (rates.trials - rates.events) / ((rates.trials - 1) * rates.m_a * rates.m_b)
    return 0.0 if rates.difference == 0 else rates.difference / float(np.sqrt(variance))
