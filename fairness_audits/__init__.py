"""Audit the fairness of a model, from arrays or data frames. Each audit is a function that returns a :class:`Result`.

The audits are :func:`permutation_test`, :func:`fliptest`, :func:`loss_ratio` and :func:`robustness_bias`. Permutation
tests also compare two versions of a model (:func:`compare`), search for the worst subgroups (:func:`worst_subgroups`)
and plan a comparison (:func:`plan`). :func:`watch` follows the rates of groups over time, and :func:`example_data`
makes a table to try the audits on.

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

from fairness_audits import metrics
from fairness_audits.audits.compare import compare
from fairness_audits.audits.fliptest import fliptest
from fairness_audits.audits.loss_ratio import loss_ratio
from fairness_audits.audits.permutation import permutation_test
from fairness_audits.audits.plan import plan
from fairness_audits.audits.robustness_bias import robustness_bias
from fairness_audits.audits.subgroups import worst_subgroups
from fairness_audits.audits.watch import watch
from fairness_audits.errors import InvalidInput
from fairness_audits.example import example_data
from fairness_audits.results.result import Result
from fairness_audits.version import __version__

__all__ = [
    "InvalidInput",
    "Result",
    "__version__",
    "compare",
    "example_data",
    "fliptest",
    "loss_ratio",
    "metrics",
    "permutation_test",
    "plan",
    "robustness_bias",
    "watch",
    "worst_subgroups",
]
