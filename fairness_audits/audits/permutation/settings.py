"""Permutation tests: does a metric differ between groups by more than chance?

Takes a file of predictions. For each metric, it tests the null hypothesis that the metric is equal in all groups. Rates
(tpr, fpr, precision, selection_rate, ...) have an exact test, unless rows have clusters or weights. All other tests
permute a studentised difference. In large groups, such a test stays valid if the groups differ in ways other than the
metric. The command prints the metric in each group, the difference with its interval and p-value, and the conclusion.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fairness_audits.options import Decisions, Files, Level, Options, Output, Seed, option, source
from fairness_audits.validation import Count, Limit, Positive, Share

EXAMPLES = """\
examples:
  Is the area under the ROC curve the same for women and men?
    fairness-audits permutation --predictions preds.parquet --label y --score p --group sex --metric auc

  Error rates of decisions at a threshold of one half; all outputs go into a folder:
    fairness-audits permutation --predictions preds.csv --label income --positive '>50K' \\
        --score p --threshold 0.5 --group sex,race --metric tpr,fpr,selection_rate --output audit

  Several rows for each person; one race against all others:
    fairness-audits permutation --predictions 'visits/*.parquet' --label readmitted --prediction flagged \\
        --group race=Black --cluster patient --metric recall,precision

  Your own metric, a function(y, score, weight) in a file:
    fairness-audits permutation --predictions preds.parquet --label y --score p --group sex \\
        --metric metrics.py:brier --resampling-risk 0.001

  Do error rates differ by at most two points? With --gate, a build stops unless this is shown:
    fairness-audits permutation --predictions preds.csv --label y --prediction d --group sex --metric tpr,fpr \\
        --margin 0.02 --gate

  Each intersection of sex and race against white men, and people from 40 against younger ones:
    fairness-audits permutation --predictions preds.csv --label y --prediction d --group 'sex*race,age>=40' \\
        --reference 'male & white,age < 40' --metric selection_rate --ratio

metrics
  of decisions: tpr (recall), fnr, fpr, tnr, precision, npv, accuracy, f1, selection_rate (demographic_parity),
                equalized_odds (tpr and fpr)
  of scores:    auc, mean_score, mean_error, absolute_error, squared_error, log_loss, correlation (with --attribute)
  of labels:    base_rate
"""
PAGE = "See docs/guide/permutation.md for the method, the files and the fields of the JSON."
FILES = ("audit.json", "permutation.html", "tests.csv", "groups.csv")
WRITES = "{}, the page {}, {}, {} and the figure"


class Data(Decisions, title="data"):
    regression: bool = option(
        "the label is a number that the score predicts; compare means of scores and errors", False
    )
    cluster: str | None = source("the column with persons or other units that have several rows", None, "COLUMN")
    weight: str | None = source(
        "the column with the weight of each row, such as a survey weight. Tests of rates are then "
        "studentised instead of exact",
        None,
        "COLUMN",
    )


class Comparison(Options, title="comparison"):
    group: Sequence[str] = source(
        "the groups to compare: levels of a column A, one level against the rest A=LEVEL, intersections 'A*B', or "
        "both sides of a cut 'A>=40'",
        (),
        "A,B=LEVEL",
        python=("group", "group=({column} == {level})"),
    )
    reference: Sequence[str] = option(
        "the reference group of each column: every other group is compared with it (default: each group is compared "
        "with all others together; two groups with each other)",
        (),
        "A,B",
    )
    pairs: bool = option(
        "compare all pairs of groups (default: each group with all others together; with --ratio, all pairs)", False
    )
    attribute: Sequence[str] = source("numeric columns for the metric correlation", (), "A,B")
    metric: Annotated[Sequence[str | Callable[..., Any]], Limit("(at least one)", len)] = option(
        "auc, tpr, selection_rate, f1, equalized_odds, ... (docs/guide/permutation.md lists all), or your own "
        "function (path/to/file.py:name)",
        metavar="NAME",
    )


class Test(Level, Seed, title="test"):
    method: Literal["auto", "exact", "studentized", "unstudentized"] = option(
        "auto: exact for rates, otherwise studentized; unstudentized: for comparison only (default: auto)", "auto"
    )
    alternative: Literal["two-sided", "equal-tailed", "greater", "less"] | None = option(
        "greater: the metric is larger in the first group; less: it is smaller; two-sided: |T| is large, as "
        "published; equal-tailed: twice the smaller of both one-sided p-values (default: equal-tailed for permuted "
        "statistics; two-sided for exact tests, correlations and max-t)",
        None,
    )
    correct: Literal["holm", "max-t", "bonferroni", "bh", "by", "none"] = option(
        "correction for multiple tests, over all tests of the run; max-t (largest |T|, step-down) corrects over the "
        "pairs of each metric",
        "holm",
    )
    draws: Count | None = option(
        "number of permutations (default: 10000, or as many as the correction needs). It is an error if they are too "
        "few to reject after the correction",
        None,
    )
    resampling_risk: Share | None = option(
        "stop drawing when the probability that more draws change the decision is at most this, such as 0.001",
        None,
        "RISK",
    )


class Conclusion(Options, title="conclusion"):
    margin: Positive | None = option(
        "test equivalence: the outcome is whether the differences are shown to be at most M (0.02: two percentage "
        "points), shown to be larger, or neither",
        None,
        "M",
    )
    ratio: bool = option(
        "compare the rates of all pairs of groups by their ratio, lowest to highest (impact ratio), or with "
        "--reference of each group to the reference. The outcome is whether the ratio in both directions is shown to "
        "be at least R (--at-least), shown to be smaller, or neither",
        False,
    )
    at_least: Share | None = option(
        "the smallest acceptable ratio, for --ratio (default: 0.8, the four-fifths rule)", None, "R"
    )
    width: Positive | None = option(
        "the outcome is inconclusive if equality is not rejected and the interval is wider than W (default: 0.2 for "
        "rates, no limit for other metrics)",
        None,
        "W",
    )


class Reading(Files, title="reading"):
    engine: Literal["duckdb", "spark"] = source(
        "duckdb: one machine, also for files larger than memory; spark: a cluster, needs pyspark and Java 17 or newer",
        "duckdb",
    )
    threads: Count | None = source("number of threads of the engine (default: all cores)", None, "N")
    memory: str | None = source("memory limit of the engine, such as 4GB; it uses the disk beyond that", None, "SIZE")


class Settings(Data, Comparison, Test, Conclusion, Reading, Output):
    """The options of the permutation tests."""
