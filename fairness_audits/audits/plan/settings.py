"""Plan: how many rows does a comparison of two groups need, and what does it detect?

Give two of the gap, the rows and the power, and get the third. Rates are exact where outcomes are few, by the test that
`fairness-audits permutation` makes; the AUC and means take the normal law.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from fairness_audits.options import Number, Options, Output, option
from fairness_audits.validation import Count, Positive, Share, interval

EXAMPLES = """\
examples:
  How many rows show a true positive rate of .70 against .75, if 30 % are women and a fifth of all are positives?
    fairness-audits plan --metric tpr --value 0.75 --gap=-0.05 --shares 0.3,0.7 --of-rows 0.2

  Which gap do 5,000 rows detect?
    fairness-audits plan --metric selection_rate --value 0.4 --rows 5000

  How many rows show equal rates to be within two points?
    fairness-audits plan --metric tpr --value 0.75 --of-rows 0.2 --margin 0.02
"""
PAGE = "docs/guide/permutation.md explains more."
FILES = "audit.json, the page plan.html and plan.csv"


class Question(Options, title="question"):
    metric: Literal["tpr", "fnr", "fpr", "tnr", "precision", "npv", "accuracy", "selection_rate", "auc", "mean"] = (
        option("a rate, auc, or mean (of scores or errors)", "selection_rate")
    )
    value: Number = option("the metric in the second group", metavar="F")
    gap: Number | None = option("the metric in the first group minus that in the second", None, "D")
    rows: Count | None = option("rows of both groups together", None, "N")
    margin: Positive | None = option("plan for showing that the difference is at most M", None, "M")


class Groups(Options, title="groups"):
    shares: tuple[Share, Share] | None = option("share of each group among the rows (default: half)", None, "A,B")
    of_rows: Sequence[Annotated[float, interval("(0, 1]")]] = option(
        "share of a group's rows that the metric is computed on (of tpr: positives), or of an AUC the share of "
        "positives; one for both groups or two",
        (1.0,),
        "A,B",
    )
    sd: Positive | None = option("standard deviation of a row, for the metric mean", None, "S")


class Test(Options, title="test"):
    alpha: Share = option("level of the test", 0.05)
    power: Share = option("the chance to reject equality, or to show the margin", 0.8)


class Settings(Question, Groups, Test, Output):
    """The options of a plan."""
