"""Find the worst subgroup: a rate in every intersection of columns, with one family of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fairness_audits.arguments import UNNAMED, Given, audit
from fairness_audits.validation import Count, Number, Positive, Share, Size, at_least

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result

Rate = Literal["tpr", "fnr", "fpr", "tnr", "precision", "npv", "accuracy", "selection_rate", "base_rate"]


@audit(
    one={"y": "label", "score": "score", "prediction": "prediction"}, several={"columns": "columns"}, python=("data",)
)
def worst_subgroups(
    columns: ArrayLike | pd.DataFrame,
    y: ArrayLike | None = None,
    score: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    *,
    data: Any = None,
    positive: str | None = None,
    threshold: Number | None = None,
    metric: Rate = "selection_rate",
    depth: Count = 3,
    least: Count = 20,
    bins: Annotated[int, at_least(2)] = 5,
    alpha: Share = 0.05,
    draws: Count = 1000,
    width: Positive = 0.2,
    seed: Size = 0,
) -> Result:
    r"""Test in which intersections of columns a rate differs from the rate of all other rows.

    The statistic T of a subgroup S is its standardised number of events. Joint permutations compare T with the largest
    statistic of all subgroups, in the step-down form:

    .. math:: p_S = \frac{1 + \#\{b : \max_{S'} |T^*_{S'}| \ge |T_S|\}}{B + 1}.

    If the rate is the same everywhere, the probability of any false rejection is at most alpha.

    Source: Westfall and Young, "Resampling-based multiple testing", 1993, algorithm 4.1.

    Parameters
    ----------
    columns : array-like (n,) or data frame (n, k)
        Columns whose levels are crossed. Numbers with many values are cut into bins.
    y : array-like (n,), optional
        True classes: 0 and 1, or values of which ``positive`` names the positive class.
    score : array-like (n,), optional
        Scores of class 1; give ``threshold`` to derive decisions from them.
    prediction : array-like (n,), optional
        Decisions: 0 and 1, or the two values of the label.
    data : data frame or path, optional
        Rows in a frame of pandas, polars, Arrow, DuckDB or Spark, or in CSV or Parquet files. The arrays are then names
        of its columns.
    positive : str, optional
        The label's value that counts as 1 (needed unless labels are 0 and 1).
    threshold : float, optional
        Makes decisions from scores: 1 if the score is at least this.
    metric : str, default "selection_rate"
        The rate.
    depth : int, default 3
        Largest number of columns that are intersected.
    least : int, default 20
        Smallest number of rows that the rate of a subgroup is computed on.
    bins : int, default 5
        Number of bins for a numeric column with more than 12 values.
    alpha : float in (0, 1), default 0.05
        Probability of any false rejection.
    draws : int, default 1000
        Number of joint permutations.
    width : float, default 0.2
        If nothing is rejected, the outcome is inconclusive if the interval of any subgroup is wider.
    seed : int, default 0
        Random seed of the permutations.

    Returns
    -------
    Result
        ``to_frame()`` has a row for each subgroup: significant ones first, the worst first. The worst subgroup is the
        one whose interval shows the largest difference from all other rows for certain (``at_least``).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rows = pd.DataFrame({"sex": np.arange(800) % 2, "town": np.arange(800) // 2 % 2})
    >>> decision = np.where((rows["sex"] == 1) & (rows["town"] == 1), 0, np.arange(800) // 4 % 2)
    >>> worst_subgroups(rows, prediction=decision, draws=199).to_frame()["subgroup"][0]
    'sex 1, town 1'
    """
    from fairness_audits.audits.subgroups.result import audited
    from fairness_audits.inputs.columns import Columns

    given = Given(worst_subgroups, locals())
    found = Columns({"y": y, "score": score, "prediction": prediction}, several={"columns": columns}, data=data)
    with found.opened() as table:
        return audited(found.name_in(given, predictions=UNNAMED), table)
