"""FlipTest: who would be decided otherwise, had they been of the other group?

Each person of one group is matched with a counterpart in the other by a transport map, which moves the whole of one
group onto the other while moving everybody as little as possible. The positive flipset are those who are decided
positively while their counterparts are not; the negative flipset, the reverse. The transparency report ranks the
features in which a flipset differs from its counterparts. Sizes come with intervals; each line of the report with an
interval and what that makes of it (it is noise, or it stands out); and the noise floor says how large flipsets are
between groups that are alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fairness_audits.options import TAKES, Number, Options, Output, Precise, Reading, Rows, Standardize, option, source
from fairness_audits.validation import Count, Share, Size

EXAMPLES = """\
examples:
  A network of the columns of a file, everything written into a folder:
    fairness-audits fliptest --data rows.parquet --group race \\
        --source Black --target White --predict model.pt --output audit

  A scikit-learn model, which takes text columns too, in both directions; people are named by their id:
    fairness-audits fliptest --data rows.csv --group sex --source Female --target Male --id person \\
        --label hired --predict model.joblib --trust-pickle --threshold 0.5 --reverse --output audit

  Equalized odds: only people of true label 1, and then of label 0:
    fairness-audits fliptest --data rows.parquet --group race --source Black --target White \\
        --label recidivism --given-label 1 --predict model.pt --output audit_1

  At most 1,000 people of each group, another map, and 39 deals for the noise floor:
    fairness-audits fliptest --data rows.parquet --group race --source Black --target White \\
        --predict model.pt --limit 1000 --map wgan --map-setting steps=5000 --null-draws 39
"""
PAGE = "docs/guide/fliptest.md explains the method, the files and the JSON."
FILES = "audit.json, the page fliptest.html, flipsets.csv, transparency.csv and the figures"


class Data(Rows, title="data"):
    label: str | None = source("the column with the true class", None, "COLUMN", python="y")
    include_group: bool = source(
        "the group column is an input of the model too", False, python="the group column in X too"
    )
    id: str | None = source(
        "a column that names the rows in results; no input of the model", None, "COLUMN", python="ids"
    )
    categorical: Sequence[str] = option("columns of numbers that are codes of categories", (), "A,B")
    standardize: Standardize = option(
        "measure columns of more than two values in standard deviations of both groups together, or none. The model "
        "sees the columns as they are",
        "continuous",
    )
    limit: Count | None = option("at most N rows of each group, drawn at random (default: all)", None, "N")


class Groups(Options, title="groups"):
    group: str = source("the column with the protected attribute", metavar="COLUMN")
    source: str = option("the group whose people are looked at", metavar="LEVEL")
    target: str = option("the group that counterparts are sought in", metavar="LEVEL")
    reverse: bool = option("look at the target group's people too", False)
    given_label: Literal[0, 1] | None = option("only rows of this true label (equalized odds); needs --label", None)


class Predict(Options, title="model"):
    predict: str = source(
        f"{TAKES}, where the name is a model, a function of a data frame of the features, or a function without "
        "arguments that returns one of these. It gives a decision, a probability or a score for each row, or a "
        "column of scores for each class",
        metavar="MODEL",
        python="model",
    )
    classes: Sequence[str] | None = option(
        "names of the model's classes, in the order of its outputs, of which --positive is one (default: those that "
        "the model names)",
        None,
        "A,B,C",
    )
    threshold: Number | None = option(
        "the decision is positive where the score is at least T (default: the model's own predict decides; without "
        "one, 0.5 for decisions and probabilities, and of more than two classes the largest score)",
        None,
        "T",
    )


class Map(Options, title="map"):
    map: str = option(
        "entropic: smooth, stable and fast; exact: counterparts are people of the file; wgan: as published; see "
        "docs/guide/fliptest.md; auto: the first of entropic, exact, stochastic and wgan that is sound on people held "
        "out of its fit (default: auto)",
        "auto",
        "NAME",
    )
    map_setting: Sequence[str] | Mapping[str, Any] = option(
        "a setting of the map that differs from its file in conf/transport; may be repeated", (), "KEY=VALUE"
    )
    null_draws: Size | None = option(
        "fit the map B times more, between groups that are dealt at random: the noise floor (default: 39 where the map "
        "is fitted fast, else 0)",
        None,
        "B",
    )
    alpha: Share = option("level of tests and intervals", 0.05)
    seed: Size = option("seed of all random numbers", 0)


class Settings(Data, Reading, Groups, Predict, Precise, Map, Output):
    """Every option of FlipTest."""
