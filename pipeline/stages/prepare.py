"""Prepare the arrays and splits of a data set from verified raw files or a twin: ``files -> Dataset``.

The result is an ``ImageDataset`` for images, and :class:`pipeline.values.MissingData` with the reason if there are no
files.
"""

import sys
from collections.abc import Sequence

from fairness_audits.files import load_json
from fairness_audits.values import Dataset, ImageDataset
from pipeline.values import MissingData
from pipeline.workflow import stage
from pipeline.workflow.preparation import prepared

LISTED = 20
"""Largest number of unreadable files that are listed by name."""


def main(arguments: Sequence[str] | None = None) -> None:
    options = stage.options(__doc__, arguments, *stage.TASK, "manifest")
    config = options.config
    try:
        manifest = load_json(options.manifest) if options.manifest else None
        dataset = prepared(config["dataset"], config["repetitions"], manifest)
    except (ValueError, OSError) as error:
        sys.exit(f"prepare {config['dataset']['name']}: {error}")
    stage.save(dataset, options)
    if isinstance(dataset, MissingData):
        print(f"{dataset.name} is missing. Its audits are listed as not run.\n{dataset.reason}")
    else:
        print("\n".join(_lines(dataset)))


def _lines(dataset: Dataset | ImageDataset) -> list[str]:
    of = f"{dataset.name} ({dataset.origin}):"
    parts = f"{dataset.train.shape[1]:,} to train and {dataset.test.shape[1]:,} to test;"
    dropped = "; ".join(f"{count:,} {reason}" for reason, count in dataset.dropped.items()) or "none"
    if isinstance(dataset, Dataset):
        n, d = dataset.features.shape
        return [f"{of} {n:,} rows of {d} features, {dataset.repetitions} splits of {parts} rows dropped: {dropped}"]
    n, channels, height, width = dataset.images.shape
    shape = f"{n:,} images of {channels} x {height} x {width} in {len(dataset.classes)} classes"
    odd = dataset.unreadable
    more = [f"  ... and {len(odd) - LISTED:,} more"] if len(odd) > LISTED else []
    listed = [f"unreadable or odd, {len(odd):,}:", *(f"  {name}" for name in odd[:LISTED]), *more] if odd else []
    return [f"{of} {shape}, {parts} dropped: {dropped}", *listed]


if __name__ == "__main__":
    main()
