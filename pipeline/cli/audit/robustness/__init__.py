"""Robustness audit: is one group of images closer to the decision boundary than the others?

Takes an image classifier, images, and a table that says which groups each image belongs to. For every image that the
model classifies correctly it looks for the smallest change that makes it err: the distance to the decision boundary,
L2, in pixels in [0, 1]. It then compares the groups: I_P(tau), the share of a group that withstands changes of size
tau; RB(P, tau), by how much that differs from all others; and sigma(P), the difference over all sizes, with its
interval and a p-value (Nanda et al., FAccT 2021).

Attacks bound distances from above, smoothing bounds those of the smoothed model from below; of linear models they are
known exactly.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from pipeline.cli.arguments import (
    add_model_arguments,
    add_network_arguments,
    add_output_arguments,
    names,
    number,
    option,
    whole_number,
)

EXAMPLES = """\
examples:
  A folder of images, every column of few values compared, everything written into a folder:
    python -m pipeline audit robustness --model model.pt --images faces --partition attributes.csv \\
        --label age --classes 0-14,15-24,25-39,40-59,60+ --mean 0.5 --std 0.5 --output audit

  An array of images, two attributes, two attacks on 2,000 images, and a file that keeps distances on the way:
    python -m pipeline audit robustness --model nets.py:network --images images.npy --partition rows.parquet \\
        --label y --group sex --group race --attack deepfool --attack carlini_wagner --points 2000 \\
        --checkpoint distances.npz --output audit

  Certified radii of the smoothed model, fewer samples than published:
    python -m pipeline audit robustness --model model.pt2 --images faces --partition attributes.csv --label y \\
        --attack smoothing --attack-setting smoothing.samples=1000 --points 300

The attributes have a row for each image: its file name, its true class, its groups:
    file,age,sex
    a/0001.png,15-24,female

