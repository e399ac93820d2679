"""Random orders of rows."""

import numpy as np

from fairness_audits.values import Array


def stratified_order(label: Array, rng: np.random.Generator) -> Array:
    """Return row numbers (n,) in a random order whose prefixes are all stratified by ``label`` (n,) of C classes.

    The rows of a class are spread evenly in random order: the j-th of n_c has the key (j + 1/2) / n_c, ties at random.
    Among the first m rows the number of class c therefore differs from m n_c / n by at most 1/2 + C n_c / (2 n). A
    smaller subset is a prefix of a larger one.
    """
    order = rng.permutation(len(label))
    classes = label[order]
    counts = np.bincount(classes)
    grouped = np.argsort(classes, kind="stable")
    rank = np.empty(len(label))
    rank[grouped] = np.arange(len(label)) - (np.cumsum(counts) - counts)[classes[grouped]]
    return order[np.argsort((rank + 0.5) / counts[classes], kind="stable")]
