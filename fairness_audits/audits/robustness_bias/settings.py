"""Robustness: is one group of images or rows closer to the decision boundary than the others?

Takes an image classifier, images, and a table with the groups of each image; or any model and the rows of a table. For
each image or row that the model classifies correctly, it searches for the smallest change that makes the model err. The
size of this change is the distance to the decision boundary (the L2 norm, of pixels in [0, 1] or of columns in standard
deviations). The audit then compares groups by the measures of Nanda et al. (FAccT 2021): I_P(tau), the share of a group
that withstands changes of size tau; RB(P, tau), the difference between this share and the share of all others; and
sigma(P), the relative difference between the mean distances, with its interval and p-value.

Attacks give upper bounds of the distances. Smoothing gives lower bounds for the smoothed model. With --attack exact,
distances are exact: for linear models, and for rows under one decision tree or a small network.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fairness_audits.errors import InvalidInput
from fairness_audits.options import (
    Computed,
    Inputs,
    Network,
    Options,
    Output,
    Reading,
    flag,
    option,
    option_fields,
    source,
)
from fairness_audits.validation import Count, Limit, Number, Positive, Share, Size, at_least, not_empty

EXAMPLES = """\
examples:
  A folder of images; all other columns are compared, and all outputs go into a folder:
    fairness-audits robustness --model model.pt --images faces --partition attributes.csv \\
        --label age --classes 0-14,15-24,25-39,40-59,60+ --mean 0.5 --std 0.5 --output audit

  Two attributes, two attacks on 2,000 images, and a checkpoint file:
    fairness-audits robustness --model nets.py:network --images faces --partition rows.parquet \\
        --label y --group sex --group race --attack deepfool --attack carlini_wagner --points 2000 \\
        --checkpoint distances.npz --output audit

  Certified radii of the smoothed model, with fewer samples than published:
    fairness-audits robustness --model model.pt2 --trust-pickle --images faces \\
        --partition attributes.csv --label y --attack smoothing --attack-setting smoothing.samples=1000 --points 300

  Rows of a table under any model, distances in standard deviations:
    fairness-audits robustness --data rows.csv --label income --positive '>50K' --group sex,race \\
        --model model.joblib --trust-pickle --output audit

The partition file has a row for each image, with its file name, true class and groups:
    file,age,sex
    a/0001.png,15-24,female
