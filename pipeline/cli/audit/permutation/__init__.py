"""Permutation tests: does a metric differ between groups by more than chance?

Takes a file of predictions and tests, for each metric, the null hypothesis that it is equal in the groups. Rates (tpr,
fpr, precision, selection_rate, ...) are tested exactly; the AUC, means of scores and errors, and metrics of your own by
random permutations of a studentised difference, valid even where the groups differ in everything but the metric. It
prints the metric in each group, the difference with its interval, the p-value, and what follows.
"""

from __future__ import annotations

from argparse import ArgumentTypeError

from pipeline.cli.options import whole

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
"""
PAGE = "docs/permutation.md explains all options and the JSON."
FILES = "audit.json, the page permutation.html, tests.csv and the figure"


def bins(text: str) -> int | str:
    """``auto``, ``none`` or a number of bins."""
    return text if text in ("auto", "none") else int(whole("2")(text))


def score_range(text: str) -> tuple[float, float]:
    """``LOW,HIGH`` as two numbers."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low, high = 0.0, 0.0
    if not low < high:
        raise ArgumentTypeError(f"expected two numbers LOW,HIGH with LOW below HIGH, found {text!r}")
    return low, high


KINDS = {"bins": lambda: bins, "score-range": lambda: score_range}
OPTIONS = """
[data]
--predictions FILE ; text ! ; the rows to audit: CSV or Parquet, a folder of such files, or a glob in quotes; of any
  size
--label COLUMN ; text ! ; the column with the true class, 0 or 1
--positive VALUE ; text ; the label's value that counts as 1 (where it is not 0 and 1)
--real-label ; flag ; the label is any number (regression): for errors and correlations
--score COLUMN ; text ; the column with the model's score or probability of class 1
--prediction COLUMN ; text either ; the column with the model's decision, 0 or 1
--threshold T ; number:-inf either ; the decision is 1 where the score is at least T
--cluster COLUMN ; text ; persons (or other units) whose rows belong together
--weight COLUMN ; text ; sampling weights
[comparison]
--group A,B=LEVEL ; names * ; columns whose groups are compared, or one level with all the rest
--between A,B ; names ; only these two groups, in this order
--pairs ; flag ; compare all pairs of groups (default: each group with all the others)
--attribute A,B ; names * ; columns of numbers, for correlation metrics
--metric NAME ; names * ! ; metrics (see below), or path/to/file.py:name
[test]
--alpha ; number:0:1 =0.05 ; level of the test
--method ; one:auto:exact:studentized:unstudentized:bootstrap:lift =auto ; auto: exact for rates, studentized
  otherwise; the last three are there to compare with (default: auto)
--alternative ; one:two-sided:greater:less =two-sided ; greater: the metric is larger in the first group
--correct ; one:holm:max-t:bonferroni:bh:by:none =holm ; correction for the number of tests: over all tests of the run,
  but max-t (largest |T|, step-down) over the pairs of each metric
--draws ; whole:1 ; permutations; refused where they are too few to reject after the correction (default: 10000, and
  1000 for a metric of your own, or as many as the correction needs)
--resampling-risk RISK ; number:0:1 ; stop drawing when the decision is safe but for this risk, such as 0.001
--seed ; whole:0 =0 ; seed of the permutations
[reading]
--engine ; one:duckdb:spark:pandas =duckdb ; duckdb: larger than memory, on this machine; spark: on a cluster, needs
  pyspark and Java 17 or newer; pandas: small files
--threads N ; whole:1 ; of the engine (default: all cores)
--memory SIZE ; text ; of the engine, such as 4GB; more goes to disk
--bins N|none|auto ; bins =auto ; count scores in N bins of equal width; none: take every row as it is; auto: 1000 bins
  where there are more than 100000 rows and many distinct scores (default: auto)
--score-range LOW,HIGH ; score-range ; the lowest and the highest score allowed, which bins lie between (default: 0,1
  for bins and log loss)
"""
