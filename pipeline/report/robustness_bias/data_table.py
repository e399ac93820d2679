"""The data of the study: their partitions, how these add up, and how to get what is not there."""

from __future__ import annotations

from pipeline.audits.robustness_bias.partitions import comparisons, elements
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study, used
from pipeline.report.robustness_bias.agreement_tables import NOT_RUN
from pipeline.report.robustness_bias.network_tables import of_training
from pipeline.report.table import Column, Row, Table


@registry.table(place=7)
def table_partitions(inputs: Inputs) -> Table:
    """Which groups are compared with the others, and of which images. Data that could not be had are listed with how to
    get them.
    """
    found = study.audited(inputs)
    blocks = sorted({study.block_of(name) for name in inputs.config["experiment"]["grid"]})
    missing = study.absences(found)
    sizes = {}
    body = []
    for name in w.IMAGES:
        data = next((one for one in inputs.datasets.values() if one.name == name), None)
        if data is None:
            said = f"{NOT_RUN}: {missing[name]}" if name in missing else "not in this grid"
            body.append(Row((w.dataset_label(name),), (None,) * 6 + ("", said)))
            continue
        sizes[name] = (elements(data.levels), comparisons(data.levels))
        words = ", ".join(f"{w.partition_label(key)} {len(levels)}" for key, levels in data.levels.items())
        cells = (*sizes[name], data.rows, data.train_rows, data.test_rows, data.unreadable)
        body.append(Row((w.dataset_label(name),), (*cells, data.origin, words)))
    whole = [sizes[name] for name in w.PUBLISHED_IMAGES if name in sizes]
    if whole:
        total = [sum(column) for column in zip(*whole, strict=True)]
        body.append(Row((study.together(sizes),), (*total, *(None,) * 4, "", "")))
    return Table(
        title="The data and their partitions.",
        stub=("Data",),
        columns=(
            *(Column(key, decimals=0) for key in ("groups", "comparisons")),
            Column("images", decimals=0),
            Column("train", decimals=0, name="to train"),
            Column("test", decimals=0, name="to test"),
            Column("odd", decimals=0, name="odd files"),
            Column("origin", show="text"),
            Column("partitions", show="text"),
        ),
        rows=tuple(body),
        stamp=of_training(used.stamp(inputs, blocks), "dataset"),
        notes=(
            "Comparisons: a partition into two counts once, as its groups are each other's complement. The paper "
            "counts 151; 10 + 100 + 20 classes of CIFAR-10, CIFAR-100 and its superclasses, 8 and 2 groups of Adience, "
            "5, 2 and 5 of UTKFace are 152 groups or 150 comparisons, and the counts behind Table 1 are those of 150.",
            "Odd files: with a name or content that could not be read in full; they are named in the prepared data.",
        ),
    )
