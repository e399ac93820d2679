"""Audit the fairness of a model, from arrays or data frames. Each audit is a function that returns a :class:`Result`.

The audits are :func:`permutation_test`, :func:`fliptest`, :func:`loss_ratio` and :func:`robustness_bias`. Permutation
tests also compare two versions of a model (:func:`compare`), search for the worst subgroups (:func:`worst_subgroups`)
and plan a comparison (:func:`plan`).

>>> import fairness_audits as fa
>>> y = [0, 1, 0, 1] * 50
>>> result = fa.permutation_test(y, prediction=y, group=["a", "a", "b", "b"] * 50, metric="tpr")
>>> result.outcome
'not rejected'

Arguments are lists, arrays (NumPy, torch, or sparse SciPy arrays, which are converted to dense arrays), and series or
data frames of pandas, polars, Arrow, DuckDB or any other library that narwhals supports. *pandas objects with the same
index labels are aligned by label. All other arguments are aligned by position. Ambiguous combinations raise an error.*
In particular:

- If pandas arguments have the same labels in different orders, all are sorted like X, otherwise like y, otherwise like
  the first of them.
- An array raises an error if pandas arguments have labels in two orders, because it may follow either order. Give it an
  index: ``pd.Series(score, index=X.index)``.
- Labels that agree only in part raise an error. After a split of the rows, give predictions the index of their rows:
  ``pd.Series(model.predict(X_test), index=X_test.index)``.

Columns keep their names. If a name occurs twice, results add the name of the argument: ``age (y)``. NaN, None, NaT and
pandas' NA are missing values. So are their texts in a NumPy array of text: ``np.array(["a", np.nan])`` contains "nan".

A result has ``.outcome`` (``"rejected"``, ``"not rejected"`` or ``"inconclusive"``), ``.summary()`` in words,
``.to_frame()``, ``.to_dict()``, ``.figure()``, and ``.save(folder)``. In a notebook it displays its HTML page. The
command ``fairness-audits`` runs the same audits on files; see ``fairness-audits --help``.

An input that cannot be used raises :class:`InvalidInput`, a ValueError that names the argument, column and row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairness_audits import metrics
from fairness_audits.audits.compare import compare
from fairness_audits.audits.fliptest import fliptest
from fairness_audits.audits.loss_ratio import loss_ratio
from fairness_audits.audits.permutation.settings import Settings as PermutationSettings
from fairness_audits.audits.plan import plan
from fairness_audits.audits.robustness_bias import robustness_bias
from fairness_audits.audits.subgroups import worst_subgroups
from fairness_audits.calls import keyworded
from fairness_audits.errors import InvalidInput
from fairness_audits.results.result import Result
from fairness_audits.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

__all__ = [
    "InvalidInput",
    "Result",
    "__version__",
    "compare",
    "fliptest",
    "loss_ratio",
    "metrics",
    "permutation_test",
    "plan",
    "robustness_bias",
    "worst_subgroups",
]


@keyworded(PermutationSettings)
def permutation_test(
    y: ArrayLike | None = None,
    score: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    *,
    group: ArrayLike | pd.DataFrame | None = None,
    attribute: ArrayLike | pd.DataFrame | None = None,
    cluster: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    cross: bool = False,
    **settings: Any,
) -> Result:
    r"""Test whether a metric f differs between groups by more than chance.

    .. math:: H_0 : f_A = f_B, \qquad T = (f_A - f_B) / \sqrt{v_A + v_B}.

    The groups may differ in everything else. Rates are tested exactly, unless rows have clusters or weights. All other
    tests use permutations of the studentised difference T.

    Source: DiCiccio et al., "Evaluating fairness using permutation tests", KDD 2020.

    Parameters
    ----------
    y : array-like (n,), optional
        True classes: 0 and 1, or values of which ``positive`` names the positive class. Selection rates need no ``y``.
    score : array-like (n,), optional
        Scores or probabilities of class 1.
    prediction : array-like (n,), optional
        Decisions, 0 and 1 or the two values of ``y``. Alternatively, ``threshold`` derives them from the scores.
    group : array-like (n,) or data frame (n, k)
        Groups to compare, in one or more columns.
    attribute : array-like (n,) or data frame (n, k), optional
        Numeric attributes for the metric ``correlation``, the correlation of the score with an attribute.
    cluster : array-like (n,), optional
        The person or other unit that each row belongs to. Rows of a unit are permuted together.
    weight : array-like (n,), optional
        Weights of the rows, such as survey weights; at least 0.
    cross : bool, default False
        Compare the intersections of the columns of ``group``, such as "female & black".
    %(settings)s

    Returns
    -------
    Result
        ``to_frame()`` has a row for each test: significant ones first, the largest difference first.
        ``to_frame("groups")`` has one for each group, the worst first.

    Examples
    --------
    >>> y = [1, 1, 1, 1, 0] * 40
    >>> decision = [1, 1, 1, 0, 0] * 20 + [1, 0, 0, 0, 0] * 20
    >>> group = ["m"] * 100 + ["f"] * 100
    >>> result = permutation_test(y, prediction=decision, group=group, metric="tpr")
    >>> result
    <Permutation audit of the predictions: rejected>
    >>> table = result.to_frame()[["name_a", "estimate_a", "name_b", "estimate_b", "higher"]]
    >>> print(table.to_string(index=False))
    name_a  estimate_a name_b  estimate_b higher
         f        0.25      m        0.75      m
    """
    from fairness_audits.audits.permutation.arrays import of_arrays

    single = {"y": y, "score": score, "prediction": prediction, "cluster": cluster, "weight": weight}
    return of_arrays(single, {"group": group, "attribute": attribute}, cross, **settings)
