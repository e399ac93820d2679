"""Plan a comparison: rows, power, and the detectable gap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fairness_audits.arguments import Given, audit
from fairness_audits.validation import Count, Number, OneOrMore, Positive, Share, interval

if TYPE_CHECKING:
    from fairness_audits.results.result import Result

Metric = Literal["tpr", "fnr", "fpr", "tnr", "precision", "npv", "accuracy", "selection_rate", "auc", "mean"]


@audit()
def plan(
    *,
    metric: Metric = "selection_rate",
    value: Number,
    gap: Number | None = None,
    rows: Count | None = None,
    margin: Positive | None = None,
    shares: tuple[Share, Share] | None = None,
    of_rows: OneOrMore[Annotated[float, interval("(0, 1]")]] = (1.0,),
    sd: Positive | None = None,
    alpha: Share = 0.05,
    power: Share | None = None,
) -> Result:
    r"""Compute how many rows a comparison of two groups needs, or which difference it detects.

    Give the gap to compute the number of rows, the number of rows to compute the gap, or both to compute the power. If
    the groups are not too large, the power of the test of a rate by :func:`permutation_test` is exact,

    .. math:: \sum_{x_A, x_B} P(x_A; m_A, f_A) \, P(x_B; m_B, f_B) \, 1[\text{rejected}].

    Large groups, the AUC and means use the normal approximation.

    Parameters
    ----------
    metric : str, default "selection_rate"
        A rate, ``auc``, or ``mean`` (the mean of scores or errors).
    value : float
        The metric in the second group.
    gap : float, optional
        The metric in the first group minus the metric in the second.
    rows : int, optional
        Total number of rows, divided between the groups by ``shares``.
    margin : float, optional
        Plan a test that shows that the difference is at most this.
    shares : (float, float), optional
        Each group's share of the rows (default: half).
    of_rows : list of float, default (1.0,)
        Share of a group's rows that the metric is computed on (for tpr and the AUC, the positives). One number for both
        groups, or two (default: 1).
    sd : float, optional
        Standard deviation of the values of single rows, for the metric ``mean``.
    alpha : float in (0, 1), default 0.05
        Level of the test.
    power : float, optional
        Probability of rejecting equality, or of showing the margin (default: 0.8).

    Returns
    -------
    Result
        ``facts`` has ``rows``, ``power`` and ``gap``, or ``gap_below`` and ``gap_above``.

    Examples
    --------
    >>> plan(metric="tpr", value=0.8, gap=-0.2).facts["rows"]
    179
    """
    from fairness_audits.audits.plan.result import planned

    return planned(Given(plan, locals()))
