"""Loss-ratio audit: does the model treat comparable individuals alike?

Each audited row is moved, by following the gradient of its own loss, to a comparable individual: one that a fair metric
holds to be alike and that the model treats worse. The audit tests the null hypothesis that this multiplies the loss by
at most --delta on average, and says with which confidence it is more. The error-rate ratio is tested beside it.

The fair metric ignores differences along sensitive directions. Either these are learned from sensitive attributes
(--sensitive: the directions that tell their groups apart), or they are given (--directions).
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pipeline.cli.arguments import (
    add_data_arguments,
    add_model_arguments,
    add_output_arguments,
    names,
    number,
    whole_number,
)

EXAMPLES = """\
examples:
  A TorchScript network on held-out rows, the metric learned from two attributes:
    python -m pipeline audit loss-ratio --data rows.parquet --label income \\
        --positive '>50K' --model model.pt --sensitive sex,race=White \\
        --standardize continuous --output audit

  A network built by a function in a file, directions of one's own, JSON only:
    python -m pipeline audit loss-ratio --data rows.csv --label y \\
        --model nets/credit.py:network --directions directions.npy --json audit.json

exit status: 0 the audit ran, whatever its verdict; 2 there is something to mend,
said on stderr; 1 an unforeseen error. docs/auditing.md explains more, and the JSON."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments shared by all audits, and those of the fair metric, the test and the attack."""
    parser.usage = (
        "%(prog)s --data FILE --label COLUMN --model MODEL\n"
        "           (--sensitive A,B=LEVEL | --directions FILE) [other options]"
    )
    data = add_data_arguments(parser)
    data.add_argument(
        "--standardize",
        metavar="continuous|none|A,B",
        help="measure columns in standard deviations: those of more than two values, none, or the named ones. The "
        "model sees the columns as they are (default: none, refused where columns are far from unit scale)",
    )
    data.add_argument("--points", metavar="N", type=whole_number(2), help="audit N rows drawn at random (default: all)")
    data.add_argument("--seed", type=whole_number(0), default=0, help="seed of that draw (default: %(default)s)")
    add_model_arguments(parser)
    metric = parser.add_argument_group("fair metric (one of the first two)")
    source = metric.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--sensitive",
        metavar="A,B=LEVEL",
        type=names,
        help="columns with sensitive attributes, to learn the metric from: two levels, or one level against the rest",
    )
    source.add_argument(
        "--directions",
        metavar="FILE",
        type=Path,
        help=".npy of shape (number, features): displacements that should make no difference, in the columns' units",
    )
    metric.add_argument(
        "--metric-data", metavar="FILE", type=Path, help="rows to learn the metric from (default: the rows of --data)"
    )
    test = parser.add_argument_group("test and attack")
    defaults = "(default: %(default)s)"
    test.add_argument("--delta", type=number(0), default=1.25, help=f"tolerated ratio, from the 4/5 rule {defaults}")
    test.add_argument("--alpha", type=number(0, 1), default=0.05, help=f"level of the test {defaults}")
    test.add_argument(
        "--regularization", metavar="LAMBDA", type=number(0), default=50.0, help=f"weight of fair distance {defaults}"
    )
    test.add_argument(
        "--step-size", metavar="ETA", type=number(0), default=0.01, help=f"at most 1 / LAMBDA, to be stable {defaults}"
    )
    test.add_argument("--steps", type=whole_number(1), default=500, help=f"number of gradient steps {defaults}")
    output = add_output_arguments(parser, "audit.json, examples.csv and the figure loss_ratio.png and .pdf")
    output.add_argument(
        "--examples", metavar="K", type=whole_number(0), default=10, help=f"how many unfair examples {defaults}"
    )


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.loss_ratio.audit import audited, deliver
    from pipeline.cli.audit.loss_ratio.verdict import page
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited, deliver, lambda audit: page(audit.document))
