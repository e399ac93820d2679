"""FlipTest: who would be decided otherwise, had they been of the other group?

Each person of one group is matched with a counterpart in the other by a transport map, which moves the whole of one
group onto the other while moving everybody as little as possible. The positive flipset are those who are decided
positively while their counterparts are not; the negative flipset, the reverse. The transparency report ranks the
features in which a flipset differs from its counterparts. Sizes come with intervals; each line of the report with an
interval, a p-value and what they make of it (noise, as the whole group, or it stands out); and the noise floor says how
large flipsets are between groups that are alike.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from pipeline.cli.arguments import (
    add_data_arguments,
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
  A network of the columns of a file, everything written into a folder:
    python -m pipeline audit fliptest --data rows.parquet --group race \\
        --source Black --target White --predict model.pt --output audit

  A scikit-learn model, which takes text columns too, in both directions; people are named by their id:
    python -m pipeline audit fliptest --data rows.csv --group sex --source Female --target Male --id person \\
        --label hired --predict hiring.py:predict --threshold 0.5 --reverse --output audit
    # hiring.py:  model = joblib.load("model.joblib")
    #             def predict(frame): return model.predict_proba(frame)

  Equalized odds: only people of true label 1, and then of label 0:
    python -m pipeline audit fliptest --data rows.parquet --group race --source Black --target White \\
        --label recidivism --given-label 1 --predict model.pt --output audit_1

  At most 1,000 people of each group, another map, and 39 deals for the noise floor:
    python -m pipeline audit fliptest --data rows.parquet --group race --source Black --target White \\
        --predict model.pt --limit 1000 --map wgan --map-setting steps=5000 --null-draws 39

exit status: 0 the audit ran, whatever its verdict; 2 there is something to mend, said on stderr; 1 an unforeseen
error. docs/fliptest.md explains the method, the files and the JSON."""


def add_arguments(parser: ArgumentParser) -> None:
    """Whose counterparts are sought where and how, and what the model is."""
    parser.usage = (
        "%(prog)s --data FILE --group COLUMN --source LEVEL --target LEVEL\n           --predict MODEL [other options]"
    )
    data = add_data_arguments(parser, apart="group", label=False)
    option(data, "--id COLUMN", "a column that names the rows in results; no input of the model")
    option(data, "--categorical A,B", "columns of numbers that are codes of categories", (), type=names)
    option(
        data,
        "--standardize continuous|none|A,B",
        "measure columns in standard deviations of both groups together: those of more than two values, none, or the "
        "named ones. The model sees the columns as they are",
        "continuous",
        type=standardization,
    )
    option(data, "--limit N", "at most N rows of each group, drawn at random (default: all)", type=whole_number(1))
    groups = parser.add_argument_group("groups")
    option(groups, "--group COLUMN", "the column with the protected attribute", required=True)
    option(groups, "--source LEVEL", "the group whose people are looked at", required=True)
    option(groups, "--target LEVEL", "the group that counterparts are sought in", required=True)
    option(groups, "--reverse", "look at the target group's people too", action="store_true")
    option(
        groups,
        "--given-label",
        "only rows of this true label (equalized odds); needs --label",
        type=int,
        choices=(0, 1),
    )
    model = parser.add_argument_group("model")
    option(
        model,
        "--predict MODEL",
        "model.pt (TorchScript), model.pt2 (torch.export), package.module:name or path/to/file.py:name, where the "
        "name is a network, a function of a data frame of the features, or a function without arguments that returns "
        "one of these. It gives a decision, a probability or a score for each row, or two columns of scores",
        required=True,
    )
    option(
        model,
        "--threshold T",
        "the decision is positive where the score is at least T (default: 0.5 for decisions and probabilities)",
        type=number(float("-inf")),
    )
    add_network_arguments(model)
    add_map_arguments(parser)
    add_output_arguments(parser, "audit.json, the page fliptest.html, flipsets.csv, transparency.csv and the figures")


def add_map_arguments(parser: ArgumentParser) -> None:
    """How counterparts are found, and how sure of them one can be."""
    group = parser.add_argument_group("map")
    option(
        group,
        "--map NAME",
        "entropic: smooth, stable and fast; exact: counterparts are people of the file; wgan: as published; see "
        "docs/fliptest.md; auto: entropic, and exact where that is poor and the groups are small (default: auto)",
        "auto",
    )
    option(
        group,
        "--map-setting KEY=VALUE",
        "a setting of the map that differs from its file in conf/transport; may be repeated",
        [],
        action="append",
    )
    option(
        group,
        "--null-draws B",
        "fit the map B times more, between groups that are dealt at random: the noise floor (default: 39 where the "
        "map is fitted fast, else 0)",
        type=whole_number(0),
    )
    option(group, "--alpha", "level of tests and intervals", 0.05, type=number(0, 1))
    option(group, "--seed", "seed of all random numbers", 0, type=whole_number(0))


def run(arguments: Namespace) -> int:
    """Audit, print the verdict, and write what was asked for."""
    from pipeline.cli.audit.fliptest.audit import audited
    from pipeline.cli.delivery import carried_out

    return carried_out(arguments, audited)
