"""Loss-ratio audit: does the model treat comparable individuals alike?

Each audited row is moved to a comparable individual: one that a fair metric holds to be alike and that the model treats
worse. A smooth model is followed up the gradient of the row's own loss; a model whose outputs jump, such as trees, is
asked about whole people. The audit tests the null hypothesis that this multiplies the loss by at most --delta on
average, and says with which confidence it is more. The error-rate ratio is tested beside it.

The fair metric ignores differences along sensitive directions. Either these are learned from sensitive attributes
(--sensitive: the directions that tell their groups apart), or they are given (--directions).
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from fairness_audits.options import Network, Options, Output, Precise, Reading, Rows, Standardize, option, source
from fairness_audits.validation import Count, Limit, Positive, Share, Size, at_least

EXAMPLES = """\
examples:
  A TorchScript network on held-out rows, the metric learned from two attributes:
    fairness-audits loss-ratio --data rows.parquet --label income \\
        --positive '>50K' --model model.pt --sensitive sex,race=White \\
        --standardize continuous --output audit

  Boosted trees, asked about whole people:
    fairness-audits loss-ratio --data rows.parquet --label income --positive '>50K' \\
        --model model.joblib --trust-pickle --sensitive sex,race=White \\
        --standardize continuous --reference training.parquet --output audit

  A network built by a function in a file, directions of one's own, JSON only:
    fairness-audits loss-ratio --data rows.csv --label y \\
        --model nets/credit.py:network --directions directions.npy --json audit.json
"""
PAGE = "docs/guide/loss_ratio.md explains more, and the JSON."
FILES = "audit.json, the page loss_ratio.html, tests.csv, examples.csv and the figure"


def is_part(text: str) -> bool:
    """Whether a text is K/N, K being one of 1 to N."""
    found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    return found is not None and int(found[1]) <= int(found[2])


class Data(Rows, title="data"):
    label: str = source("the column with the true class", metavar="COLUMN", python="y")
    include_sensitive: bool = source(
        "the sensitive columns are inputs of the model too", False, python="the sensitive columns in X too"
    )
    standardize: Standardize | None = option(
        "measure columns of more than two values in standard deviations, or none. The model sees the columns as they "
        "are (default: none, refused where columns are far from unit scale)",
        None,
    )
    points: Annotated[int, at_least(2)] | None = option("audit N rows drawn at random (default: all)", None, "N")
    seed: Size = option("seed of that draw", 0)
    part: Annotated[str, Limit("such as 3/10", is_part)] | None = option(
        "audit part K of N of these rows, with metric, units and range of all of them: the N results, joined, are the "
        "audit of all",
        None,
        "K/N",
    )


class Metric(Options, title="fair metric (one of the first two)"):
    sensitive: Sequence[str] = source(
        "columns with sensitive attributes, to learn the metric from: two levels, or one level against the rest",
        (),
        "A,B=LEVEL",
        python=("sensitive", "sensitive=({column} == {level})"),
    )
    directions: Path | None = source(
        ".npy of shape (number, features): displacements that should make no difference, in the columns' units",
        None,
        "FILE",
    )


class Search(Options, title="search"):
    search: Literal["auto", "gradient", "differences", "people"] = option(
        "how comparable individuals are found: by the gradient of a torch network; by finite differences of any smooth "
        "model; or among whole people, for models whose outputs jump (default: the first of these that the model can "
        "have, by a trial)",
        "auto",
    )
    reference: Path | None = source(
        "rows that are not audited, with the columns of the data: the metric is learned from them, and whole people "
        "take their values (default: the metric from the audited rows, the values from a fifth of the rows)",
        None,
        "FILE",
        python="reference",
    )
    least_share: Share = option(
        "whole people: a column may change where at least this share of its move is along the sensitive directions", 0.5
    )
    placebo: Literal["random", "none"] = option(
        "repeat the search along as many directions drawn at random, to see how much of the ratio is the model's "
        "sensitivity at large",
        "random",
    )


class People(Options, title="who could exist"):
    """What a comparable individual may be."""

    bounds: str = option(
        "keep comparables within the range of the data in every step, or within the bounds of a CSV file with the "
        "columns feature, low and high; none: as published, wherever the gradient leads",
        "data",
        "data|none|FILE",
    )
    one_hot: Sequence[str] = option(
        "beginnings of names of columns, such as race_: all that begin so are the indicators of one category. The "
        "examples then name the nearest whole person, with the loss there",
        (),
        "A,B",
    )


class Test(Options, title="test and attack"):
    delta: Positive = option("tolerated ratio", 1.25)
    alpha: Share = option("level of the test", 0.05)
    regularization: Positive = option("weight of fair distance", 50.0, "LAMBDA")
    step_size: Positive = option("at most 1 / LAMBDA, to be stable", 0.01, "ETA")
    steps: Count = option("number of gradient steps", 500)
    examples: Size = option("how many unfair examples", 10, "K")


class Settings(Data, Reading, Network, Precise, Metric, Search, People, Test, Output):
    """Every option of the loss-ratio audit."""
