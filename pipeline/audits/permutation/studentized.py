r"""The tests that compare a statistic with its distribution over random permutations (or, for comparison, bootstraps).

With D the difference of the metric between the groups and D* the same after a permutation of their labels:

- ``studentized``: T = D / sqrt(v_A + v_B) against T* = D* / sqrt(v*_A + v*_B), the variances estimated anew in every
  permutation (Algorithm 1). T is asymptotically pivotal, hence the level is alpha in the limit when only the metric,
  and nothing else, is equal in the groups (theorems 2 and 3).
- ``unstudentized``: D against D*. D* has the variance of two samples of the mixture, so the level may be anything.
- ``lift``: D over its standard deviation in samples with replacement of all rows, against D* over its own standard
  deviation over the permutations (the shortcut of section 5, as in the authors' library LiFT).
- ``bootstrap``: D against D° - D, D° from samples with replacement of each group (the basic bootstrap of section 4.2).

Each is inverted for its interval: the values d that it would not reject if (D - d) were compared in place of D.
Source: DiCiccio et al. 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.draws import BLOCK, Resampler
from pipeline.audits.permutation.pvalue import SafeStop, bound, extreme, furthest, monte_carlo_p, wilson
from pipeline.audits.permutation.result import Alternative, Method, tails
from pipeline.audits.permutation.statistics import studentized
from pipeline.types import Array


@dataclass(frozen=True)
class MonteCarlo:
    """An observed statistic among its ``reference`` (B,) draws; one unit of it is ``scale`` units of the metric.

    ``stopped`` says that drawing ended early because the decision was safe.
    """

    difference: float
    statistic: float
    scale: float
    reference: Array
    stopped: bool

    def p(self, alternative: Alternative) -> float:
        """(1 + S) / (B + 1); of an equal-tailed test twice that of the nearer tail, at most 1."""
        return min(1.0, tails(alternative) * float(monte_carlo_p(self.extremes(alternative), len(self.reference))))

    def extremes(self, alternative: Alternative) -> int:
        """S, the number of draws at least as extreme as what was observed; if equal-tailed, on the nearer side."""
        sides: tuple[Alternative, ...] = ("greater", "less") if alternative == "equal-tailed" else (alternative,)
        return min(int(extreme(self.reference, self.statistic, side).sum()) for side in sides)

    @property
    def undefined_draws(self) -> int:
        """Draws in which the statistic does not exist."""
        return int(np.isnan(self.reference).sum())

    def interval(self, alpha: float, alternative: Alternative) -> tuple[float, float]:
        """The differences that the test does not reject at level alpha, ends included: 0 exactly where p > alpha."""
        up, down = self.reference, -self.reference
        if alternative == "two-sided":
            up = down = np.abs(self.reference)
        below, above = (float(bound(furthest(side, alpha / tails(alternative)), self.scale)) for side in (up, down))
        low = -np.inf if alternative == "less" else self.difference - below
        high = np.inf if alternative == "greater" else self.difference + above
        return low, high

    def p_interval(self, alternative: Alternative, stop: SafeStop | None) -> tuple[float, float]:
        """Where the p-value of infinitely many draws lies: Wilson's interval, or one for every stopping time."""
        extremes, draws = self.extremes(alternative), len(self.reference)
        low, high = wilson(extremes, draws) if stop is None else stop.interval(extremes, draws)
        return min(1.0, tails(alternative) * low), min(1.0, tails(alternative) * high)


def monte_carlo(
    source: Resampler,
    method: Method,
    alternative: Alternative,
    draws: int,
    bootstraps: int,
    stop: SafeStop | None,
) -> MonteCarlo:
    """Draw the reference distribution of a method for two groups, at most ``draws`` of it."""
    observed = source.observed
    difference = float(observed.value[0] - observed.value[1])
    if method == "lift":
        if stop is not None:
            raise ValueError("the shortcut `lift` scales by all draws: it cannot stop early, leave resampling_risk out")
        scale = float(np.std(_difference(_bootstrapped(source, bootstraps, pooled=True)), ddof=1))
        reference = _difference(np.concatenate([source.permuted(*b).value for b in _blocks(draws)], axis=-1))
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = 0.0 if difference == 0 else float(np.divide(difference, scale))
            reference = np.where(reference == 0, 0.0, reference / np.nanstd(reference, ddof=1))
        return MonteCarlo(difference, statistic, scale, reference, stopped=False)
    scale = float(np.sqrt(observed.variance.sum())) if method == "studentized" else 1.0
    statistic = float(studentized(observed)) if method == "studentized" else difference

    def block(number: int, size: int) -> Array:
        if method == "studentized":
            return studentized(source.permuted(number, size))
        if method == "bootstrap":
            return _difference(source.bootstrapped(number, size, pooled=False)) - difference
        return _difference(source.permuted(number, size).value)

    reference, stopped = until_safe(block, statistic, alternative, draws, stop)
    return MonteCarlo(difference, statistic, scale, reference, stopped)


def until_safe(
    block: Callable[[int, int], Array], statistic: float, alternative: Alternative, draws: int, stop: SafeStop | None
) -> tuple[Array, bool]:
    """The draws of ``block(number, size)`` one after another, and whether they ended early because of ``stop``."""
    parts: list[Array] = []
    drawn = earlier = 0
    if alternative == "equal-tailed":
        alternative = "greater" if statistic > 0 else "less"
    for number, size in _blocks(draws):
        parts.append(block(number, size))
        beyond = extreme(parts[-1], statistic, alternative)
        last = None if stop is None else stop.first_stop(beyond, drawn, earlier)
        if last is not None:
            parts[-1] = parts[-1][: last + 1]
            return np.concatenate(parts), True
        drawn, earlier = drawn + size, earlier + int(beyond.sum())
    return np.concatenate(parts), False


def _blocks(draws: int) -> list[tuple[int, int]]:
    """Number and size of each block of draws."""
    return [(number, min(BLOCK, draws - first)) for number, first in enumerate(range(0, draws, BLOCK))]


def _bootstrapped(source: Resampler, size: int, pooled: bool) -> Array:
    return np.concatenate([source.bootstrapped(*block, pooled) for block in _blocks(size)], axis=-1)


def _difference(value: Array) -> Array:
    return value[0] - value[1]
