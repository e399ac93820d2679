r"""How far two measures of the same groups agree: in the sign of sigma, and in its size.

Source: Nanda et al. 2021, sections 7.1, 7.2, 8.1 and 8.3.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.pvalue import wilson
from pipeline.types import Array


@dataclass(frozen=True)
class Agreement:
    """Of ``total`` groups ``agreeing`` have the same sign of sigma in both; ``undefined`` more have none in one.

    [``low``, ``high``] is Wilson's interval of level 0.95 for the share, as if the groups were drawn independently.
    They are not: levels of one partition share their points, and two levels always have opposite signs, so the interval
    is rather too short. NaN without groups.
    """

    agreeing: int
    total: int
    undefined: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """agreeing / total."""
        return self.agreeing / self.total if self.total else float("nan")


def sign_agreement(one: Array, other: Array) -> Agreement:
    """Compare the signs of two sigma (p,) of the same p groups; NaN where a sigma does not exist.

    A sigma of exactly 0 agrees with 0 alone. Raises ValueError for arrays of unequal length.
    """
    one, other = _paired(one, other)
    known = ~(np.isnan(one) | np.isnan(other))
    total, agreeing = int(known.sum()), int((np.sign(one[known]) == np.sign(other[known])).sum())
    low, high = wilson(agreeing, total) if total else (float("nan"), float("nan"))
    return Agreement(agreeing, total, len(known) - total, low, high)


@dataclass(frozen=True)
class Difference:
    """``mean`` and ``variance`` (divisor total - 1) of sigma - sigma' over ``total`` groups; NaN without enough."""

    mean: float
    variance: float
    total: int
    undefined: int


def sigma_difference(one: Array, other: Array) -> Difference:
    """How much larger the first sigma (p,) is than the second, over the groups where both exist.

    Raises ValueError for arrays of unequal length.
    """
    one, other = _paired(one, other)
    gap = (one - other)[~(np.isnan(one) | np.isnan(other))]
    mean = float(gap.mean()) if len(gap) else float("nan")
    variance = float(gap.var(ddof=1)) if len(gap) > 1 else float("nan")
    return Difference(mean, variance, len(gap), len(one) - len(gap))


def _paired(one: Array, other: Array) -> tuple[Array, Array]:
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(
            f"expected two sigma of the same groups, found shapes {one.shape} and {other.shape}: list the groups of "
            "both in one order"
        )
    return one, other
