"""Compare: how does a new version of a model change the metrics of each group?

Takes a file with the outputs of both versions in two columns, on the same rows. For each metric, it tests how each
group's metric changes from the first version to the second, and how the gap between groups changes. The tests of a
change within a group are Kosinski's score test for precision and negative predictive value, McNemar's exact test for
other rates, DeLong's test for the AUC, and random signs for means.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from fairness_audits.options import Files, Level, Options, Output, Predictions, Seed, option, source
from fairness_audits.validation import Count, Limit, Number, Positive

EXAMPLES = """\
examples:
  Does the new version change the error rates of women and men, and the gap between them?
    fairness-audits compare --predictions preds.csv --label y --versions old,new --group sex --metric tpr,fpr

  Scores of two versions, cut at one half:
    fairness-audits compare --predictions preds.csv --label y --versions p1,p2 --threshold 0.5 --group 'sex*race' \\
        --metric tpr,accuracy

  May the new version replace the old one? With --gate, a build stops unless it is shown that no group is worse by more
  than two points and that no gap grows by more than two points:
    fairness-audits compare --predictions preds.csv --label y --versions old,new --group sex --metric tpr,fpr \\
        --no-worse-than 0.02 --gate
"""
PAGE = "See docs/guide/permutation.md for details."
FILES = ("audit.json", "compare.html", "changes.csv")
WRITES = "{}, the page {} and {}"


DRAWS = 10_000


class Data(Predictions, title="data"):
    versions: tuple[str, str] = source(
        "the two columns with decisions or scores, one for each version",
        metavar="FIRST,SECOND",
        python="first and second",
    )
    threshold: Number | None = option(
        "read both columns as scores: the decision is 1 if the score is at least T", None, "T"
    )


class Comparison(Options, title="comparison"):
    group: Annotated[Sequence[str], Limit("(at least one)", len)] = source(
        "the groups: levels of a column A, intersections 'A*B', or both sides of a cut 'A>=40'",
        metavar="A,B",
        python="group",
    )
    metric: Annotated[Sequence[str], Limit("(at least one)", len)] = option(
        "rates (tpr, fpr, precision, accuracy, selection_rate, ...), auc, or means of scores and errors",
        metavar="NAME",
    )


class Test(Level, Seed, title="test"):
    correct: Literal["holm", "bonferroni", "bh", "by", "none"] = option("correction for multiple tests", "holm")
    draws: Count = option(
        f"number of permutations for tests that are not exact (default: {DRAWS}, or as many as the correction needs). "
        "It is an error if they are too few to reject",
        DRAWS,
    )


class Conclusion(Options, title="conclusion"):
    no_worse_than: Positive | None = option(
        "the outcome is whether it is shown that no group gets worse by more than M and no gap grows by more than M "
        "(0.02: two percentage points), refuted, or neither (default: whether any change is significant)",
        None,
        "M",
    )


class Settings(Data, Comparison, Test, Conclusion, Files, Output):
    """The options of a comparison of two versions."""
