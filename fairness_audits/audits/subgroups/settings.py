"""Worst subgroup: is a rate different in any intersection of columns?

Takes a file of predictions and compares a rate in every subgroup, such as "female, 25 to 34, part time", with that of
everybody else. One family of permutation tests allows for the number of subgroups and for their overlap. It prints the
subgroups with the strongest evidence, with simultaneous intervals.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from fairness_audits.options import Files, Number, Options, Output, option, source
from fairness_audits.validation import Count, Limit, Share, Size, at_least

EXAMPLES = """\
examples:
  In which crosses of age, race and sex is the true positive rate different?
    fairness-audits subgroups --predictions preds.csv --label y --prediction d --columns age,race,sex --metric tpr

  Pairs of columns, of at least 100 rows:
    fairness-audits subgroups --predictions preds.csv --label y --score p --threshold 0.5 --columns age,race,sex,work \\
        --metric fpr --depth 2 --least 100 --output audit
"""
PAGE = "docs/guide/permutation.md explains more."
FILES = "audit.json, the page subgroups.html and subgroups.csv"


class Data(Options, title="data"):
    predictions: str = source(
        "the rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes", metavar="FILE"
    )
    label: str | None = source(
        "the column with the true class, 0 or 1 (not needed for selection rates)", None, "COLUMN", python="y"
    )
    positive: str | None = option("the label's value that counts as 1 (where it is not 0 and 1)", None, "VALUE")
    score: str | None = source("the column with the model's score of class 1", None, "COLUMN")
    prediction: str | None = source("the column with the model's decision, 0 or 1", None, "COLUMN")
    threshold: Number | None = option("in place of decisions: 1 where the score is at least T", None, "T")


class Search(Options, title="search"):
    columns: Annotated[Sequence[str], Limit("at least one", len)] = source(
        "columns whose levels are crossed", metavar="A,B,C", python="columns"
    )
    metric: Literal["tpr", "fnr", "fpr", "tnr", "precision", "npv", "accuracy", "selection_rate", "base_rate"] = option(
        "the rate", "selection_rate"
    )
    depth: Count = option("columns that are crossed at most", 3)
    least: Count = option("rows of the rate that a subgroup has at least", 20)
    bins: Annotated[int, at_least(2)] = option("numbers with more than 12 values are cut into so many groups", 5)


class Test(Options, title="test"):
    alpha: Share = option("chance of any false rejection", 0.05)
    draws: Count = option("joint permutations", 1000)
    seed: Size = option("seed of the permutations", 0)


class Settings(Data, Search, Test, Files, Output):
    """The options of the search for the worst subgroup."""
