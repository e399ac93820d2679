"""Compiled loops over permutations of rows. Seed and number determine a permutation, independently of earlier ones.

Random words come from a counter (the output function of SplitMix64). A permutation needs no state, and the words of
eight rows are computed independently of one another.

The code uses only sums, products and quotients, in an order that the compiler may not change, so cached and freshly
compiled code return the same bytes. All functions that call one another are in this file: Numba recompiles its cache if
the function's own file has changed, but does not notice changes in other files. Import this module lazily: it imports
the compiler.
"""

from typing import Any

import numpy as np

from fairness_audits.compiled import njit
from fairness_audits.values import Array

Word = Any
"""Convert to a NumPy uint64; the compiler infers the type."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
TO_UNIT = 1.0 / 9007199254740992.0
"""Factor that maps a random 53-bit integer to [0, 1)."""

LANES = 16
"""Number of partial sums, or samples, computed side by side: as many as fill a few registers."""

SIDE = 32
"""Number of permutations of ranks computed side by side: as many as a word has bits."""

SMALL = 16
"""The members of groups with less than 1 / SMALL of the rows are chosen one by one."""


@njit(inline="always")
def mixed(z: Word) -> Word:
    """Scramble a 64-bit word by a bijection (SplitMix64's)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def stream(seed: int, permutation: int) -> Word:
    """Return the counter at which a permutation starts."""
    return mixed(mixed(np.uint64(seed)) + np.uint64(permutation) * GOLDEN)


@njit(inline="always")
def below(word: Word, n: int) -> Any:
    """Return a uniform integer in 0 ... n - 1 from a random word."""
    return np.int64((word >> np.uint64(11)) * TO_UNIT * n)


@njit(cache=True, nogil=True)
def choose(seed: int, permutation: int, size: int, words: Array, member: Array, flag: int) -> None:
    """Draw a uniform subset of ``size`` of the n rows: the bit ``flag`` of ``member`` (n,) becomes 0 inside, 1 outside.

    Each row first enters independently with probability close to size / n, by one random byte. Given their number, the
    chosen rows are a uniform subset, and it stays uniform when rows are removed or added at random until there are
    ``size``. A small subset (or one that omits few rows) starts from the empty (or the full) set instead. The other
    bits of ``member`` stay as they are. ``words`` (ceil(n / 8),) uint64 is scratch space.
    """
    n = member.shape[0]
    bit, others = member.dtype.type(flag), member.dtype.type(~flag)
    start = stream(seed, permutation)
    outside = 0
    if min(size, n - size) * SMALL < n:
        full = bit * member.dtype.type(2 * size < n)
        for i in range(n):
            member[i] = member[i] & others | full
        outside = n if 2 * size < n else 0
    else:
        for i in range(words.shape[0]):
            words[i] = mixed(start + np.uint64(i) * GOLDEN)
        octets = words.view(np.uint8)
        cut = np.uint8(int(256 * size / n + 0.5))
        for i in range(n):
            member[i] = member[i] & others | bit * (octets[i] >= cut)
        for i in range(n):
            outside += octets[i] >= cut
    chosen = n - outside
    wrong = member.dtype.type(0) if chosen > size else bit
    change = abs(chosen - size)
    counter = mixed(start ^ GOLDEN)
    while change > 0:
        counter += GOLDEN
        i = below(mixed(counter), n)
        if member[i] & bit == wrong:
            member[i] ^= bit
            change -= 1


@njit(cache=True, nogil=True)
def shuffle(seed: int, permutation: int, values: Array) -> None:
    """Permute ``values`` uniformly in place (Fisher and Yates)."""
    counter = stream(seed, permutation)
    for i in range(values.shape[0] - 1, 0, -1):
        counter += GOLDEN
        j = below(mixed(counter), i + 1)
        values[i], values[j] = values[j], values[i]


@njit(cache=True, nogil=True)
def assign(seed: int, permutation: int, sizes: Array, words: Array, codes: Array) -> None:
    """Assign groups of the given sizes uniformly at random: ``codes`` (n,) uint8 becomes the group of each row."""
    if sizes.shape[0] == 2:
        codes[:] = 0
        choose(seed, permutation, sizes[0], words, codes, 1)
        return
    filled: Word = 0
    for group in range(sizes.shape[0]):
        codes[filled : filled + sizes[group]] = group
        filled += sizes[group]
    shuffle(seed, permutation, codes)


@njit(cache=True, nogil=True)
def ranked_moments(codes: Array, label: Array, tie_end: Array, moments: Array) -> None:
    """Sum, in one pass over rows in ascending order of score, what determines each group's AUC and DeLong variance.

    ``moments`` (3, 2 G), initially 0, receives for each class 2 group + label: the number of rows, the sum over these
    rows of the number of lower rows of the same group and the other label (ties count one half), and the sum of its
    squares. ``tie_end`` (n,) marks the last row of each run of equal scores; it is empty if there are no ties.
    """
    count, total, squares = moments
    if tie_end.shape[0] == 0:
        for i in range(label.shape[0]):
            k = 2 * codes[i] + label[i]
            value = count[k ^ 1]
            total[k] += value
            squares[k] += value * value
            count[k] += 1.0
        return
    tied = np.zeros(count.shape[0])
    for i in range(label.shape[0]):
        tied[2 * codes[i] + label[i]] += 1.0
        if tie_end[i]:
            for k in range(tied.shape[0]):
                value = count[k ^ 1] + 0.5 * tied[k ^ 1]
                total[k] += tied[k] * value
                squares[k] += tied[k] * value * value
            for k in range(tied.shape[0]):
                count[k] += tied[k]
                tied[k] = 0.0


@njit(inline="always")
def _side_by_side(part: Array, word: int, label: int, every: float) -> None:
    """Add a row to the sums of SIDE permutations; ``every`` counts the rows below with the other label."""
    for lane in range(SIDE):
        inside = (word >> np.int32(lane)) & np.int32(1) != 0
        below = part[1 - label, lane]
        first, second = 0.0 if inside else every - below, below if inside else 0.0
        part[label, lane] += 1.0 if inside else 0.0
        part[2 + label, lane] += first * first
        part[4 + label, lane] += second * second
        if label:
            part[6, lane] += first
            part[7, lane] += second


@njit(cache=True, nogil=True)
def two_ranked_moments(flags: Array, label: Array, moments: Array) -> None:
    """Compute :func:`ranked_moments` without ties of at most SIDE permutations of two groups: ``moments`` (B, 3, 4).

    ``flags`` (SIDE / 8, n) uint8 hold the group of each row: bit b % 8 of ``flags[b // 8]`` in permutation b. The sums
    have the order of a single permutation, so they round alike.
    """
    part = np.zeros((8, SIDE))
    negative, positive = 0.0, 0.0
    for i in range(label.shape[0]):
        word: Word = 0
        for octet in range(SIDE // 8):
            word |= np.int64(flags[octet, i]) << 8 * octet
        # Constant rows of one array let the compiler compute the permutations in vectors.
        if label[i]:
            _side_by_side(part, np.int32(word), 1, negative)
            positive += 1.0
        else:
            _side_by_side(part, np.int32(word), 0, positive)
            negative += 1.0
    for b in range(moments.shape[0]):
        count, total, squares = moments[b]
        for group in range(2):
            for y, every in ((0, negative), (1, positive)):
                count[2 * group + y] = part[y, b] if group else every - part[y, b]
                squares[2 * group + y] = part[2 + 2 * group + y, b]
            total[2 * group + 1] = part[6 + group, b]
            # In each pair of a positive and a negative of a group, one of the two ranks lower.
            total[2 * group] = count[2 * group] * count[2 * group + 1] - total[2 * group + 1]


@njit(cache=True, nogil=True)
def permuted_ranks(seed: int, first: int, sizes: Array, label: Array, tie_end: Array, moments: Array) -> None:
    """Compute :func:`ranked_moments` of permutations first, first + 1, ...: ``moments`` (B, 3, 2 G), initially 0."""
    words = np.empty((label.shape[0] + 7) // 8, np.uint64)
    if sizes.shape[0] == 2 and tie_end.shape[0] == 0:
        flags = np.zeros((SIDE // 8, label.shape[0]), np.uint8)
        for b in range(0, moments.shape[0], SIDE):
            some = moments[b : b + SIDE]
            for lane in range(some.shape[0]):
                choose(seed, first + b + lane, sizes[0], words, flags[lane // 8], 1 << lane % 8)
            two_ranked_moments(flags, label, some)
        return
    codes = np.empty(label.shape[0], np.uint8)
    for b in range(moments.shape[0]):
        assign(seed, first + b, sizes, words, codes)
        ranked_moments(codes, label, tie_end, moments[b])


@njit(cache=True, nogil=True)
def permuted_codes(seed: int, first: int, sizes: Array, codes: Array) -> None:
    """Return the groups of the rows (B, n) after permutations first, first + 1, ..."""
    words = np.empty((codes.shape[1] + 7) // 8, np.uint64)
    for b in range(codes.shape[0]):
        assign(seed, first + b, sizes, words, codes[b])


@njit(cache=True, nogil=True)
def sum_over(codes: Array, group: int, column: Array) -> float:
    """Sum ``column`` over the rows of one group, in 16 independent partial sums."""
    partial = np.zeros(LANES)
    whole = column.shape[0] - column.shape[0] % LANES
    for i in range(0, whole, LANES):
        for lane in range(LANES):
            partial[lane] += column[i + lane] * (codes[i + lane] == group)
    for i in range(whole, column.shape[0]):
        partial[i - whole] += column[i] * (codes[i] == group)
    return partial.sum()


@njit(cache=True, nogil=True)
def permuted_sums(seed: int, first: int, sizes: Array, columns: Array, sums: Array) -> None:
    """Sum each column over each group for permutations first, first + 1, ...

    ``columns`` (C, n) is contiguous. ``sums`` (B, G, C) is filled except for group 0, which is the rest of the total.
    """
    codes = np.empty(columns.shape[1], np.uint8)
    words = np.empty((columns.shape[1] + 7) // 8, np.uint64)
    for b in range(sums.shape[0]):
        assign(seed, first + b, sizes, words, codes)
        for group in range(1, sizes.shape[0]):
            for c in range(columns.shape[0]):
                sums[b, group, c] = sum_over(codes, group, columns[c])


@njit(cache=True, nogil=True)
def clustered_ranks(
    codes: Array, cluster: Array, label: Array, tie_end: Array, weight: Array, count: Array, part: Array
) -> None:
    """Rank clustered rows in one pass, in ascending order of score; equal scores count one half.

    ``codes`` (C,) is the group of each cluster, ``cluster`` (n,) the cluster of each row; a row counts ``weight`` (n,)
    times. ``count`` (2 G,), initially 0, receives the number of rows of each class 2 group + label. ``part`` (C, 2),
    initially 0, receives for each cluster and label the sum over its rows of the number of lower rows of the same group
    and the other label.
    """
    tied = np.zeros(count.shape[0])
    start: Word = 0
    for end in range(label.shape[0]):
        if not tie_end[end]:
            continue
        tied[:] = 0.0
        for i in range(start, end + 1):
            tied[2 * codes[cluster[i]] + label[i]] += weight[i]
        for i in range(start, end + 1):
            k = 2 * codes[cluster[i]] + label[i]
            part[cluster[i], label[i]] += weight[i] * (count[k ^ 1] + 0.5 * tied[k ^ 1])
        for k in range(count.shape[0]):
            count[k] += tied[k]
        start = end + 1


@njit(cache=True, nogil=True)
def clustered_auc(
    codes: Array,
    cluster: Array,
    label: Array,
    tie_end: Array,
    weight: Array,
    rows_of: Array,
    value: Array,
    variance: Array,
) -> None:
    """Compute AUC and variance of each group (G,) from the rows of :func:`clustered_ranks`.

    ``rows_of`` (C, 2) holds the weighted numbers of rows by cluster and label. A cluster of weight 0 does not count.
    """
    groups = value.shape[0]
    count, part = np.zeros(2 * groups), np.zeros(rows_of.shape)
    clustered_ranks(codes, cluster, label, tie_end, weight, count, part)
    wins, squares, clusters = np.zeros(groups), np.zeros(groups), np.zeros(groups)
    for c in range(codes.shape[0]):
        wins[codes[c]] += part[c, 1]
        clusters[codes[c]] += rows_of[c, 0] + rows_of[c, 1] > 0
    for g in range(groups):
        m, n = count[2 * g + 1], count[2 * g]
        value[g] = wins[g] / (m * n) if m > 0 and n > 0 else np.nan
    for c in range(codes.shape[0]):
        g = codes[c]
        m, n, auc = count[2 * g + 1], count[2 * g], value[g]
        if m > 0 and n > 0:
            influence = (part[c, 1] / n - rows_of[c, 1] * auc) / m + (rows_of[c, 0] * (1 - auc) - part[c, 0] / m) / n
            squares[g] += influence * influence
    for g in range(groups):
        known = clusters[g] > 1 and not np.isnan(value[g])
        variance[g] = squares[g] * clusters[g] / (clusters[g] - 1) if known else np.nan


@njit(cache=True, nogil=True)
def permuted_clusters(
    seed: int,
    first: int,
    sizes: Array,
    cluster: Array,
    label: Array,
    tie_end: Array,
    weight: Array,
    rows_of: Array,
    value: Array,
    variance: Array,
) -> None:
    """Compute AUC and variance (B, G) after permutations first, first + 1, ... of the groups of whole clusters."""
    codes = np.empty(rows_of.shape[0], np.uint8)
    words = np.empty((rows_of.shape[0] + 7) // 8, np.uint64)
    for b in range(value.shape[0]):
        assign(seed, first + b, sizes, words, codes)
        clustered_auc(codes, cluster, label, tie_end, weight, rows_of, value[b], variance[b])


@njit(cache=True, nogil=True)
def permuted_products(seed: int, first: int, x: Array, y: Array, products: Array) -> None:
    """Sum x y and (x y)^2 after permutations first, first + 1, ... of the rows of y.

    ``x`` and ``y`` (n, S) hold S data sets that share each permutation; ``products`` (B, 2, S) is initially 0.
    """
    rows = np.arange(x.shape[0])
    for b in range(products.shape[0]):
        shuffle(seed, first + b, rows)
        for i in range(x.shape[0]):
            j = rows[i]
            for s in range(x.shape[1]):
                product = x[i, s] * y[j, s]
                products[b, 0, s] += product
                products[b, 1, s] += product * product


@njit(cache=True, nogil=True)
def pooled_products(seed: int, first: int, values: Array, sums: Array) -> None:
    """Shuffle 2 n values, cut them into halves u and v, and sum u, u^2 and u v.

    ``values`` (2 n, S) holds S data sets that share each shuffle; ``sums`` (B, 3, S) is initially 0.
    """
    rows = np.arange(values.shape[0])
    half = values.shape[0] // 2
    for b in range(sums.shape[0]):
        shuffle(seed, first + b, rows)
        for i in range(half):
            u, v = rows[i], rows[half + i]
            for s in range(values.shape[1]):
                sums[b, 0, s] += values[u, s]
                sums[b, 1, s] += values[u, s] * values[u, s]
                sums[b, 2, s] += values[u, s] * values[v, s]


@njit(cache=True, nogil=True)
def ranked_sums(codes: Array, label: Array, sums: Array) -> None:
    """Compute the input of ``permutation.statistics.of_moments`` for 16 samples without ties.

    ``codes`` (B, n) are groups, 0 and 1, after B permutations, the same for all samples; ``label`` (n, 16) are doubles.
    ``sums`` (B, 2, 6, 16) receives for each group the numbers of positives and negatives, the sum over positives of the
    number of negatives below, the sum of its squares, and the same two sums over negatives with the positives below.
    All are whole numbers, which doubles add without rounding.
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
