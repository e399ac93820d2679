"""Loss-ratio audit: does the model treat comparable individuals alike?

Each audited row is moved, by following the gradient of its own loss, to a comparable individual: one that a fair metric
holds to be alike and that the model treats worse. The audit tests the null hypothesis that this multiplies the loss by
at most --delta on average, and says with which confidence it is more. The error-rate ratio is tested beside it.

The fair metric ignores differences along sensitive directions. Either these are learned from sensitive attributes
(--sensitive: the directions that tell their groups apart), or they are given (--directions).
"""

from __future__ import annotations

from pipeline.cli.options import DATA, DTYPE, MODEL, NETWORK, TWO_CLASSES

EXAMPLES = """\
examples:
  A TorchScript network on held-out rows, the metric learned from two attributes:
    python -m pipeline audit loss-ratio --data rows.parquet --label income \\
        --positive '>50K' --model model.pt --sensitive sex,race=White \\
        --standardize continuous --output audit

  A network built by a function in a file, directions of one's own, JSON only:
    python -m pipeline audit loss-ratio --data rows.csv --label y \\
        --model nets/credit.py:network --directions directions.npy --json audit.json
"""
PAGE = "docs/auditing.md explains more, and the JSON."
FILES = "audit.json, the page loss_ratio.html, examples.csv and the figure"
USAGE = (
    "%(prog)s --data FILE --label COLUMN --model MODEL\n"
    "           (--sensitive A,B=LEVEL | --directions FILE) [other options]"
)
OPTIONS = (
    DATA.format(apart="sensitive", label="! ")
    + """
--standardize continuous|none|A,B ; standardization ; measure columns in standard deviations: those of more than two
  values, none, or the named ones. The model sees the columns as they are (default: none, refused where columns are far
  from unit scale)
--points N ; whole:2 ; audit N rows drawn at random (default: all)
--seed ; whole:0 =0 ; seed of that draw
"""
    + MODEL.format(takes="", returns=TWO_CLASSES)
    + NETWORK
    + DTYPE
    + """
[fair metric (one of the first two)]
--sensitive A,B=LEVEL ; names either! ; columns with sensitive attributes, to learn the metric from: two levels, or one
  level against the rest
--directions FILE ; path either! ; .npy of shape (number, features): displacements that should make no difference, in
  the columns' units
--metric-data FILE ; path ; rows to learn the metric from (default: the rows of --data)
[test and attack]
--delta ; number:0 =1.25 ; tolerated ratio, from the 4/5 rule
--alpha ; number:0:1 =0.05 ; level of the test
--regularization LAMBDA ; number:0 =50 ; weight of fair distance
--step-size ETA ; number:0 =0.01 ; at most 1 / LAMBDA, to be stable
--steps ; whole:1 =500 ; number of gradient steps
[output]
--examples K ; whole:0 =10 ; how many unfair examples
"""
)
