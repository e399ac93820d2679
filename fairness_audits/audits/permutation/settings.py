"""Permutation tests: does a metric differ between groups by more than chance?

Takes a file of predictions and tests, for each metric, the null hypothesis that it is equal in the groups. Rates (tpr,
fpr, precision, selection_rate, ...) are tested exactly; the AUC, means of scores and errors, and metrics of your own by
random permutations of a studentised difference, valid even where the groups differ in everything but the metric. It
prints the metric in each group, the difference with its interval, the p-value, and what follows.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fairness_audits.options import Files, Number, Options, Output, option, source
from fairness_audits.validation import Count, Limit, Positive, Share, Size, at_least

EXAMPLES = """\
examples:
  Is the area under the ROC curve the same for women and men?
    fairness-audits permutation --predictions preds.parquet --label y --score p --group sex --metric auc

  Error rates of decisions at one half, between all pairs of races, as JSON and CSV in a folder:
    fairness-audits permutation --predictions preds.csv --label income --positive '>50K' \\
        --score p --threshold 0.5 --group sex,race --metric tpr,fpr,selection_rate --output audit

  Several rows for each person, and one race against all the others:
    fairness-audits permutation --predictions 'visits/*.parquet' --label readmitted --prediction flagged \\
        --group race=Black --cluster patient --metric recall,precision

  A metric of your own: function(y, score, weight) in a file:
    fairness-audits permutation --predictions preds.parquet --label y --score p --group sex \\
        --metric metrics.py:brier --resampling-risk 0.001

  Is it shown that error rates differ by two points at most? A build stops at anything else:
    fairness-audits permutation --predictions preds.csv --label y --prediction d --group sex --metric tpr,fpr \\
        --margin 0.02 --gate

  Each cross of sex and race with white men, and people from 40 with those below:
    fairness-audits permutation --predictions preds.csv --label y --prediction d --group 'sex*race,age>=40' \\
        --reference 'male & white,age < 40' --metric selection_rate --ratio

metrics: tpr (recall), fnr, fpr, tnr, precision, npv, accuracy, selection_rate (demographic_parity), f1 of decisions,
base_rate of the label, equalized_odds for tpr and fpr; auc, mean_score, mean_error, absolute_error, squared_error,
log_loss of scores; correlation with --attribute.
"""
PAGE = "docs/guide/permutation.md explains all options and the JSON."
FILES = "audit.json, the page permutation.html, tests.csv, groups.csv and the figure"


class Data(Options, title="data"):
    predictions: str = source(
        "the rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes; of any size", metavar="FILE"
    )
    label: str | None = source(
        "the column with the true class, 0 or 1 (not needed for selection rates, mean scores and correlations)",
        None,
        "COLUMN",
        python="y",
    )
    positive: str | None = option("the label's value that counts as 1 (where it is not 0 and 1)", None, "VALUE")
    regression: bool = option(
        "labels and scores are numbers to predict: means of scores and errors are compared", False
    )
    score: str | None = source("the column with the model's score or probability of class 1", None, "COLUMN")
    prediction: str | None = source("the column with the model's decision, 0 or 1", None, "COLUMN")
    threshold: Number | None = option("in place of decisions: 1 where the score is at least T", None, "T")
    cluster: str | None = source("persons (or other units) whose rows belong together", None, "COLUMN")
    weight: str | None = source(
        "what each row stands for, such as a survey weight; rates and means are then studentised", None, "COLUMN"
    )


class Comparison(Options, title="comparison"):
    group: Sequence[str] = source(
        "columns whose groups are compared: A, one level with all the rest A=LEVEL, a cross 'A*B', a cut 'A>=40'",
        (),
        "A,B=LEVEL",
        python=("group", "group=({column} == {level})"),
    )
    reference: Sequence[str] = option(
        "groups that the others are compared with, the second of each comparison (default: each group with all the "
        "others; of two groups, the second by name)",
        (),
        "A,B",
    )
    pairs: bool = option("compare all pairs of groups (default: each group with all the others)", False)
    attribute: Sequence[str] = source("columns of numbers, for the metric correlation", (), "A,B")
    metric: Annotated[Sequence[str | Callable[..., Any]], Limit("at least one", len)] = option(
        "auc, tpr, selection_rate, f1, equalized_odds, ... (docs/guide/permutation.md lists all), or "
        "path/to/file.py:name",
        metavar="NAME",
    )


class Test(Options, title="test"):
    alpha: Share = option("level of the test", 0.05)
    method: Literal["auto", "exact", "studentized", "unstudentized"] = option(
        "auto: exact for rates, studentized otherwise; unstudentized is there to compare with (default: auto)", "auto"
    )
    alternative: Literal["two-sided", "equal-tailed", "greater", "less"] | None = option(
        "greater: the metric is larger in the first group; two-sided: |T| is large, as published; equal-tailed: T is "
        "far out on its own side (default: equal-tailed where T is permuted, two-sided where a test is exact, of a "
        "correlation, or max-t)",
        None,
    )
    correct: Literal["holm", "max-t", "bonferroni", "bh", "by", "none"] = option(
        "correction for the number of tests: over all tests of the run, but max-t (largest |T|, step-down) over the "
        "pairs of each metric",
        "holm",
    )
    draws: Count | None = option(
        "permutations; refused where they are too few to reject after the correction (default: 10000, or as many as "
        "the correction needs)",
        None,
    )
    resampling_risk: Share | None = option(
        "stop drawing when the decision is safe but for this risk, such as 0.001", None, "RISK"
    )
    seed: Size = option("seed of the permutations", 0)


class Conclusion(Options, title="conclusion"):
    margin: Positive | None = option(
        "ask for equivalence: differences of at most M (0.02: two points) are shown, not shown, or exceeded, and that "
        "is the outcome",
        None,
        "M",
    )
    ratio: bool = option(
        "compare rates by their ratio (impact ratio): of the first group to the second; it is shown, not shown or "
        "refuted to be at least R, in either direction, and that is the outcome",
        False,
    )
    at_least: Share | None = option("R of --ratio (default: 0.8, as in the four-fifths rule)", None, "R")
    width: Positive | None = option(
        "the outcome is inconclusive where equality is not rejected by an interval wider than W (default: 0.2 for "
        "rates, no limit for other metrics)",
        None,
        "W",
    )


class Reading(Files, title="reading"):
    engine: Literal["duckdb", "spark"] = source(
        "duckdb: larger than memory, on this machine; spark: on a cluster, needs pyspark and Java 17 or newer", "duckdb"
    )
    threads: Count | None = source("of the engine (default: all cores)", None, "N")
    memory: str | None = source("of the engine, such as 4GB; more goes to disk", None, "SIZE")
    bins: Literal["auto", "none"] | Annotated[int, at_least(2)] = option(
        "count scores in bins by rank, N for each label; none: take every row as it is; auto: 10000 where there are "
        "more than 20 million rows and many distinct scores (default: auto)",
        "auto",
        "N|none|auto",
    )


class Settings(Data, Comparison, Test, Conclusion, Reading, Output):
    """The options of the permutation tests."""
