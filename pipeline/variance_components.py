r"""Variance components of a balanced crossed experiment with one value per cell, without a distribution.

The value of a cell is a sum of independent random effects, one for each non-empty set S of factors,

.. math:: y_{i_1 \ldots i_k} = \mu + \sum_S e_S(i_S), \qquad \operatorname{var} e_S = \sigma_S^2 .

Let two cells have different levels of the factors in A and the same level of every other factor. Then

.. math:: \tfrac12 E (y - y')^2 = g(A) = \sum_{S \cap A \neq \emptyset} \sigma_S^2 ,

and the mean over all such pairs of cells estimates g(A) without bias. Inclusion and exclusion give the components,

.. math:: \sigma_S^2 = \sum_{T \subseteq S} (-1)^{|S| - |T| + 1} g(T^c),

and these are the estimates that equate mean squares to their expectations. Like them, they can be negative. For values
0 and 1, 2 g(A) is the probability that two cells that differ in A disagree.

Source: Searle, Casella and McCulloch, *Variance Components*, 1992, chapters 4 and 5.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

import numpy as np

from fairness_audits.values import Array


def half_squared_difference(values: Array, axes: Collection[int]) -> float:
    """Return half the mean squared difference of two cells that differ in all of these axes and in no other one.

    Raises ValueError if one of the axes has a single level, because no two cells differ in it.
    """
    values = np.asarray(values, float)
    if single := [axis for axis in axes if values.shape[axis] < 2]:
        raise ValueError(f"expected at least 2 levels on axis {single[0]}, found shape {values.shape}")
    values = values - values.mean()
    # The sum of y y' over pairs of cells that differ in the axes: all pairs, less those that agree on some of them.
    products = sum(
        (-1) ** len(equal) * float((values.sum(axis=tuple(set(axes) - set(equal))) ** 2).sum())
        for equal in subsets(axes)
    )
    pairs = values.size * np.prod([values.shape[axis] - 1 for axis in axes])
    return float((values**2).mean() - products / pairs)


def components(values: Array, factors: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Return the variance component of each non-empty set of factors; ``factors`` names the axes of the values.

    A factor with a single level has no component. The component of all factors includes what is left unexplained.

    Examples
    --------
    >>> components(np.array([[1.0, 1.0], [3.0, 3.0]]), ("metric", "model"))
    {('metric',): 2.0, ('model',): 0.0, ('metric', 'model'): 0.0}
    """
    axes = [axis for axis, count in enumerate(np.shape(values)) if count > 1]
    total = {apart: half_squared_difference(values, apart) for apart in subsets(axes)}

    def component(effect: tuple[int, ...]) -> float:
        return sum(
            (-1) ** (len(effect) - len(part) + 1) * total[tuple(axis for axis in axes if axis not in part)]
            for part in subsets(effect)
        )

    return {tuple(factors[axis] for axis in effect): component(effect) for effect in subsets(axes) if effect}


def disagreement(decisions: Array, axes: Collection[int]) -> float:
    """Return the share of disagreement among pairs of decisions (0 or 1) that differ in these axes and in no other."""
    return 2 * half_squared_difference(decisions, axes)


def subsets(items: Collection[int]) -> Iterator[tuple[int, ...]]:
    """Yield every subset, the smaller ones first."""
    for size in range(len(items) + 1):
        yield from combinations(items, size)
