"""FlipTest: whose decision differs from that of their counterpart in the other group?

A transport map matches each person of the source group with a counterpart in the target group. The counterparts are
distributed like the target group, and the map moves people as little as possible. The positive flipset holds the
people who get a positive decision while their counterparts do not; the negative flipset is the reverse. The
transparency report ranks the features in which a flipset differs from its counterparts. The audit reports intervals
for the sizes of the flipsets and for these differences. The noise floor shows how large flipsets are between two random
groups, and refits of the map show whose flips are stable.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fairness_audits.options import (
    TAKES,
    Options,
    Output,
    Precise,
    Reading,
    RowOptions,
    Standardize,
    option,
    source,
)
from fairness_audits.validation import Count, Number, Share, Size, interval

EXAMPLES = """\
examples:
  A network that takes all other columns of a file; all outputs go into a folder:
    fairness-audits fliptest --data rows.parquet --group race \\
        --source Black --target White --predict model.pt --output audit

  A scikit-learn model that also takes text columns, in both directions; people are named by an id column:
    fairness-audits fliptest --data rows.csv --group sex --source Female --target Male --id person \\
        --label hired --predict model.joblib --trust-pickle --threshold 0.5 --reverse --output audit

  Equalized odds: only people with true label 1 (repeat for label 0):
    fairness-audits fliptest --data rows.parquet --group race --source Black --target White \\
        --label recidivism --given-label 1 --predict model.pt --output audit_1

  At most 1,000 people of each group, another map, and 40 random splits for the noise floor:
    fairness-audits fliptest --data rows.parquet --group race --source Black --target White \\
        --predict model.pt --limit 1000 --map wgan --map-setting steps=5000 --null-draws 40
"""
PAGE = "See docs/guide/fliptest.md for the method, the files and the fields of the JSON."
FILES = ("audit.json", "fliptest.html", "flipsets.csv", "people.csv", "transparency.csv")
WRITES = "{}, the page {}, {}, {}, {} and the figures"


class Data(RowOptions, title="data"):
    label: str | None = source("the column with the true class", None, "COLUMN", python="y")
    include_group: bool = source(
        "the group column is also an input of the model", False, python="the group column in X too"
    )
    id: str | None = source(
        "a column that identifies the rows in results; it is not an input of the model", None, "COLUMN", python="ids"
    )
    standardize: Standardize = option(
        "columns that the map measures in standard deviations of both groups together: continuous (all with more "
        "than two values) or none. The model sees the original values",
        "continuous",
    )
    limit: Count | None = option("largest number of rows of each group, drawn at random (default: all)", None, "N")


class Groups(Options, title="groups"):
    group: str = source("the column with the protected attribute", metavar="COLUMN")
    source: str = option("the group whose people are audited", metavar="LEVEL")
    target: str = option("the group of the counterparts", metavar="LEVEL")
    reverse: bool = option("also audit the people of the target group", False)
    given_label: Literal[0, 1] | None = option(
        "use only rows with this true label (equalized odds); needs --label", None
    )


class Predict(Options, title="model"):
    predict: str = source(
        f"{TAKES}, where name is a model, a function of a data frame of the features, or a function without "
        "arguments that returns one of these. The model returns a decision, a probability or a score for each row, "
        "or a column of scores for each class",
        metavar="MODEL",
        python="model",
    )
    classes: Sequence[str] | None = option(
        "names of the model's classes, in the order of its outputs; --positive is one of them (default: the model's "
        "own names)",
        None,
        "A,B,C",
    )
    threshold: Number | None = option(
        "the decision is positive if the score is at least T (default: the model's own predict decides. Models "
        "without predict: 0.5 for decisions and probabilities; with more than two classes, the largest score)",
        None,
        "T",
    )


class Map(Options, title="map"):
    map: str = option(
        "transport map. entropic: smooth, stable and fast; exact: counterparts are people of the file; stochastic: "
        "networks for the dual potentials and the map; wgan: as published, but keeps the checkpoint whose output is "
        "nearest to the target group; auto: the first of entropic, exact, stochastic and wgan that is good enough on "
        "held-out people; see docs/guide/fliptest.md "
        "(default: auto)",
        "auto",
        "NAME",
    )
    map_setting: Sequence[str] | Mapping[str, Any] = option(
        "a setting of the map in place of its default; several are possible", (), "KEY=VALUE"
    )
    null_draws: Size | None = option(
        "number of random splits for the noise floor. The map is fitted again between the two random groups of each "
        "split (default: the smallest number that can give an adjusted p-value below alpha, 40 for 0.05 and at most "
        "200; 0 for maps that are slow to fit)",
        None,
        "B",
    )
    refits: Size | None = option(
        "number of refits of the map on people resampled with replacement. The results say in how many of these "
        "maps each person flips (default: 10; 0 for maps that are slow to fit)",
        None,
        "R",
    )
    held_share: Annotated[float, interval("(0, 1]")] = option(
        "a flip counts as stable if the person flips in at least this share of the refitted maps", 0.9, "SHARE"
    )
    alpha: Share = option("level of the tests and intervals", 0.05)
    seed: Size = option("random seed", 0)


class Settings(Data, Reading, Groups, Predict, Precise, Map, Output):
    """Every option of FlipTest."""
