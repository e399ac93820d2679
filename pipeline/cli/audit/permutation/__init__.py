"""Permutation tests: does a metric differ between groups by more than chance?

Takes a file of predictions and tests, for each metric, the null hypothesis that it is equal in the groups. Rates (tpr,
fpr, precision, selection_rate, ...) are tested exactly; the AUC, means of scores and errors, and metrics of your own by
random permutations of a studentised difference, valid even where the groups differ in everything but the metric. It
prints the metric in each group, the difference with its interval, the p-value, and what follows.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from pipeline.cli.arguments import add_output_arguments, names, number, option, whole_number

EXAMPLES = """\
examples:
  Is the area under the ROC curve the same for women and men?
    python -m pipeline audit permutation --predictions preds.parquet --label y --score p --group sex --metric auc

  Error rates of decisions at one half, between all pairs of races, as JSON and CSV in a folder:
    python -m pipeline audit permutation --predictions preds.csv --label income --positive '>50K' \\
        --score p --threshold 0.5 --group sex,race --metric tpr,fpr,selection_rate --output audit

  Several rows for each person, and one race against all the others:
    python -m pipeline audit permutation --predictions 'visits/*.parquet' --label readmitted --prediction flagged \\
        --group race=Black --cluster patient --metric recall,precision

  A metric of your own: function(y, score, weight) in a file:
    python -m pipeline audit permutation --predictions preds.parquet --label y --score p --group sex \\
        --metric metrics.py:brier --resampling-risk 0.001

metrics: tpr (recall), fnr, fpr, tnr, precision, npv, accuracy, selection_rate of decisions; auc, mean_score,
mean_error, absolute_error, squared_error, log_loss of scores; correlation and error_correlation with --attribute.

exit status: 0 the audit ran, whatever its verdict; 2 something to mend, said on stderr; 1 an unforeseen error.
The JSON and all options are explained in docs/permutation.md."""

METHODS = ("auto", "exact", "studentized", "unstudentized", "bootstrap", "lift")
CORRECTIONS = ("holm", "max-t", "bonferroni", "bh", "by", "none")


def add_arguments(parser: ArgumentParser) -> None:
    """What is audited, which metrics are compared between which groups, and how they are tested."""
    data = parser.add_argument_group("data")
    option(
        data,
        "--predictions FILE",
        "the rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes; of any size",
        required=True,
    )
    option(data, "--label COLUMN", "the column with the true class, 0 or 1", required=True)
    option(data, "--positive VALUE", "the label's value that counts as 1 (where it is not 0 and 1)")
    option(
        data, "--real-label", "the label is any number (regression): for errors and correlations", action="store_true"
    )
    option(data, "--score COLUMN", "the column with the model's score or probability of class 1")
    decision = data.add_mutually_exclusive_group()
    option(decision, "--prediction COLUMN", "the column with the model's decision, 0 or 1")
    option(decision, "--threshold T", "the decision is 1 where the score is at least T", type=number(float("-inf")))
    option(data, "--cluster COLUMN", "persons (or other units) whose rows belong together")
    option(data, "--weight COLUMN", "sampling weights")

    what = parser.add_argument_group("comparison")
    many: Mapping[str, Any] = {"action": "extend", "type": names, "default": []}
    option(what, "--group A,B=LEVEL", "columns whose groups are compared, or one level with all the rest", **many)
    option(what, "--between A,B", "only these two groups, in this order (default: all pairs)", type=names)
    option(what, "--attribute A,B", "columns of numbers, for correlation metrics", **many)
    option(what, "--metric NAME", "metrics (see below), or path/to/file.py:name", required=True, **many)

    test = parser.add_argument_group("test")
    option(test, "--alpha", "level of the test", 0.05, type=number(0, 1))
    option(
        test,
        "--method",
        "auto: exact for rates, studentized otherwise; the last three are there to compare with (default: auto)",
        "auto",
        choices=METHODS,
    )
    option(
        test,
        "--alternative",
        "greater: the metric is larger in the first group",
        "two-sided",
        choices=("two-sided", "greater", "less"),
    )
    option(
        test,
        "--correct",
        "correction for the number of tests: over all tests of the run, but max-t (largest |T|, step-down) over the "
        "pairs of each metric",
        "holm",
        choices=CORRECTIONS,
    )
    option(test, "--draws", "permutations (default: 10000, and 1000 for a metric of your own)", type=whole_number(1))
    option(
        test,
        "--resampling-risk RISK",
        "stop drawing when the decision is safe but for this risk, such as 0.001",
        type=number(0, 1),
    )
    option(test, "--seed", "seed of the permutations", 0, type=whole_number(0))

    scan = parser.add_argument_group("reading")
    option(
        scan,
        "--engine",
        "duckdb: larger than memory, on this machine; spark: on a cluster, needs pyspark and Java 17 or newer; "
        "pandas: small files",
        "duckdb",
        choices=("duckdb", "spark", "pandas"),
    )
    option(scan, "--threads N", "of the engine (default: all cores)", type=whole_number(1))
    option(scan, "--memory SIZE", "of the engine, such as 4GB; more goes to disk")
    option(
        scan,
        "--bins N|none|auto",
        "count scores in N bins of equal width; none: take every row as it is; auto: 1000 bins where there are more "
        "than 100000 rows and many distinct scores (default: auto)",
        "auto",
        type=bins,
    )
    option(
        scan,
        "--score-range LOW,HIGH",
        "the lowest and the highest score allowed, which bins lie between (default: 0,1 for bins and log loss)",
        type=score_range,
    )
    add_output_arguments(parser, "audit.json, the page permutation.html, tests.csv and the figure")


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.permutation.audit import audited
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited)


def bins(text: str) -> int | str:
    """``auto``, ``none`` or a number of bins."""
    return text if text in ("auto", "none") else whole_number(2)(text)


def score_range(text: str) -> tuple[float, float]:
    """``LOW,HIGH`` as two numbers."""
    from argparse import ArgumentTypeError

    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not low < high:
        raise ArgumentTypeError(f"expected two numbers LOW,HIGH with LOW below HIGH, found {text!r}")
    return low, high
