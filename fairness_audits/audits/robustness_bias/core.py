"""Robustness bias of groups: from distances to sigma, areas, curves, intervals and p-values.

The audit of a user's model and the audits of the studies call :func:`robustness_bias` on their arrays. They differ in
how they find distances, not in what they make of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.measures import (
    DENOMINATORS,
    Lengths,
    Partition,
    by_level,
    counted,
    survival,
)
from fairness_audits.audits.robustness_bias.significance import sigma_intervals, significance
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


@dataclass(frozen=True)
class Levels:
    """The L levels of a ``partition`` by one ``denominator``; each array is (L,), NaN where there is no value.

    ``points``, ``n_correct`` and ``failed`` count all points, the correctly classified ones, and failed attacks.
    ``n`` points count for this denominator. Their ``lengths`` have a ``mean_distance``, a ``median_distance`` and, up
    to the budget, the area ``auc`` of their curve. ``sigma`` compares this area with that of all other levels.
    ``sigma_ci_low`` and ``sigma_ci_high`` are the ends of its interval, ``sigma_p`` is the p-value of sigma = 0, and
    ``sigma_p_adjusted`` is adjusted for all levels of all partitions.
    """

    partition: Partition
    denominator: str
    lengths: Lengths
    points: Array
    n_correct: Array
    failed: Array
    sigma: Array
    sigma_ci_low: Array
    sigma_ci_high: Array
    sigma_p: Array
    sigma_p_adjusted: Array
    auc: Array
    mean_distance: Array
    median_distance: Array
    n: Array

    def curves(self, tau: Array) -> Array:
        """Return I_P of each level at the sizes of perturbations ``tau`` (t,), (L, t)."""
        return np.stack([survival(self.lengths, self.partition.codes == level, tau) for level in range(len(self.n))])

    def entries(self, names: Sequence[str]) -> Iterator[tuple[str, str, float]]:
        """Yield the values of these arrays, one after the other: the array's name, the level's name, the value."""
        for name in names:
            for level, value in zip(self.partition.levels, getattr(self, name), strict=True):
                yield name, level, float(value)

    @property
    def empty(self) -> list[str]:
        """Return the names of the levels without a point that counts. They have no sigma."""
        return [name for name, n in zip(self.partition.levels, self.n, strict=True) if n == 0]


_, _, _, *QUANTITIES = (one.name for one in fields(Levels))
COUNTS, MEASURES = tuple(QUANTITIES[:3]), tuple(QUANTITIES[3:])
"""Names of the arrays of :class:`Levels`, in the order of every table."""


@dataclass(frozen=True)
class RobustnessBias:
    """Robustness bias of n points.

    ``distance`` (n,) is NaN if a point is misclassified or has no distance; ``correct`` and ``failed`` are (n,) bool.
    ``mean_distance`` and ``median_distance`` are those of all distances, and ``budget`` is T, NaN without distances.
    ``levels`` has one entry for each denominator and partition, in this order.
    """

    distance: Array
    correct: Array
    failed: Array
    budget: float
    mean_distance: float
    median_distance: float
    levels: tuple[Levels, ...]


def robustness_bias(
    distance: Array,
    correct: Array,
    partitions: Sequence[Partition],
    budget: float | None,
    precision: Precision,
    rng: np.random.Generator,
    *,
    fallback: Array | None = None,
    denominators: Sequence[str] = DENOMINATORS,
) -> RobustnessBias:
    r"""Compare the distances to the decision boundary of each group with those of all other points.

    .. math:: \sigma(P) = \frac{A_P - A_{\bar P}}{A_{\bar P}}, \qquad
              A_P = \int_0^T \widehat{I_P}(\tau)\, d\tau
                  = \frac{1}{|P|} \sum_{x \in P} \min(\text{length}(x), T)

    :mod:`fairness_audits.audits.robustness_bias.measures` defines the lengths of the denominators, and
    :mod:`fairness_audits.audits.robustness_bias.significance` the intervals and tests.

    Parameters
    ----------
    distance : ndarray of shape (n,)
        Distances of correctly classified points in any unit, NaN if the attack failed.
    correct : ndarray of shape (n,), bool
        Whether each point is classified correctly.
    partitions : sequence of Partition
        Partitions of the n points into groups.
    budget : float or None
        T, the largest perturbation that counts; None for the largest distance.
    precision : Precision
        Level of the intervals, numbers of resamples and of permutations.
    rng : numpy.random.Generator
        Source of the seeds of resamples and permutations, which all denominators share.
    fallback : ndarray of shape (n,), optional
        Distances of points on which the attack failed, NaN for none. These points have a distance and still count as
        failed. The audit of a user's images passes the second bound of images without a gradient, on which an attack
        cannot move. The studies have none, as published.
    denominators : sequence of {"paper", "correct"}
        The denominators to measure by. Results of one do not depend on the others.

    Returns
    -------
    RobustnessBias

    Raises
    ------
    InvalidInput
        If a denominator is unknown, numbers of points differ, or a distance is negative or infinite.

    References
    ----------
    Nanda et al. 2021, (1)-(6) and Definition 1.

    Examples
    --------
    >>> found = robustness_bias(
    ...     np.array([1.0, 1.0, 2.0, 4.0]),
    ...     np.ones(4, dtype=bool),
    ...     [Partition("sex", ("f", "m"), np.array([0, 0, 1, 1]))],
    ...     budget=None,
    ...     precision=Precision(alpha=0.05, bootstraps=10, permutations=9),
    ...     rng=np.random.default_rng(0),
    ...     denominators=["correct"],
    ... )
    >>> found.levels[0].auc, found.levels[0].sigma.round(2)
    (array([1., 3.]), array([-0.67,  2.  ]))

    """
    for partition in partitions:
        if partition.codes.shape != distance.shape:
            problem = f"partition {partition.name!r} has {len(partition.codes)} points, but there are {len(distance)}"
            raise InvalidInput(problem, option="partitions")
    without = np.isnan(distance)
    if fallback is not None:
        distance = np.where(without, fallback, distance)
    known = counted(distance, correct, "correct")
    failed = correct & without
    budget = known.longest if budget is None else budget
    mean, median = _mean_and_median(known.length[known.counts])
    seeds = rng.integers(2**63, size=2)
    counts = {"points": np.ones(len(distance), dtype=bool), "n_correct": correct, "failed": failed}
    levels = [
        one
        for denominator in denominators
        for one in _levels(
            counted(distance, correct, denominator), denominator, partitions, counts, budget, precision, seeds
        )
    ]
    distance = np.where(correct, distance, np.nan)
    return RobustnessBias(distance, correct, failed, budget, mean, median, tuple(levels))


def _levels(
    lengths: Lengths,
    denominator: str,
    partitions: Sequence[Partition],
    counts: Mapping[str, Array],
    budget: float,
    precision: Precision,
    seeds: Array,
) -> Iterator[Levels]:
    """Yield the levels of each partition by the lengths of one denominator; ``counts`` are masks (n,) by field."""
    resampling, permuting = map(np.random.default_rng, seeds)
    intervals = sigma_intervals(lengths, partitions, budget, precision.bootstraps, precision.alpha, resampling)
    tests = significance(lengths, partitions, budget, precision.permutations, permuting)
    for partition, (low, high), test in zip(partitions, intervals, tests, strict=True):
        members = [partition.codes == level for level in range(len(partition))]
        own = np.array([_mean_and_median(lengths.length[lengths.counts & inside]) for inside in members])
        found = by_level(lengths, partition, budget)
        yield Levels(
            partition,
            denominator,
            lengths,
            **{name: np.array([of[inside].sum() for inside in members]) for name, of in counts.items()},
            sigma=found.sigma,
            sigma_ci_low=low,
            sigma_ci_high=high,
            sigma_p=test.p,
            sigma_p_adjusted=test.adjusted,
            auc=found.area,
            mean_distance=own[:, 0],
            median_distance=own[:, 1],
            n=found.n,
        )


def _mean_and_median(lengths: Array) -> tuple[float, float]:
    """Return both of some lengths, NaN if there are none."""
    return (float(lengths.mean()), float(np.median(lengths))) if len(lengths) else (np.nan, np.nan)
