"""Compare: two versions of a model on the same rows, by group.

Takes a file with the outputs of both versions in two columns. It tests, for each metric, how much each group's metric
changes from the first version to the second, and how much the gap between groups does. Rates are tested by McNemar's
exact test.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from fairness_audits.options import Files, Number, Options, Output, option, source
from fairness_audits.validation import Count, Limit, Share, Size

EXAMPLES = """\
examples:
  Does the new version change error rates of women and men, and the gap between them?
    fairness-audits compare --predictions preds.csv --label y --versions old,new --group sex --metric tpr,fpr

  Scores of two versions, cut at one half:
    fairness-audits compare --predictions preds.csv --label y --versions p1,p2 --threshold 0.5 --group 'sex*race' \\
        --metric tpr,accuracy
"""
PAGE = "docs/guide/permutation.md explains more."
FILES = "audit.json, the page compare.html and changes.csv"


class Data(Options, title="data"):
    predictions: str = source("the rows: CSV or Parquet, a folder of such files, or a glob in quotes", metavar="FILE")
    label: str | None = source("the column with the true class, 0 or 1", None, "COLUMN", python="y")
    positive: str | None = option("the label's value that counts as 1 (where it is not 0 and 1)", None, "VALUE")
    versions: tuple[str, str] = source(
        "the columns of both versions: decisions, or scores", metavar="FIRST,SECOND", python="first and second"
    )
    threshold: Number | None = option(
        "the versions are scores: the decision is 1 where the score is at least T", None, "T"
    )


class Comparison(Options, title="comparison"):
    group: Annotated[Sequence[str], Limit("at least one", len)] = source(
        "columns whose groups are compared: A, a cross 'A*B', a cut 'A>=40'", metavar="A,B", python="group"
    )
    metric: Annotated[Sequence[str], Limit("at least one", len)] = option(
        "rates within the true class (tpr, fnr, fpr, tnr), accuracy, selection_rate, or means of scores and errors",
        metavar="NAME",
    )


class Test(Options, title="test"):
    alpha: Share = option("level of the test", 0.05)
    correct: Literal["holm", "bonferroni", "bh", "by", "none"] = option("correction for the number of tests", "holm")
    draws: Count = option("permutations, where a test is not exact", 10_000)
    seed: Size = option("seed of the permutations", 0)


class Settings(Data, Comparison, Test, Files, Output):
    """The options of a comparison of two versions."""
