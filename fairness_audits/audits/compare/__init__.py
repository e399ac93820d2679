"""Compare two versions of a model on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from fairness_audits.arguments import UNNAMED, Given, audit
from fairness_audits.validation import Count, Names, Number, Positive, Share, Size

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result


@audit(one={"y": "label"}, several={"group": "group"}, python=("first", "second", "cross", "data"))
def compare(
    y: ArrayLike | None = None,
    *,
    first: ArrayLike,
    second: ArrayLike,
    group: ArrayLike | pd.DataFrame | None = None,
    data: Any = None,
    cross: bool = False,
    reference: Sequence[str] = (),
    positive: str | None = None,
    threshold: Number | None = None,
    metric: Names,
    alpha: Share = 0.05,
    seed: Size = 0,
    correct: Literal["holm", "bonferroni", "bh", "by", "none"] = "holm",
    draws: Count = 10_000,
    no_worse_than: Positive | None = None,
) -> Result:
    r"""Test how a metric changes between two versions of a model: in each group and in gaps between groups, or overall.

    .. math:: \Delta_g = f_g^{(2)} - f_g^{(1)},

    .. math:: \Delta_A - \Delta_B = (f_A - f_B)^{(2)} - (f_A - f_B)^{(1)}.

    Both versions predict the same rows. The tests of a change within a group are Kosinski's score test for precision
    and negative predictive value, McNemar's exact test for other rates, DeLong's test for the AUC, and random signs for
    means. The test of a change of a gap uses the normal approximation for precision, negative predictive value and the
    AUC. For other metrics, it permutes the rows' changes between groups. With ``no_worse_than``, the outcome is whether
    one-sided bounds show that no group gets worse, and no gap grows, by more than this margin.

    Parameters
    ----------
    y : array-like (n,), optional
        True classes: 0 and 1, or values of which ``positive`` names the positive class.
    first, second : array-like (n,)
        Decisions of both versions: 0 and 1, or the two values of the label; or scores.
    group : array-like (n,) or data frame (n, k), optional
        Groups to compare, in one or more columns (default: only the change over all rows).
    data : data frame or path, optional
        Rows in a frame of pandas, polars, Arrow, DuckDB or Spark, or in CSV or Parquet files. The arrays are then names
        of its columns.
    cross : bool, default False
        Compare the intersections of the columns of ``group``.
    reference : list of str, default ()
        The reference group of each column. The gap of every other group is that to the reference (default: with more
        than two groups, the gap of each group to all others).
    positive : str, optional
        The label's value that counts as 1 (needed unless labels are 0 and 1).
    threshold : float, optional
        Read both versions as scores: the decision is 1 if the score is at least this.
    metric : str or list of str
        Rates (tpr, fpr, precision, accuracy, selection_rate, ...), auc, or means of scores and errors.
    alpha : float in (0, 1), default 0.05
        Level of the test.
    seed : int, default 0
        Random seed of the permutations.
    correct : {"holm", "bonferroni", "bh", "by", "none"}, default "holm"
        Correction for multiple tests.
    draws : int, default 10000
        Number of permutations for tests that are not exact (default: 10000, or as many as the correction needs). It is
        an error if they are too few to reject.
    no_worse_than : float, optional
        The outcome is whether it is shown that no group gets worse by more than this and no gap grows by more than this
        (0.02: two percentage points), refuted, or neither (default: whether any change is significant).

    Returns
    -------
    Result
        ``to_frame()`` has a row for each gap and each group, gaps first; without groups, one for each metric.

    Examples
    --------
    >>> y, group = [1] * 400, ["f", "m"] * 200
    >>> old = [0, 1, 1, 1] * 100
    >>> changes = compare(y, first=old, second=[1] * 400, group=group, metric="tpr", draws=199).to_frame()
    >>> print(changes[["what", "first", "second", "rejected"]].to_string(index=False))
         what  first  second  rejected
    gap f - m   -0.5     0.0      True
            f    0.5     1.0      True
            m    1.0     1.0     False
    """
    from fairness_audits.audits.compare.result import audited
    from fairness_audits.inputs.columns import Columns

    given = Given(compare, locals())
    found = Columns({"y": y, "first": first, "second": second}, several={"group": group}, data=data)
    groups, derived = found.groups(cross)
    named = found.name_in(given, predictions=UNNAMED, versions=(found.one("first"), found.one("second")))
    with found.opened(derived) as table:
        return audited(named.but(group=groups), table)
