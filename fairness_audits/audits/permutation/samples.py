"""Permutation tests of many samples at once, for studies of level and power, on tables of a rate or on scores."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairness_audits.audits.permutation.draws import permuted
from fairness_audits.audits.permutation.exact import Rates, exact_p
from fairness_audits.audits.permutation.metrics import RATES
from fairness_audits.audits.permutation.monte_carlo import (
    ROUNDING,
    STATISTICS,
    extreme,
    furthest,
    monte_carlo_p,
    two_sided_p,
)
from fairness_audits.audits.permutation.rows import RankedRows
from fairness_audits.audits.permutation.statistics import MetricEstimate, Proportion, of_moments, studentized
from fairness_audits.values import Array

SMOOTHED = "studentized_smoothed"
TESTS = ("unstudentized", "studentized", SMOOTHED, "exact", "lift", "bootstrap")
"""``studentized`` has Wald's variance, as published; ``studentized_smoothed`` adds one event and one non-event."""
DRAWS_AT_ONCE = 2**20

TOGETHER = 16
"""Number of samples that share permutations: one for each lane of one or two vector registers."""

PERMUTATIONS_AT_ONCE = 128


def table_p(tables: Array, metric: str, test: str, draws: int, rng: np.random.Generator) -> Array:
    """Compute the two-sided p-values of a rate in S tables.

    The tests are those of ``permutation_test`` and two for comparison. With D the difference of the rate between the
    groups and D* the difference after a permutation of their labels:

    - ``lift``: D over its standard deviation in samples with replacement of all rows, against D* over its standard
      deviation over the permutations (the shortcut of section 5, as in the authors' library LiFT).
    - ``bootstrap``: D against D° - D, with D° from samples with replacement of each group (the basic bootstrap of
      section 4.2).

    Parameters
    ----------
    tables : integer array (S, 2, 2, 2)
        Numbers of rows by group, label and prediction.
    metric : str
        A name among ``metrics.RATES``.
    test : str
        A name among :data:`TESTS`.
    draws : int
        Permutations of each table (by draws of its counts), and samples with replacement.
    rng : numpy.random.Generator

    Returns
    -------
    array (S,)
        NaN if a group has no rows for the rate.

    References
    ----------
    DiCiccio et al. 2020, sections 3 to 5.
    """
    if test == "exact":
        return np.array([_exact(*row) for row in RATES[metric].split(tables).reshape(len(tables), 6).tolist()])
    groups = groups_of(tables, metric)
    p, at_once = np.full(len(tables), np.nan), max(1, DRAWS_AT_ONCE // draws)
    known = (groups[..., :2].sum(axis=-1) > 0).all(axis=0)
    for first in range(0, len(tables), at_once):
        rows = first + np.flatnonzero(known[first : first + at_once])
        if len(rows):
            p[rows] = _resampled(groups[:, rows], test, rng, draws)
    return p


def groups_of(tables: Array, metric: str) -> Array:
    """Count the events, non-events and other rows of a rate in each group: (..., 2, 2, 2) -> (2, ..., 3)."""
    return np.moveaxis(RATES[metric].split(tables), -2, 0)


@dataclass(frozen=True)
class Permuted:
    """A rate in both groups of S tables, ``observed`` (2, S), and after B permutations of each table, (2, S, B)."""

    observed: MetricEstimate
    drawn: MetricEstimate

    @classmethod
    def of(cls, groups: Array, draws: int, rng: np.random.Generator, smoothing: float = 0.0) -> "Permuted":
        """Permute the rows of tables, counted by kind, (2, S, 3). The ``smoothing`` is that of the variance."""
        rate = Proportion(smoothing)
        return cls(rate(groups), rate(permuted(groups, draws, rng)))

    def p(self, method: str) -> Array:
        """Compute the two-sided p-values (S,) of a method, studentized or unstudentized."""
        return two_sided_p(STATISTICS[method](self.drawn), STATISTICS[method](self.observed))

    def bound(self, alpha: float) -> Array:
        r"""Return the \|D\| beyond which the unstudentised test rejects, (S,): the k-th largest of the draws."""
        return furthest(np.abs(self.drawn.difference), alpha)


@lru_cache(maxsize=2**16)
def _exact(x_a: int, z_a: int, other_a: int, x_b: int, z_b: int, other_b: int) -> float:
    rates = Rates(x_a, x_a + z_a, x_b, x_b + z_b)
    return exact_p(rates).two_sided if rates.m_a and rates.m_b else float("nan")


def _resampled(groups: Array, test: str, rng: np.random.Generator, draws: int) -> Array:
    """Compute p-values from counts of kinds (2, S, 3) if both groups have rows for the rate."""
    rate = Proportion(0.0)
    if test == "bootstrap":
        value = rate(groups).difference
        return two_sided_p(rate(_with_replacement(groups, rng, draws)).difference - value[:, None], value)
    found = Permuted.of(groups, draws, rng, 1.0 if test == SMOOTHED else 0.0)
    if test != "lift":
        return found.p("studentized" if test == SMOOTHED else test)
    pooled = _with_replacement(np.moveaxis(groups, 0, 1).reshape(-1, 6), rng, draws).reshape(-1, draws, 2, 3)
    value, reference = found.observed.difference, found.drawn.difference
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.nanstd(rate(np.moveaxis(pooled, 2, 0)).difference, axis=-1, ddof=1)
        value = np.where(value == 0, 0.0, value / scale)
        scale = np.nanstd(reference, axis=-1, ddof=1, keepdims=True)
        return two_sided_p(np.where(reference == 0, 0.0, reference / scale), value)


def _with_replacement(counts: Array, rng: np.random.Generator, draws: int) -> Array:
    """Draw multinomial samples of the size and shares of each table: (..., U) -> (..., draws, U)."""
    total = counts.sum(axis=-1)
    share = counts / total[..., None]
    return rng.multinomial(total[..., None], share[..., None, :], size=(*total.shape, draws))


def auc_p(label: Array, group: Array, *, rng: np.random.Generator, draws: int) -> dict[str, Array]:
    """Compute the two-sided p-values of a difference of AUCs in S samples of n rows each.

    The tests are those of ``permutation_test`` with the same names. ``TOGETHER`` samples share their permutations. Each
    p-value keeps its distribution; only the Monte-Carlo error of the ``draws`` is shared.

    Parameters
    ----------
    label, group : integer arrays (S, n)
        0 and 1, in ascending order of score without ties. In every sample the groups have the sizes of the first
        sample.
    rng : numpy.random.Generator
    draws : int

    Returns
    -------
    dict
        p-values (S,) of the tests ``unstudentized`` and ``studentized`` (by DeLong's variance). NaN if a group lacks a
        label. The studentised test is also NaN if DeLong's variance does not exist or is 0; ``permutation_test`` also
        tests samples of the latter kind, and hardly ever rejects with so few rows.
    """
    sizes = np.bincount(group[0], minlength=2)
    observed = _observed(label, group, sizes)
    difference, t = observed.difference, studentized(observed)
    beyond = np.zeros((2, len(label)), dtype=np.int64)
    for first in range(0, len(label), TOGETHER):
        part = slice(first, first + TOGETHER)
        beyond[:, part] = _extremes(label[part], sizes, difference[part], t[part], draws, int(rng.integers(2**63)))
    p = monte_carlo_p(beyond, draws)
    testable = np.isfinite(t) & (observed.variance > 0).all(axis=0)
    known = {"unstudentized": np.isfinite(difference), "studentized": testable}
    return {test: np.where(there, own, np.nan) for (test, there), own in zip(known.items(), p, strict=True)}


def _observed(label: Array, group: Array, sizes: Array) -> MetricEstimate:
    """Compute AUC and variance of both groups, (2, S)."""
    units, none = (int(sizes[0]), int(sizes[1])), np.empty(0, dtype=bool)
    rows = zip(label.astype(np.uint8), group.astype(np.uint8), strict=True)
    found = [RankedRows(own, codes, none, units, 0).observed for own, codes in rows]
    return MetricEstimate(*np.stack(found, axis=-1))


def _extremes(label: Array, sizes: Array, difference: Array, t: Array, draws: int, seed: int) -> Array:
    """Count the draws that are as extreme as D and as T: (2, S) for at most ``TOGETHER`` samples."""
    from fairness_audits.audits.permutation.kernels import permuted_codes, ranked_sums

    samples, n = label.shape
    # One column per sample; columns that only fill the register belong to no sample.
    columns = np.zeros((n, TOGETHER))
    columns[:, :samples] = label.T
    beyond = np.zeros((2, samples), dtype=np.int64)
    for first in range(0, draws, PERMUTATIONS_AT_ONCE):
        codes = np.empty((min(PERMUTATIONS_AT_ONCE, draws - first), n), dtype=np.uint8)
        permuted_codes(seed, first, sizes, codes)
        sums = np.zeros((len(codes), 2, 6, TOGETHER))
        ranked_sums(codes, columns, sums)
        # (6, 2, samples, draws)
        estimate = of_moments(*np.moveaxis(sums, 0, -1).swapaxes(0, 1)[:, :, :samples])
        beyond[0] += extreme(estimate.difference, difference, "two-sided", ROUNDING).sum(axis=-1)
        beyond[1] += extreme(studentized(estimate), t, "two-sided").sum(axis=-1)
    return beyond
