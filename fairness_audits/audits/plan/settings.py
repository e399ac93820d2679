"""Plan: how many rows does a comparison of two groups need?

Give the gap to compute the number of rows, the number of rows to compute the gap, or both to compute the power. Rates
use the exact test of `fairness-audits permutation`, unless too many outcomes are probable; such rates, the AUC and
means use the normal approximation.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from fairness_audits.options import Level, Options, Written, option
from fairness_audits.validation import Count, Number, Positive, Share, interval

EXAMPLES = """\
examples:
  How many rows detect a true positive rate of 0.70 against 0.75, if 30 % of the rows are women and 20 % positives?
    fairness-audits plan --metric tpr --value 0.75 --gap=-0.05 --shares 0.3,0.7 --of-rows 0.2

  Which gap do 5,000 rows detect?
    fairness-audits plan --metric selection_rate --value 0.4 --rows 5000

  How many rows show that equal rates differ by at most two points?
    fairness-audits plan --metric tpr --value 0.75 --of-rows 0.2 --margin 0.02
"""
POWER = 0.8
PAGE = "See docs/guide/permutation.md for details."
FILES = ("audit.json", "plan.html", "plan.csv")
WRITES = "{}, the page {} and {}"


class Question(Options, title="question"):
    metric: Literal["tpr", "fnr", "fpr", "tnr", "precision", "npv", "accuracy", "selection_rate", "auc", "mean"] = (
        option("a rate, auc, or mean (the mean of scores or errors)", "selection_rate")
    )
    value: Number = option("the metric in the second group", metavar="F")
    gap: Number | None = option("the metric in the first group minus the metric in the second", None, "D")
    rows: Count | None = option("total number of rows, divided between the groups by --shares", None, "N")
    margin: Positive | None = option("plan a test that shows that the difference is at most M", None, "M")


class Groups(Options, title="groups"):
    shares: tuple[Share, Share] | None = option("each group's share of the rows (default: half)", None, "A,B")
    of_rows: Sequence[Annotated[float, interval("(0, 1]")]] = option(
        "share of a group's rows that the metric is computed on (for tpr and the AUC, the positives). One number "
        "for both groups, or two (default: 1)",
        (1.0,),
        "A,B",
    )
    sd: Positive | None = option("standard deviation of the values of single rows, for the metric mean", None, "S")


class Test(Level, title="test"):
    power: Share | None = option(
        f"probability of rejecting equality, or of showing the margin (default: {POWER})", None
    )


class Settings(Question, Groups, Test, Written):
    """The options of a plan."""

    @property
    def wanted_power(self) -> float:
        """The power of the planned test."""
        return POWER if self.power is None else self.power