"""
COMMAND = "robustness"
PAGE = "See docs/guide/robustness_bias.md for the measures, the attacks, the files and the fields of the JSON."
FILES = ("audit.json", "robustness.html", "distances.csv", "groups.csv")
WRITES = "{}, the page {}, {} (every image or row), {} and the figures of the curves"
Channels = Number | Sequence[Number]
AttackName = Literal["deepfool", "carlini_wagner", "fmn", "smoothing", "exact"]


class Images(Options, title="images and groups"):
    images: Path | None = source("a folder of PNG and JPEG files, at any depth", None, "FOLDER", python="X")
    partition: Path | None = source(
        "CSV or Parquet with one row per image: its file, true class and groups", None, "FILE", python="groups"
    )
    file: str | None = source(
        "the column with the files' paths relative to the folder (default: file, filename, image or path, otherwise "
        "the first column)",
        None,
        "COLUMN",
    )


class Compared(Options, title="images and groups"):
    label: str | None = source(
        "the column with the true class. Without it, the model's own prediction is used as the label, and every "
        "image or row counts as classified correctly",
        None,
        "COLUMN",
        python="y",
    )
    group: Sequence[str] = source(
        "columns whose levels are compared; several are possible, also the label (default for images: all other "
        "columns)",
        (),
        "COLUMN",
        python="groups",
    )
    min_group: Annotated[int, at_least(2)] = option(
        "smallest number of audited images or rows that each group must have", 10, "N"
    )
    points: Annotated[int, at_least(2)] | None = option(
        "number of images or rows to audit, drawn so that classes and groups keep their shares. A larger N includes "
        "all images or rows of a smaller N (default: all)",
        None,
        "N",
    )


class Shape(Options, title="images and groups"):
    resize: Annotated[Sequence[Count], Limit("(two: height and width)", lambda size: len(size) == 2)] | None = option(
        "resize every image first (bilinear, antialiased). Distances then refer to the resized images (default: "
        "original size)",
        None,
        "H,W",
    )
    channels: Literal[1, 3] | None = source(
        "1 for grey, 3 for colour (default: 1 if all images are grey)", None, python="images of {value} channel(s)"
    )


class Rows(Options, title="rows in place of images"):
    data: Path | None = source(
        "the rows to audit, with their groups: CSV or Parquet. Distances are in standard deviations of the columns. "
        "Categories and columns of two values switch as a whole, which counts as one standard deviation",
        None,
        "FILE",
        python="X",
    )
    one_hot: Sequence[str] = option(
        "prefixes of column names, such as race_. The columns with a prefix are the indicators of one category",
        (),
        "A,B",
    )
    sensitive: Sequence[str] = source(
        "columns with sensitive attributes. Distances are then in the fair metric, in which changes along the "
        "directions that separate their groups are short. Two levels, or one level against the rest",
        (),
        "A,B=LEVEL",
        python=("sensitive", "sensitive=({column} == {level})"),
    )
    directions: Path | None = source(
        ".npy file of shape (number, features): the sensitive directions, in the columns' units", None, "FILE"
    )
    sensitive_cost: Annotated[float, Limit("in (0, 1]", lambda cost: 0 < cost <= 1)] | None = option(
        "length of one standard deviation along the sensitive directions (default: 0.1)", None, "C"
    )


class Input(Options, title="model"):
    mean: Channels = option("mean subtracted from each channel before the model, for pixels in [0, 1]", 0.0, "M|R,G,B")
    std: Channels = option(
        "standard deviation that divides each channel before the model. Distances stay in pixels in [0, 1]",
        1.0,
        "S|R,G,B",
    )


class Attack(Options, title="distances"):
    attack: Annotated[Sequence[AttackName], not_empty] | None = option(
        "deepfool: upper bounds, fast; fmn: tighter, about 5 times the cost; carlini_wagner: as published, about "
        "100 times the cost; smoothing: certified lower bounds for the smoothed model, even more expensive; exact: "
        "linear models only, and for rows one decision tree or a network with one small hidden layer. Several are "
        "possible; the verdict is about the first (default: deepfool; for rows upper bounds by a search)",
        None,
        "NAME",
    )


class Attacks(Options, title="distances"):
    attack_setting: Sequence[str] | Mapping[str, Any] = option(
        "a setting of an attack, such as deepfool.steps=50 or smoothing.sigma=0.25; several are possible (list: "
        "docs/guide/robustness_bias.md)",
        (),
        "ATTACK.KEY=VALUE",
    )
    checkpoint: Path | None = option(
        ".npz file that stores distances as they are computed. The same audit continues where it stopped, also "
        "with more --points or another --attack",
        None,
        "FILE",
    )
    checkpoint_key: str | None = option(
        "name of the model for the checkpoint, needed if the model is a function. Change it whenever the model changes",
        None,
        "TEXT",
    )


class Comparison(Options, title="comparison"):
    budget: Positive | None = option("largest perturbation that counts (default: the largest found)", None, "T")
    alpha: Share = option("level of the tests and intervals", 0.05)
    bootstraps: Count = option("number of bootstrap resamples for the intervals", 2000, "B")
    permutations: Count = option("number of permutations for the p-values", 10000, "B")
    seed: Size = option("random seed", 0)


class Settings(
    Images, Compared, Shape, Rows, Inputs, Reading, Network, Input, Computed, Attack, Attacks, Comparison, Output
):
    """Every option of the robustness audit."""

    @property
    def dtype(self) -> Literal["float32", "float64"]:
        """Return the precision in which a network is computed."""
        return "float32" if self.data is None else "float64"


def refuse(settings: Settings, kinds: Sequence[type[Options]], only: str) -> None:
    """Raise InvalidInput if an option of these kinds, which apply to other inputs ``only``, has no default value."""
    for kind in kinds:
        for _, one, _ in option_fields(kind):
            if getattr(settings, one.name) != one.default:
                place = flag(one.name)
                raise InvalidInput(f"{place} applies to {only} only", option=one.name, remedy="Leave it out")


class OfRows(Rows, Inputs, Compared, Reading, Network, Computed, Attack, Comparison, Output):
    """The options that apply to the rows of a table."""
