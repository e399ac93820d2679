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

from argparse import ArgumentTypeError

from pipeline.cli.options import MODEL, NETWORK, parsed

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
"""
COMMAND = "robustness"
PAGE = "docs/robustness.md explains measures, attacks, the files and the JSON."
FILES = "audit.json, the page robustness.html, distances.csv (every image), groups.csv and the figures of the curves"
USAGE = "%(prog)s --model MODEL --images FOLDER|FILE --partition FILE [other options]"


def numbers(text: str) -> tuple[float, ...]:
    """``0.5`` or ``0.485,0.456,0.406``."""
    values = tuple(parsed(float, part) for part in text.split(","))
    if any(value is None or abs(value) == float("inf") for value in values):
        raise ArgumentTypeError(f"expected numbers separated by commas, one or one a channel, found {text!r}")
    return values


def side(text: str) -> tuple[int, int]:
    """``64`` or ``48x64`` as height and width."""
    height, _, width = text.lower().partition("x")
    size = parsed(int, height) or 0, parsed(int, width or height) or 0
    if min(size) < 1:
        raise ArgumentTypeError(f"expected a side S or HxW in pixels, such as 64 or 48x64, found {text!r}")
    return size


KINDS = {"numbers": lambda: numbers, "side": lambda: side}
OPTIONS = (
    """
[images and groups]
--images FOLDER|FILE ; path ! ; a folder of PNG and JPEG files, at any depth; or .npy, .npz of shape (n, c, h, w), (n,
  h, w, c) or (n, h, w), uint8 or floating in [0, 1]
--partition FILE ; path ! ; CSV or Parquet with a row for each image: its file name, true class and groups. For arrays
  the rows are in the order of the images
--file COLUMN ; text ; the column of file names, relative to the folder; folders and suffix may be left out where that
  is unique (default: file, filename, image or path, else the first column)
--label COLUMN ; text ; the column with the true class. Without it the model's own prediction is taken for the label:
  every image then counts as classified correctly
--classes A,B,C ; names ; names of the model's outputs, in their order (needed where labels are not 0, 1, 2, ...)
--group COLUMN ; names * ; columns whose levels are compared; may be repeated, and may name the label (default: all
  other columns of at most 20 levels)
--min-group N ; whole:2 =10 ; refuse groups of fewer audited images
--points N ; whole:2 ; audit N images, drawn so that classes and groups keep their shares; a larger N adds to a smaller
  one (default: all)
--resize S|HxW ; side ; resize every image first (bilinear, antialiased). Distances are then of the resized images
  (default: as they are)
--channels ; one:1:3 ; grey or colour (default: grey where all images are)
--array NAME ; text ; the array in an .npz (default: the only one, or images)
--layout ; one:nchw:nhwc ; order of an array's axes (default: where 1 or 3 channels are)
"""
    + MODEL.format(
        takes=". It takes images (n, c, h, w)", returns="(n, K) scores of K classes, or (n,) or (n, 1) of class 1"
    )
    + """
--mean M|R,G,B ; numbers =0 ; subtracted from each channel before the model, in pixels in [0, 1] (default: 0)
--std S|R,G,B ; numbers =1 ; each channel is divided by this before the model (default: 1). Distances stay in pixels in
  [0, 1]
"""
    + NETWORK
    + """
[distances]
--attack ; one:deepfool:carlini_wagner:fmn:smoothing:exact * ; deepfool: upper bounds, fast; fmn: tighter, about five
  times the cost; carlini_wagner: as published, near a hundred times the cost; smoothing: certified lower bounds of the
  smoothed model, dearer still; exact: linear models. May be repeated; the verdict is of the first (default: deepfool)
--attack-setting ATTACK.KEY=VALUE ; text * ; such as deepfool.steps=50 or smoothing.sigma=0.25; docs/robustness.md
  lists them; may be repeated
--checkpoint FILE ; path ; keep distances in this .npz while they are computed: the same command continues where it
  stopped, and more --points or another --attack take over what is there
--batch-size N ; whole:1 ; images attacked together (default: what suits)
[comparison]
--denominator ; one:correct:paper =correct ; what the verdict is of. correct: the images classified correctly alone;
  paper: all images of a group, those classified wrongly at distance 0, as published. Both are reported
--budget T ; number:0 ; the largest perturbation that counts (default: the largest found)
--alpha ; number:0:1 =0.05 ; level of tests and intervals
--bootstraps B ; whole:1 =2000 ; resamples for the intervals
--permutations B ; whole:1 =10000 ; for the p-values
--seed ; whole:0 =0 ; seed of all random numbers
"""
)
