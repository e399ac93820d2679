"""A compiled loop over permutations of the groups of many samples at once, in ascending order of score.

Import this module only where it is used: it imports the compiler.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipeline.types import Array

LANES = 16


@njit(cache=True, nogil=True)
def ranked_sums(codes: Array, label: Array, sums: Array) -> None:
    """What :func:`pipeline.audits.permutation.auc_statistic.of_moments` makes AUC and variance of, for 16 samples
    without ties.

    ``codes`` (B, n) are groups, 0 and 1, after B permutations, the same for all samples; ``label`` (n, 16) are doubles.
    ``sums`` (B, 2, 6, 16) gets, of each group, the numbers of positives and negatives, the sum over positives of the
    number of negatives below, that of its squares, and the same over negatives with the positives below. All are whole
    numbers, which doubles add without rounding.
    """
    part = np.zeros((2, 6, LANES))
    for b in range(codes.shape[0]):
        part[:] = 0.0
        for i in range(label.shape[0]):
            group = codes[b, i]
            for lane in range(LANES):
                positive = label[i, lane]
                negative = 1.0 - positive
                m, n = part[group, 0, lane], part[group, 1, lane]
                lower, under = positive * n, negative * m
                part[group, 0, lane] = m + positive
                part[group, 1, lane] = n + negative
                part[group, 2, lane] += lower
                part[group, 3, lane] += lower * n
                part[group, 4, lane] += under
                part[group, 5, lane] += under * m
        sums[b] = part
