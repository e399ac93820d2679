"""Does a sensitive attribute depend on the inputs at all? If not, the direction learned for it is noise."""

import numpy as np

from fairness_audits.progress import track
from fairness_audits.values import Array

DRAWS = 999
TOGETHER = 50
"""Number of permutations held in memory together."""
RANK = 1e-12
"""Combinations of columns with less than this share of the largest eigenvalue carry no information."""


def association(features: Array, group: Array, rng: np.random.Generator, draws: int = DRAWS) -> tuple[float, float]:
    r"""Test whether an attribute is independent of the features, and estimate the signal in its learned direction.

    The statistic is the score form of the likelihood-ratio statistic of the logistic regression that learns the
    direction (:func:`fairness_audits.fair_metric.sensitive_directions`) against the intercept alone,

    .. math:: Q = u^\top (\bar s (1 - \bar s) X^\top X + I)^{-1} u, \qquad u = X^\top (s - \bar s),

    with centred features X and the regression's own penalty. Q is compared with its values under permutations of s. The
    test is therefore exact for any number of columns, for indicators of categories, and where the attribute is rare.

    Parameters
    ----------
    features : array (n, d)
        In the units of the regression, without the columns that the regression leaves out.
    group : array (n,)
        The attribute, 0 and 1.
    rng : numpy.random.Generator
    draws : int
        Number of permutations B.

    Returns
    -------
    p_value : float
        (1 + #{b : Q*_b >= Q}) / (B + 1).
    signal : float
        max(0, 1 - mean(Q*) / Q): the share of Q beyond what noise explains, the heuristic shrinkage of van Houwelingen
        and le Cessie (1990). 0 for noise, near 1 for a direction that is known well.
    """
    x = features - features.mean(axis=0)
    scale = x.std(axis=0)
    scale[scale == 0] = 1.0
    x /= scale
    s = group - group.mean()
    # In standard deviations, the penalty |w|^2 / 2 of the regression becomes sum_j (w_j / scale_j)^2 / 2.
    information, axes = np.linalg.eigh(s.var() * x.T @ x + np.diag(scale**-2.0))
    kept = information > RANK * information[-1]
    scores = x @ (axes[:, kept] / np.sqrt(information[kept]))

    observed = float(((s @ scores) ** 2).sum())
    permuted = np.empty(draws)
    for first in track("permutations", range(0, draws, TOGETHER)):
        some = np.tile(s, (min(TOGETHER, draws - first), 1))
        permuted[first : first + TOGETHER] = ((rng.permuted(some, axis=1) @ scores) ** 2).sum(axis=1)
    # A permutation that leaves the groups as they are gives Q up to rounding.
    beyond = int((permuted >= observed * (1 - 1e-9)).sum())
    signal = max(0.0, 1 - float(permuted.mean()) / observed) if observed > 0 else 0.0
    return (1 + beyond) / (draws + 1), signal
