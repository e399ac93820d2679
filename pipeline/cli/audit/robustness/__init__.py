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

from pipeline.cli.arguments import add_output_arguments, names, number, whole_number

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
KINDS = ("auto", "logits", "log-probabilities", "probability")


def add_arguments(parser: ArgumentParser) -> None:
    """What is audited, how distances are found, and how groups are compared."""
    parser.usage = "%(prog)s --model MODEL --images FOLDER|FILE --partition FILE [other options]"
    _add_images(parser)
    _add_model(parser)
    _add_distances(parser)
    _add_comparison(parser)
    add_output_arguments(
        parser,
        "audit.json, distances.csv (every image), groups.csv, the figures of the curves and the page robustness.html "
        "that holds them",
    )


def _add_images(parser: ArgumentParser) -> None:
    data = parser.add_argument_group("images and groups")
    data.add_argument(
        "--images",
        metavar="FOLDER|FILE",
        type=Path,
        required=True,
        help="a folder of PNG and JPEG files, at any depth; or .npy, .npz of shape (n, c, h, w), (n, h, w, c) or "
        "(n, h, w), uint8 or floating in [0, 1]",
    )
    data.add_argument(
        "--partition",
        metavar="FILE",
        type=Path,
        required=True,
        help="CSV or Parquet with a row for each image: its file name, true class and groups. For arrays the rows are "
        "in the order of the images",
    )
    data.add_argument(
        "--file",
        metavar="COLUMN",
        help="the column of file names, relative to the folder; folders and suffix may be left out where that is "
        "unique (default: file, filename, image or path, else the first column)",
    )
    data.add_argument(
        "--label",
        metavar="COLUMN",
        help="the column with the true class. Without it the model's own prediction is taken for the label: every "
        "image then counts as classified correctly",
    )
    data.add_argument(
        "--classes",
        metavar="A,B,C",
        type=names,
        help="names of the model's outputs, in their order (needed where labels are not 0, 1, 2, ...)",
    )
    data.add_argument(
        "--group",
        metavar="COLUMN",
        action="extend",
        type=names,
        default=[],
        help="columns whose levels are compared; may be repeated, and may name the label (default: all other columns "
        "of at most 20 levels)",
    )
    data.add_argument(
        "--min-group",
        metavar="N",
        type=whole_number(2),
        default=10,
        help="refuse groups of fewer audited images (default: %(default)s)",
    )
    data.add_argument(
        "--points",
        metavar="N",
        type=whole_number(2),
        help="audit N images, drawn so that classes and groups keep their shares; a larger N adds to a smaller one "
        "(default: all)",
    )
    data.add_argument(
        "--resize",
        metavar="S|HxW",
        type=side,
        help="resize every image first (bilinear, antialiased). Distances are then of the resized images (default: as "
        "they are)",
    )
    data.add_argument(
        "--channels", type=int, choices=(1, 3), help="grey or colour (default: grey where all images are)"
    )
    data.add_argument("--array", metavar="NAME", help="the array in an .npz (default: the only one, or images)")
    data.add_argument(
        "--layout", choices=("nchw", "nhwc"), help="order of an array's axes (default: where 1 or 3 channels are)"
    )


def _add_model(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        required=True,
        metavar="MODEL",
        help="model.pt (TorchScript), model.pt2 (torch.export), package.module:name or path/to/file.py:name, where the "
        "name is a network, a function x -> output, or a function without arguments that returns one of these. It "
        "takes images (n, c, h, w) and returns (n, K) scores of K classes, or (n,) or (n, 1) of class 1",
    )
    group.add_argument(
        "--mean",
        metavar="M|R,G,B",
        type=numbers,
        default=(0.0,),
        help="subtracted from each channel before the model, in pixels in [0, 1] (default: 0)",
    )
    group.add_argument(
        "--std",
        metavar="S|R,G,B",
        type=numbers,
        default=(1.0,),
        help="each channel is divided by this before the model (default: 1). Distances stay in pixels in [0, 1]",
    )
    group.add_argument(
        "--output-kind",
        choices=KINDS,
        default="auto",
        help="what the model returns (default: read off the values, and said in the verdict)",
    )
    group.add_argument(
        "--trust-pickle",
        action="store_true",
        help="open a .pt file that holds a pickled network. A pickle can run any program when it is opened: only for "
        "files whose maker you trust",
    )
    group.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: a GPU where one is visible)")


def _add_distances(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("distances")
    group.add_argument(
        "--attack",
        action="append",
        choices=ATTACKS,
        help="deepfool: upper bounds, fast; fmn: tighter, about five times the cost; carlini_wagner: as published, "
        "near a hundred times the cost; smoothing: certified lower bounds of the smoothed model, dearer still; exact: "
        "linear models. May be repeated; the verdict is of the first (default: deepfool)",
    )
    group.add_argument(
        "--attack-setting",
        metavar="ATTACK.KEY=VALUE",
        action="append",
        default=[],
        help="such as deepfool.steps=50 or smoothing.sigma=0.25; docs/robustness.md lists them; may be repeated",
    )
    group.add_argument(
        "--checkpoint",
        metavar="FILE",
        type=Path,
        help="keep distances in this .npz while they are computed: the same command continues where it stopped, and "
        "more --points or another --attack take over what is there",
    )
    group.add_argument(
        "--batch-size", metavar="N", type=whole_number(1), help="images attacked together (default: what suits)"
    )


def _add_comparison(parser: ArgumentParser) -> None:
    defaults = "(default: %(default)s)"
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--denominator",
        choices=DENOMINATORS,
        default="paper",
        help="what the verdict is of. paper: all images of a group, those classified wrongly at distance 0; correct: "
        f"those classified correctly alone. Both are reported {defaults}",
    )
    group.add_argument(
        "--budget",
        metavar="T",
        type=number(0),
        help="the largest perturbation that counts (default: the largest found)",
    )
    group.add_argument("--alpha", type=number(0, 1), default=0.05, help=f"level of tests and intervals {defaults}")
    group.add_argument(
        "--bootstraps", metavar="B", type=whole_number(1), default=2000, help=f"resamples for the intervals {defaults}"
    )
    group.add_argument(
        "--permutations", metavar="B", type=whole_number(1), default=10_000, help=f"for the p-values {defaults}"
    )
    group.add_argument("--seed", type=whole_number(0), default=0, help=f"seed of all random numbers {defaults}")


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.robustness.audit import audited, deliver
    from pipeline.cli.audit.robustness.verdict import page
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited, deliver, lambda audit: page(audit.document), arguments.checkpoint)


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
