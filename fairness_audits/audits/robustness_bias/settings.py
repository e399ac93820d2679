"""Robustness audit: is one group of images closer to the decision boundary than the others?

Takes an image classifier, images, and a table that says which groups each image belongs to. For every image that the
model classifies correctly it looks for the smallest change that makes it err: the distance to the decision boundary,
L2, in pixels in [0, 1]. It then compares the groups: I_P(tau), the share of a group that withstands changes of size
tau; RB(P, tau), by how much that differs from all others; and sigma(P), the difference over all sizes, with its
interval and a p-value (Nanda et al., FAccT 2021).

Attacks bound distances from above, smoothing bounds those of the smoothed model from below; of linear models they are
known exactly.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fairness_audits.options import Computed, Network, Number, Options, Output, Reading, option, source
from fairness_audits.validation import Count, Limit, Positive, Share, Size, at_least, not_empty

EXAMPLES = """\
examples:
  A folder of images, every other column compared, everything written into a folder:
    fairness-audits robustness --model model.pt --images faces --partition attributes.csv \\
        --label age --classes 0-14,15-24,25-39,40-59,60+ --mean 0.5 --std 0.5 --output audit

  Two attributes, two attacks on 2,000 images, and a file that keeps distances on the way:
    fairness-audits robustness --model nets.py:network --images faces --partition rows.parquet \\
        --label y --group sex --group race --attack deepfool --attack carlini_wagner --points 2000 \\
        --checkpoint distances.npz --output audit

  Certified radii of the smoothed model, fewer samples than published:
    fairness-audits robustness --model model.pt2 --trust-pickle --images faces \\
        --partition attributes.csv --label y --attack smoothing --attack-setting smoothing.samples=1000 --points 300

The attributes have a row for each image: its file name, its true class, its groups:
    file,age,sex
    a/0001.png,15-24,female
"""
COMMAND = "robustness"
PAGE = "docs/guide/robustness_bias.md explains measures, attacks, the files and the JSON."
FILES = "audit.json, the page robustness.html, distances.csv (every image), groups.csv and the figures of the curves"
Channels = Number | Sequence[Number]
AttackName = Literal["deepfool", "carlini_wagner", "fmn", "smoothing", "exact"]


class Data(Options, title="images and groups"):
    images: Path = source("a folder of PNG and JPEG files, at any depth", metavar="FOLDER")
    partition: Path = source(
        "CSV or Parquet with a row for each image: its file, true class and groups", metavar="FILE", python="groups"
    )
    file: str | None = source(
        "the column of the files' paths below the folder (default: file, filename, image or path, else the first "
        "column)",
        None,
        "COLUMN",
    )
    label: str | None = source(
        "the column with the true class. Without it the model's own prediction is taken for the label: every image "
        "then counts as classified correctly",
        None,
        "COLUMN",
        python="y",
    )
    group: Sequence[str] = source(
        "columns whose levels are compared; may be repeated, and may name the label (default: all other columns)",
        (),
        "COLUMN",
        python="groups",
    )
    min_group: Annotated[int, at_least(2)] = option("refuse groups of fewer audited images", 10, "N")
    points: Annotated[int, at_least(2)] | None = option(
        "audit N images, drawn so that classes and groups keep their shares; a larger N adds to a smaller one "
        "(default: all)",
        None,
        "N",
    )
    resize: Annotated[Sequence[Count], Limit("of two, height and width", lambda size: len(size) == 2)] | None = option(
        "resize every image first (bilinear, antialiased). Distances are then of the resized images (default: as they "
        "are)",
        None,
        "H,W",
    )
    channels: Literal[1, 3] | None = source(
        "grey or colour (default: grey where all images are)", None, python="images of {value} channel(s)"
    )


class Input(Options, title="model"):
    mean: Channels = option("subtracted from each channel before the model, in pixels in [0, 1]", 0.0, "M|R,G,B")
    std: Channels = option(
        "each channel is divided by this before the model. Distances stay in pixels in [0, 1]", 1.0, "S|R,G,B"
    )


class Attacks(Options, title="distances"):
    attack: Annotated[Sequence[AttackName], not_empty] = option(
        "deepfool: upper bounds, fast; fmn: tighter, about five times the cost; carlini_wagner: as published, near a "
        "hundred times the cost; smoothing: certified lower bounds of the smoothed model, dearer still; exact: linear "
        "models. May be repeated; the verdict is of the first (default: deepfool)",
        ("deepfool",),
        "NAME",
    )
    attack_setting: Sequence[str] | Mapping[str, Any] = option(
        "such as deepfool.steps=50 or smoothing.sigma=0.25; docs/guide/robustness_bias.md lists them; may be repeated",
        (),
        "ATTACK.KEY=VALUE",
    )
    checkpoint: Path | None = option(
        "keep distances in this .npz while they are computed: the same command continues where it stopped, and more "
        "--points or another --attack take over what is there",
        None,
        "FILE",
    )


class Comparison(Options, title="comparison"):
    budget: Positive | None = option("the largest perturbation that counts (default: the largest found)", None, "T")
    alpha: Share = option("level of tests and intervals", 0.05)
    bootstraps: Count = option("resamples for the intervals", 2000, "B")
    permutations: Count = option("for the p-values", 10000, "B")
    seed: Size = option("seed of all random numbers", 0)


class Settings(Data, Reading, Network, Input, Computed, Attacks, Comparison, Output):
    """Every option of the robustness audit."""
