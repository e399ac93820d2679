"""Loss ratio: does the model treat comparable individuals alike?

For each audited row, the audit searches for a comparable individual that the model treats worse. A fair metric defines
which individuals are comparable. For a model with a gradient, the search follows the gradient of the row's loss; for
any other model, such as trees, it changes one or two columns to values that occur in the data. The audit tests the
null hypothesis that the loss on the comparable individual is on average at most --delta times the row's own loss. It
also tests the ratio of error rates.

The fair metric ignores differences along sensitive directions. You give these directions (--directions), or the audit
learns them from sensitive attributes (--sensitive) as the directions that separate the groups.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from fairness_audits.options import Network, Options, Output, Precise, Reading, RowOptions, Standardize, option, source
from fairness_audits.validation import Count, Positive, Share, Size, at_least

EXAMPLES = """\
examples:
  A TorchScript network on held-out rows; the fair metric is learned from two attributes:
    fairness-audits loss-ratio --data rows.parquet --label income \\
        --positive '>50K' --model model.pt --sensitive sex,race=White \\
        --standardize continuous --output audit

  Boosted trees; the search changes whole columns:
    fairness-audits loss-ratio --data rows.parquet --label income --positive '>50K' \\
        --model model.joblib --trust-pickle --sensitive sex,race=White \\
        --standardize continuous --reference training.parquet --output audit

  A network built by a function in a file, your own directions, JSON only:
    fairness-audits loss-ratio --data rows.csv --label y \\
        --model nets/credit.py:network --directions directions.npy --json audit.json
"""
PAGE = "See docs/guide/loss_ratio.md for the method, the files and the fields of the JSON."
FILES = ("audit.json", "loss_ratio.html", "tests.csv", "examples.csv")
WRITES = "{}, the page {}, {}, {} and the figure"


class Data(RowOptions, title="data"):
    label: str = source("the column with the true class", metavar="COLUMN", python="y")
    include_sensitive: bool = source(
        "the sensitive columns are also inputs of the model", False, python="the sensitive columns in X too"
    )
    standardize: Standardize | None = option(
        "columns that the audit measures in standard deviations: continuous (all with more than two values) or "
        "none. The model sees the original values (default: none, with an error if columns are far from unit scale)",
        None,
    )
    points: Annotated[int, at_least(2)] | None = option(
        "number of rows to audit, drawn at random (default: all)", None, "N"
    )
    seed: Size = option("random seed of the rows to audit, the reference rows, the placebo and the permutations", 0)


class Metric(Options, title="fair metric (give --sensitive or --directions)"):
    sensitive: Sequence[str] = source(
        "columns with sensitive attributes, from which the metric is learned. A column has two levels, or A=LEVEL "
        "compares one level with the rest",
        (),
        "A,B=LEVEL",
        python=("sensitive", "sensitive=({column} == {level})"),
    )
    directions: Path | None = source(
        ".npy file of shape (number, features): displacements that should make no difference, in the columns' units",
        None,
        "FILE",
    )


class Search(Options, title="search"):
    search: Literal["auto", "gradient", "people"] = option(
        "how the audit searches for comparable individuals. gradient: along the gradient of a torch network, or of a "
        "linear model or network of scikit-learn; people: one or two columns take values of other people, for all "
        "other models; auto: the first of these that works in a trial (default: auto)",
        "auto",
    )
    reference: Path | None = source(
        "rows that are not audited, with the same columns. The fair metric is learned from them, and --search=people "
        "takes its values from them (default: the metric is learned from all rows of the data, and a fifth of the "
        "rows, but at most 5,000, gives the values)",
        None,
        "FILE",
        python="reference",
    )
    least_share: Share = option(
        "for --search=people: a column may change if at least this share of the squared length of its "
        "change is along the sensitive directions",
        0.5,
    )
    placebo: Literal["random", "none"] = option(
        "random: repeat the search along the same number of random directions. This shows how sensitive the model is "
        "to any change",
        "random",
    )


class People(Options, title="admissible individuals"):
    """What a comparable individual may be."""

    bounds: str = option(
        "data: keep comparable individuals within the range of the data; FILE: within the bounds of a CSV file with "
        "the columns feature, low and high; none: without bounds, as published",
        "data",
        "data|none|FILE",
    )
    one_hot: Sequence[str] = option(
        "prefixes of column names, such as race_. All columns with one prefix are the indicators of one category. "
        "The examples then also show the nearest person who could exist, and the loss of this person",
        (),
        "A,B",
    )


class Test(Options, title="test and attack"):
    delta: Positive = option("tolerated loss ratio", 1.25)
    alpha: Share = option("level of the test", 0.05)
    regularization: Positive = option("weight of the penalty on the fair distance", 50.0, "LAMBDA")
    step_size: Positive = option("step size; stable up to 1 / --regularization", 0.01, "ETA")
    steps: Count = option("number of gradient steps", 500)
    examples: Size = option("number of unfair examples to report", 10, "K")


class Settings(Data, Reading, Network, Precise, Metric, Search, People, Test, Output):
    """Every option of the loss-ratio audit."""
