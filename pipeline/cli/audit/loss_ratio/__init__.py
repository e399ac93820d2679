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
    add_network_arguments,
    add_output_arguments,
    names,
    number,
    option,
    standardization,
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
    option(
        data,
        "--standardize continuous|none|A,B",
        "measure columns in standard deviations: those of more than two values, none, or the named ones. The model "
        "sees the columns as they are (default: none, refused where columns are far from unit scale)",
        type=standardization,
    )
    option(data, "--points N", "audit N rows drawn at random (default: all)", type=whole_number(2))
    option(data, "--seed", "seed of that draw", 0, type=whole_number(0))
    add_network_arguments(add_model_arguments(parser))
    metric = parser.add_argument_group("fair metric (one of the first two)")
    source = metric.add_mutually_exclusive_group(required=True)
    option(
        source,
        "--sensitive A,B=LEVEL",
        "columns with sensitive attributes, to learn the metric from: two levels, or one level against the rest",
        type=names,
    )
    option(
        source,
        "--directions FILE",
        ".npy of shape (number, features): displacements that should make no difference, in the columns' units",
        type=Path,
    )
    option(metric, "--metric-data FILE", "rows to learn the metric from (default: the rows of --data)", type=Path)
    test = parser.add_argument_group("test and attack")
    option(test, "--delta", "tolerated ratio, from the 4/5 rule", 1.25, type=number(0))
    option(test, "--alpha", "level of the test", 0.05, type=number(0, 1))
    option(test, "--regularization LAMBDA", "weight of fair distance", 50.0, type=number(0))
    option(test, "--step-size ETA", "at most 1 / LAMBDA, to be stable", 0.01, type=number(0))
    option(test, "--steps", "number of gradient steps", 500, type=whole_number(1))
    output = add_output_arguments(parser, "audit.json, the page loss_ratio.html, examples.csv and the figure")
    option(output, "--examples K", "how many unfair examples", 10, type=whole_number(0))


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.loss_ratio.audit import audited
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited)
