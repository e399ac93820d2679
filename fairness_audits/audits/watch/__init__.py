"""Watch the rates of groups over time: evidence that holds at whatever time one looks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fairness_audits.arguments import UNNAMED, Given, audit
from fairness_audits.validation import Number, Positive, Share

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairness_audits.results.result import Result


@audit(one={"y": "label", "score": "score", "prediction": "prediction"}, several={"group": "group"}, python=("cross",))
def watch(
    y: ArrayLike | None = None,
    score: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    *,
    state: Path | str,
    batch: str | None = None,
    positive: str | None = None,
    threshold: Number | None = None,
    group: ArrayLike | pd.DataFrame | None = None,
    cross: bool = False,
    metric: Sequence[str] = (),
    alpha: Share | None = None,
    margin: Positive | None = None,
    width: Positive = 0.2,
) -> Result:
    r"""Add a batch of predictions to a watch, and say what all batches together show.

    A test that is repeated every week goes wrong every few months. A watch has one error for its whole life: the
    probability that it *ever* shows a difference between groups with equal rates is at most alpha. You may look after
    every batch, stop whenever you like, and continue later.

    .. math:: H_0 : \theta_{At} = \theta_{Bt} \text{ in every batch } t, \qquad
              P_{H_0}\left(\sup_T E_T \ge \frac{1}{\alpha}\right) \le \alpha.

    The e-process E is the capital of bets on the difference. A confidence sequence covers the average difference at all
    times at once. Both allow the rates and the shares of the groups to change over time.

    Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024.

    Parameters
    ----------
    y : array-like (n,), optional
        True classes: 0 and 1, or values of which ``positive`` names the positive class.
    score : array-like (n,), optional
        Scores of class 1; give ``threshold`` to derive decisions from them.
    prediction : array-like (n,), optional
        Decisions: 0 and 1, or the two values of the label.
    state : path
        JSON file of the watch. The first batch creates it, and every batch is added to it. Without rows, the audit
        shows the state as it is.
    batch : str, optional
        Name of the batch, needed with rows. Names must ascend, such as dates (2026-01-31) or numbers (week 10).
    positive : str, optional
        The label's value that counts as 1 (needed unless labels are 0 and 1).
    threshold : float, optional
        Makes decisions from scores: 1 if the score is at least this.
    group : array-like (n,) or data frame (n, k), optional
        Groups to compare, in one or more columns. With more than two groups, each is compared with all others.
    cross : bool, default False
        Compare the intersections of the columns of ``group``.
    metric : str or list of str
        Rates (selection_rate, tpr, fpr, precision, accuracy, ...) or equalized_odds. Later batches may leave this and
        other options of the first batch out, but not change them.
    alpha : float in (0, 1), optional
        Probability of ever showing a difference that does not exist, over all comparisons (default: 0.05).
    margin : float, optional
        The outcome is whether the differences are within this (0.02: two percentage points), beyond it, or neither. It
        may change from batch to batch.
    width : float, default 0.2
        Without a margin, the outcome is inconclusive if no difference is shown and a confidence sequence is wider.

    Returns
    -------
    Result
        ``to_frame()`` has a row for each comparison: shown ones first, the largest difference first.
        ``to_frame("batches")`` has one for each comparison and batch.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for week in range(1, 4):
    ...         decision = [1, 1, 1, 0] * 50 + [1, 0, 0, 0] * 40 + [0] * week
    ...         rows = {"prediction": decision, "group": ["m"] * 200 + ["f"] * (160 + week)}
    ...         result = watch(**rows, metric="selection_rate", state=f"{folder}/watch.json", batch=f"week {week}")
    >>> result.outcome, result.facts["results"][0]["since"]
    ('rejected', 'week 1')
    """
    from fairness_audits.audits.watch.result import audited, checksum
    from fairness_audits.inputs.columns import Columns

    given = Given(watch, locals())
    found = Columns({"y": y, "score": score, "prediction": prediction}, several={"group": group})
    groups, derived = found.groups(cross)
    frame = found.frame()
    named = found.name_in(given, predictions=None if frame.columns.empty else UNNAMED).but(group=groups)
    if frame.columns.empty:
        return audited(named)
    with found.opened(derived) as table:
        return audited(named, table, checksum(frame))
