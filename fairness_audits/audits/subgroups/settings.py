"""Worst subgroup: in which intersection of columns does a rate differ most?

Takes a file of predictions and compares the rate in each subgroup, such as "female, 25 to 34, part time", with the rate
of all other rows. One joint permutation test accounts for the number of subgroups and their overlap. The
command prints the subgroups and their simultaneous intervals, starting with the subgroups that are worse than all other
rows.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from fairness_audits.options import Decisions, Files, Options, Output, Seed, option, source
from fairness_audits.validation import Count, Limit, Positive, Share, at_least

EXAMPLES = """\
examples:
  In which intersections of age, race and sex is the true positive rate different?
    fairness-audits subgroups --predictions preds.csv --label y --prediction d --columns age,race,sex --metric tpr

  Intersections of at most two columns, with at least 100 rows:
    fairness-audits subgroups --predictions preds.csv --label y --score p --threshold 0.5 --columns age,race,sex,work \\
        --metric fpr --depth 2 --least 100 --output audit
"""
PAGE = "See docs/guide/permutation.md for details."
FILES = ("audit.json", "subgroups.html", "subgroups.csv")
WRITES = "{}, the page {} and {}"


class Search(Options, title="search"):
    columns: Annotated[Sequence[str], Limit("(at least one)", len)] = source(
        "columns whose levels define the subgroups", metavar="A,B,C", python="columns"
    )
    metric: Literal["tpr", "fnr", "fpr", "tnr", "precision", "npv", "accuracy", "selection_rate", "base_rate"] = option(
        "the rate", "selection_rate"
    )
    depth: Count = option("largest number of columns that are intersected", 3)
    least: Count = option("smallest number of rows that the rate of a subgroup is computed on", 20)
    bins: Annotated[int, at_least(2)] = option("number of bins for a numeric column with more than 12 values", 5)


class Test(Seed, title="test"):
    alpha: Share = option("probability of any false rejection", 0.05)
    draws: Count = option("number of joint permutations", 1000)
    width: Positive = option(
        "if nothing is rejected, the outcome is inconclusive if the interval of any subgroup is wider than W", 0.2, "W"
    )


class Settings(Decisions, Search, Test, Files, Output):
    """The options of the search for the worst subgroup."""
