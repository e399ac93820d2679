r"""Permutation tests of the difference of a metric between groups: valid for any metric, exact where possible.

- One test: ``core.permutation_test`` takes ``outcomes.Predictions`` or ``outcomes.Counts`` and returns a
  ``PermutationTest``; ``pairs.largest_t`` tests every pair of groups; ``correlation.correlation_test`` tests a
  continuous attribute; ``power.sample_size`` computes the number of rows needed; ``samples`` tests many samples at
  once.
- Internals: ``metrics``; ``exact`` for enumerated distributions; ``strata`` and ``matched`` for comparisons within
  strata and within pairs; ``resamplers`` for random permutations (of counts in ``draws``, of rows in ``rows``);
  ``monte_carlo`` for their p-values; ``intervals``, one function for each estimator, and ``doubts``, what widens them.
- The user's audit: :func:`permutation_test`, ``asked`` (its options), ``compute`` (from a table to tests),
  ``result`` and ``within`` (its strata).

Source: DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal 2020, "Evaluating fairness using permutation tests".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fairness_audits.arguments import UNNAMED, Given, audit
from fairness_audits.validation import Count, Number, OneOrMore, Positive, Share, Size, not_empty

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result

Metrics = Annotated[OneOrMore[str | Callable[..., Any]], not_empty]
Correction = Literal["holm", "max-t", "bonferroni", "bh", "by", "none"]


@audit(
    one={
        "y": "label",
        "score": "score",
        "prediction": "prediction",
        "cluster": "cluster",
        "weight": "weight",
        "matched": "matched",
    },
    several={"group": "group", "within": "within", "attribute": "attribute"},
    python=("cross", "data"),
)
def permutation_test(
    y: ArrayLike | None = None,
    score: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    *,
    data: Any = None,
    positive: str | None = None,
    threshold: Number | None = None,
    top: Count | Share | None = None,
    regression: bool = False,
    cluster: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    group: ArrayLike | pd.DataFrame | None = None,
    cross: bool = False,
    reference: Sequence[str] = (),
    pairs: bool = False,
    within: ArrayLike | pd.DataFrame | None = None,
    matched: ArrayLike | None = None,
    attribute: ArrayLike | pd.DataFrame | None = None,
    metric: Metrics,
    score_bins: Count | None = None,
    method: Literal["auto", "exact", "studentized", "unstudentized"] = "auto",
    alternative: Literal["two-sided", "equal-tailed", "greater", "less"] | None = None,
    correct: Correction = "holm",
    draws: Count | None = None,
    resampling_risk: Share | None = None,
    alpha: Share = 0.05,
    seed: Size = 0,
    margin: Positive | None = None,
    ratio: bool = False,
    at_least: Share | None = None,
    width: Positive | None = None,
) -> Result:
    r"""Test whether a metric f differs between groups by more than chance.

    .. math:: H_0 : f_A = f_B, \qquad T = (f_A - f_B) / \sqrt{v_A + v_B}.

    The groups may differ in everything else. Rates are tested exactly, unless rows have clusters or weights. All other
    tests use permutations of the studentised difference T.

    Source: DiCiccio et al., "Evaluating fairness using permutation tests", KDD 2020.

    Parameters
    ----------
    y : array-like (n,), optional
        True classes: 0 and 1, or values of which ``positive`` names the positive class. Selection rates do not need
        them.
    score : array-like (n,), optional
        Scores or probabilities of class 1.
    prediction : array-like (n,), optional
        Decisions: 0 and 1, or the two values of the label. Alternatively, ``threshold`` or ``top`` derives them from
        the scores.
    data : data frame or path, optional
        Rows in a frame of pandas, polars, Arrow, DuckDB or Spark, or in CSV or Parquet files. The arrays are then names
        of its columns, and rows are counted where they are: a lazy frame of polars, DuckDB or Spark is not collected if
        counts are enough.
    positive : str, optional
        The label's value that counts as 1 (needed unless labels are 0 and 1).
    threshold : float, optional
        Makes decisions from scores: 1 if the score is at least this.
    top : int or float in (0, 1), optional
        Makes decisions from a ranking of all rows by score: 1 for this many rows with the highest scores, or for this
        share of the rows. Rows that tie with the last of them are decided alike, so more rows may be selected.
    regression : bool, default False
        The label is a number that the score predicts. Means of scores and errors are compared.
    cluster : array-like (n,), optional
        The person or other unit that each row belongs to. Rows of a unit are permuted together.
    weight : array-like (n,), optional
        Weights of the rows, such as survey weights; at least 0. Tests of rates are then studentised instead of exact.
    group : array-like (n,) or data frame (n, k)
        Groups to compare, in one or more columns.
    cross : bool, default False
        Compare the intersections of the columns of ``group``, such as "female, black".
    reference : list of str, default ()
        The reference group of each column. Every other group is compared with it (default: each group is compared with
        all others together; two groups with each other).
    pairs : bool, default False
        Compare all pairs of groups (default: each group with all others together; with ``ratio``, all pairs).
    within : array-like (n,) or data frame (n, k), optional
        Columns of strata, such as the occupation. Rates are compared within the same stratum: a stratified exact test,
        and the common difference (or with ``ratio``, the common ratio) over all strata.
    matched : array-like (n,), optional
        The pair of each row, such as the prompt: rows of a pair lie in different groups and are otherwise the same.
        Rates and means are compared within pairs, by McNemar's exact test or by random signs. Clusters may hold whole
        pairs of all groups.
    attribute : array-like (n,) or data frame (n, k), optional
        Numeric attributes for the metric ``correlation``, the correlation of the score with an attribute.
    metric : str, function, or list of them
        auc, tpr, selection_rate, f1, equalized_odds, calibration, exposure, ... (docs/guide/metrics.md lists all), or
        your own function (y, score, weight).
    score_bins : int, optional
        Number of bins of the score for the metric ``calibration``: the rates of positive labels are compared within
        bins that hold equally many of all rows (default: the cube root of the number of rows, so that scores within a
        bin are alike).
    method : {"auto", "exact", "studentized", "unstudentized"}, default "auto"
        auto: exact for rates, otherwise studentized. unstudentized: for comparison only.
    alternative : {"two-sided", "equal-tailed", "greater", "less"}, optional
        greater: the metric is larger in the first group. less: it is smaller. two-sided: the absolute value of T is
        large, as published. equal-tailed: twice the smaller of both one-sided p-values (default: equal-tailed for
        permuted statistics; two-sided for exact tests, correlations and max-t).
    correct : {"holm", "max-t", "bonferroni", "bh", "by", "none"}, default "holm"
        Correction for multiple tests, over all tests of the run. max-t (largest absolute T, step-down) corrects over
        the pairs of each metric.
    draws : int, optional
        Number of permutations (default: 10000, or as many as the correction needs). It is an error if they are too few
        to reject after the correction.
    resampling_risk : float in (0, 1), optional
        Stop drawing when the probability that more draws change the decision is at most this, such as 0.001.
    alpha : float in (0, 1), default 0.05
        Level of the test.
    seed : int, default 0
        Random seed of the permutations.
    margin : float, optional
        Test equivalence: the outcome is whether the differences are shown to be at most this (0.02: two percentage
        points), shown to be larger, or neither.
    ratio : bool, default False
        Compare the rates of all pairs of groups by their ratio, lowest to highest (impact ratio). With ``reference``,
        it is the ratio of each group to the reference. The outcome is whether the ratio in both directions is shown to
        be at least ``at_least``, shown to be smaller, or neither.
    at_least : float in (0, 1), optional
        The smallest acceptable ratio, for ``ratio`` (default: 0.8, the four-fifths rule).
    width : float, optional
        The outcome is inconclusive if equality is not rejected and the interval is wider than this (default: 0.2 for
        rates, no limit for other metrics).

    Returns
    -------
    Result
        ``to_frame()`` has a row for each test: significant ones first, the interval farthest from 0 first.
        ``to_frame("groups")`` has one for each group: the worst first, and those with few rows last. With ``within``,
        ``to_frame("strata")`` has one for each stratum of each test. For ``calibration``, ``to_frame("curve")`` has one
        for each group and bin.

    Examples
    --------
    >>> y = [1, 1, 1, 1, 0] * 40
    >>> decision = [1, 1, 1, 0, 0] * 20 + [1, 0, 0, 0, 0] * 20
    >>> group = ["m"] * 100 + ["f"] * 100
    >>> result = permutation_test(y, prediction=decision, group=group, metric="tpr")
    >>> result
    <Permutation audit of the predictions: a difference is shown>
    >>> table = result.to_frame()[["name_a", "estimate_a", "name_b", "estimate_b", "higher"]]
    >>> print(table.to_string(index=False))
    name_a  estimate_a name_b  estimate_b higher
         f        0.25      m        0.75      m
    """
    from fairness_audits.audits.permutation.asked import asked_by
    from fairness_audits.audits.permutation.result import audited
    from fairness_audits.inputs.columns import Columns

    given = Given(permutation_test, locals())
    single = {"y": y, "score": score, "prediction": prediction, "cluster": cluster, "weight": weight}
    single |= {"matched": matched}
    several = {"group": group, "within": within, "attribute": attribute}
    columns = Columns(single, several=several, data=data)
    groups, derived = columns.groups(cross)
    asked = asked_by(columns.name_in(given, predictions=UNNAMED).but(group=groups))
    with columns.opened(derived) as table:
        return audited(asked, table)