exit status: 0 the audit ran, whatever its verdict; 2 there is something to mend, said on stderr; 1 an unforeseen
error. docs/robustness.md explains measures, attacks, the files and the JSON."""

ATTACKS = ("deepfool", "carlini_wagner", "fmn", "smoothing", "exact")
DENOMINATORS = ("paper", "correct")


def add_arguments(parser: ArgumentParser) -> None:
    """What is audited, how distances are found, and how groups are compared."""
    parser.usage = "%(prog)s --model MODEL --images FOLDER|FILE --partition FILE [other options]"
    _add_images(parser)
    _add_model(parser)
    _add_distances(parser)
    _add_comparison(parser)
    add_output_arguments(
        parser,
        "audit.json, the page robustness.html, distances.csv (every image), groups.csv and the figures of the curves",
    )


def _add_images(parser: ArgumentParser) -> None:
    data = parser.add_argument_group("images and groups")
    option(
        data,
        "--images FOLDER|FILE",
        "a folder of PNG and JPEG files, at any depth; or .npy, .npz of shape (n, c, h, w), (n, h, w, c) or (n, h, "
        "w), uint8 or floating in [0, 1]",
        type=Path,
        required=True,
    )
    option(
        data,
        "--partition FILE",
        "CSV or Parquet with a row for each image: its file name, true class and groups. For arrays the rows are in "
        "the order of the images",
        type=Path,
        required=True,
    )
    option(
        data,
        "--file COLUMN",
        "the column of file names, relative to the folder; folders and suffix may be left out where that is unique "
        "(default: file, filename, image or path, else the first column)",
    )
    option(
        data,
        "--label COLUMN",
        "the column with the true class. Without it the model's own prediction is taken for the label: every image "
        "then counts as classified correctly",
    )
    option(
        data,
        "--classes A,B,C",
        "names of the model's outputs, in their order (needed where labels are not 0, 1, 2, ...)",
        type=names,
    )
    option(
        data,
        "--group COLUMN",
        "columns whose levels are compared; may be repeated, and may name the label (default: all other columns of at"
        " most 20 levels)",
        [],
        action="extend",
        type=names,
    )
    option(data, "--min-group N", "refuse groups of fewer audited images", 10, type=whole_number(2))
    option(
        data,
        "--points N",
        "audit N images, drawn so that classes and groups keep their shares; a larger N adds to a smaller one "
        "(default: all)",
        type=whole_number(2),
    )
    option(
        data,
        "--resize S|HxW",
        "resize every image first (bilinear, antialiased). Distances are then of the resized images (default: as they"
        " are)",
        type=side,
    )
    option(data, "--channels", "grey or colour (default: grey where all images are)", type=int, choices=(1, 3))
    option(data, "--array NAME", "the array in an .npz (default: the only one, or images)")
    option(data, "--layout", "order of an array's axes (default: where 1 or 3 channels are)", choices=("nchw", "nhwc"))


def _add_model(parser: ArgumentParser) -> None:
    takes = ". It takes images (n, c, h, w)"
    group = add_model_arguments(parser, takes, "(n, K) scores of K classes, or (n,) or (n, 1) of class 1")
    option(
        group,
        "--mean M|R,G,B",
        "subtracted from each channel before the model, in pixels in [0, 1] (default: 0)",
        (0.0,),
        type=numbers,
    )
    option(
        group,
        "--std S|R,G,B",
        "each channel is divided by this before the model (default: 1). Distances stay in pixels in [0, 1]",
        (1.0,),
        type=numbers,
    )
    add_network_arguments(group, dtype=False)


def _add_distances(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("distances")
    option(
        group,
        "--attack",
        "deepfool: upper bounds, fast; fmn: tighter, about five times the cost; carlini_wagner: as published, near a "
        "hundred times the cost; smoothing: certified lower bounds of the smoothed model, dearer still; exact: linear"
        " models. May be repeated; the verdict is of the first (default: deepfool)",
        action="append",
        choices=ATTACKS,
    )
    option(
        group,
        "--attack-setting ATTACK.KEY=VALUE",
        "such as deepfool.steps=50 or smoothing.sigma=0.25; docs/robustness.md lists them; may be repeated",
        [],
        action="append",
    )
    option(
        group,
        "--checkpoint FILE",
        "keep distances in this .npz while they are computed: the same command continues where it stopped, and more "
        "--points or another --attack take over what is there",
        type=Path,
    )
    option(group, "--batch-size N", "images attacked together (default: what suits)", type=whole_number(1))


def _add_comparison(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("comparison")
    option(
        group,
        "--denominator",
        "what the verdict is of. paper: all images of a group, those classified wrongly at distance 0; correct: those"
        " classified correctly alone. Both are reported",
        "paper",
        choices=DENOMINATORS,
    )
    option(group, "--budget T", "the largest perturbation that counts (default: the largest found)", type=number(0))
    option(group, "--alpha", "level of tests and intervals", 0.05, type=number(0, 1))
    option(group, "--bootstraps B", "resamples for the intervals", 2000, type=whole_number(1))
    option(group, "--permutations B", "for the p-values", 10000, type=whole_number(1))
    option(group, "--seed", "seed of all random numbers", 0, type=whole_number(0))


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.robustness.audit import audited
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited, kept=arguments.checkpoint)


def numbers(text: str) -> tuple[float, ...]:
    """``0.5`` or ``0.485,0.456,0.406``."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or any(abs(value) == float("inf") or value != value for value in values):
        raise ArgumentTypeError(f"expected numbers separated by commas, one or one a channel, found {text!r}")
    return values


def side(text: str) -> tuple[int, int]:
    """``64`` or ``48x64`` as height and width."""
    height, _, width = text.lower().partition("x")
    try:
        size = int(height), int(width or height)
    except ValueError:
        size = 0, 0
    if min(size) < 1:
        raise ArgumentTypeError(f"expected a side S or HxW in pixels, such as 64 or 48x64, found {text!r}")
    return size
