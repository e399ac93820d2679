"""Synthetic twins: rows drawn from a small fitted model, for when the official file cannot be had.

There are three kinds (:mod:`pipeline.datasets.twins.kinds`): by levels, for categories and whole numbers, which is
described here; a Gaussian copula for continuous columns (:mod:`pipeline.datasets.twins.copula`); and, where official
rows have not been seen, one made of public counts and of assumptions (:mod:`pipeline.datasets.twins.subjects`).

A twin by levels draws the columns of a parsed dataset one after the other:

    c ~ table of the root columns (the protected attributes and the label together)
    P(x_j = k | c, x_1 .. x_{j-1}) = softmax_k( b_jk + A_j[c, k] + sum_{i<j} W_ij[x_i, k] )

Every column is a finite set of levels: a category, a single frequent number, or an interval of numbers [lo, hi] in
which x = lo + (hi - lo) U^((1 - m)/m), U uniform, has the interval's own mean, m = (mean - lo) / (hi - lo).

Each softmax is a multinomial logistic regression with a small L2 penalty on one-hot predecessors. At its optimum, up to
the penalty, the expected count of every pair (level of x_j, level of x_i) and (level of x_j, cell c) equals the
observed one: two-way tables, and the table of each column by sex, race and label, are kept by construction. What is
*not* kept is structure among three or more columns beyond what follows from that.

The model was chosen by measurement on Adult. Mean absolute error of Cramer's V over all pairs of columns: .003 for this
model, .026 for a Gaussian copula within the cells of the root table, .034 for independent columns within the cells (the
last two without native-country). AUC on real rows of a logistic regression trained on the twin: .902, .898 and .897;
trained on real rows, .903.

What may be stored about the people behind the data is the subject of :mod:`pipeline.datasets.twins.preserved`.
"""
