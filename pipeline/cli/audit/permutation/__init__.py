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

from pipeline.cli.arguments import add_output_arguments, names, number, whole_number

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
    defaults = "(default: %(default)s)"
    data = parser.add_argument_group("data")
    data.add_argument(
        "--predictions",
        metavar="FILE",
        required=True,
        help="the rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes; of any size",
    )
    data.add_argument("--label", metavar="COLUMN", required=True, help="the column with the true class, 0 or 1")
    data.add_argument(
        "--positive", metavar="VALUE", help="the label's value that counts as 1 (where it is not 0 and 1)"
    )
    data.add_argument(
        "--real-label", action="store_true", help="the label is any number (regression): for errors and correlations"
    )
    data.add_argument("--score", metavar="COLUMN", help="the column with the model's score or probability of class 1")
    decision = data.add_mutually_exclusive_group()
    decision.add_argument("--prediction", metavar="COLUMN", help="the column with the model's decision, 0 or 1")
    decision.add_argument(
        "--threshold", metavar="T", type=number(float("-inf")), help="the decision is 1 where the score is at least T"
    )
    data.add_argument("--cluster", metavar="COLUMN", help="persons (or other units) whose rows belong together")
    data.add_argument("--weight", metavar="COLUMN", help="sampling weights")

    what = parser.add_argument_group("comparison")
    many: Mapping[str, Any] = {"action": "extend", "type": names, "default": []}
    what.add_argument(
        "--group", metavar="A,B=LEVEL", help="columns whose groups are compared, or one level with all the rest", **many
    )
    what.add_argument(
        "--between", metavar="A,B", type=names, help="only these two groups, in this order (default: all pairs)"
    )
    what.add_argument("--attribute", metavar="A,B", help="columns of numbers, for correlation metrics", **many)
    what.add_argument(
        "--metric", metavar="NAME", required=True, help="metrics (see below), or path/to/file.py:name", **many
    )

    test = parser.add_argument_group("test")
    test.add_argument("--alpha", type=number(0, 1), default=0.05, help=f"level of the test {defaults}")
    test.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="auto: exact for rates, studentized otherwise; the last three are there to compare with (default: auto)",
    )
    test.add_argument(
        "--alternative",
        choices=("two-sided", "greater", "less"),
        default="two-sided",
        help=f"greater: the metric is larger in the first group {defaults}",
    )
    test.add_argument(
        "--correct",
        choices=CORRECTIONS,
        default="holm",
        help="correction for the number of tests: over all tests of the run, but max-t (largest |T|, step-down) over "
        f"the pairs of each metric {defaults}",
    )
    test.add_argument(
        "--draws", type=whole_number(1), help="permutations (default: 10000, and 1000 for a metric of your own)"
    )
    test.add_argument(
        "--resampling-risk",
        metavar="RISK",
        type=number(0, 1),
        help="stop drawing when the decision is safe but for this risk, such as 0.001",
    )
    test.add_argument("--seed", type=whole_number(0), default=0, help=f"seed of the permutations {defaults}")

    scan = parser.add_argument_group("reading")
    scan.add_argument(
        "--engine",
        choices=("duckdb", "spark", "pandas"),
        default="duckdb",
        help="duckdb: larger than memory, on this machine; spark: on a cluster, needs pyspark and Java 17 or newer; "
        f"pandas: small files {defaults}",
    )
    scan.add_argument("--threads", metavar="N", type=whole_number(1), help="of the engine (default: all cores)")
    scan.add_argument("--memory", metavar="SIZE", help="of the engine, such as 4GB; more goes to disk")
    scan.add_argument(
        "--bins",
        metavar="N|none|auto",
        type=bins,
        default="auto",
        help="count scores in N bins of equal width; none: take every row as it is; auto: 1000 bins where there are "
        "more than 100000 rows and many distinct scores (default: auto)",
    )
    scan.add_argument(
        "--score-range",
        metavar="LOW,HIGH",
        type=score_range,
        help="the lowest and the highest score allowed, which bins lie between (default: 0,1 for bins and log loss)",
    )
    add_output_arguments(parser, "audit.json and tests.csv")


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.permutation.audit import audited, deliver
    from pipeline.cli.audit.permutation.verdict import page
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited, deliver, page)


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
