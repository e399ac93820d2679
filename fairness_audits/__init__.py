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
from fairness_audits.audits.loss_ratio.settings import Settings as LossRatioSettings
from fairness_audits.audits.permutation import permutation_test
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


@keyworded(LossRatioSettings)
def loss_ratio(
    model: Any,
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    sensitive: ArrayLike | pd.DataFrame | None = None,
    directions: ArrayLike | None = None,
    reference: pd.DataFrame | None = None,
    **settings: Any,
) -> Result:
    r"""Test whether a model treats comparable individuals alike.

    .. math:: H_0 : E[\ell(f(\Phi(x)), y) / \ell(f(x), y)] \le \delta,

    where :math:`\Phi(x)` is a comparable individual whom the model treats worse. For a torch network, and for a linear
    model or network of scikit-learn, it is the end of a gradient flow of the loss, with a penalty on all differences
    except the sensitive ones. For any other model, such as trees, it is the person with the highest loss among people
    who differ only in columns that the fair metric permits to change.

    Source: Maity et al., "Statistical inference for individual fairness", ICLR 2021.

    Parameters
    ----------
    model : torch.nn.Module, fitted scikit-learn model, or function of a tensor, data frame or array (n, d)
        Scores (n, K) of the classes, or (n,) or (n, 1) of class 1.
    X : array-like or data frame (n, d)
        The model's inputs, from rows that were not used for training. Text columns are categories.
    y : array-like (n,)
        True classes: 0 and 1, two values of which ``positive`` names the model's class 1, or names from ``classes``.
    sensitive : array-like (n,) or data frame (n, k)
        Attributes with two levels that should make no difference. The fair metric is learned from them.
    directions : array-like (m, d), optional
        In place of ``sensitive``: displacements of X that should make no difference. The columns of a data frame are
        matched by name, those of an array by position.
    reference : data frame, optional
        Rows that are not audited, with the columns of X and of ``sensitive``. The metric is learned from them, and
        the search among whole people takes its values from them.
    %(settings)s

    Returns
    -------
    Result
        ``to_frame("examples")`` has the most unfair examples, each beside its comparable individual.

    Examples
    --------
    >>> import numpy as np, torch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = (X.sum(axis=1) + rng.logistic(size=200) > 0).astype(int)
    >>> weight = torch.ones(2, dtype=torch.float64)
    >>> loss_ratio(lambda x: x @ weight, X, y, directions=[1, 0], steps=200).outcome
    'rejected'
    """
    if (sensitive is None) == (directions is None):
        problem = (
            "the fair metric needs either sensitive attributes or directions, but you gave "
            f"{'neither' if sensitive is None else 'both'}"
        )
        raise InvalidInput(problem, option="directions", remedy="Give one of them")
    from fairness_audits.inputs.columns import Columns

    columns = Columns({"y": y}, several={"sensitive": sensitive}, X=X)
    named = {
        "features": columns.several("X"),
        "label": columns.one("y"),
        "sensitive": columns.several("sensitive"),
    }
    options = {"data": "X", "model": "", **named, **settings}
    others: dict[str, Any] = {"directions": columns.directions(directions)}
    if reference is not None:
        from fairness_audits.inputs.table import Source

        others["reference"] = Source("reference", Columns({}, {}, X=reference).frame())
    return columns.audited("loss_ratio", "X", model, options, **others)
