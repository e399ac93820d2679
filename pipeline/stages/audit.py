"""Audit a method's classifiers on a dataset: ``Dataset, Classifier[, TransportMap] -> AuditResult``."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from pipeline import io
from pipeline.seeds import generators
from pipeline.types import Absent, Classifier, Dataset, ImageDataset
from pipeline.workflow import plugins, tracking


def main(arguments: list[str] | None = None) -> None:
    """Load the dataset and the classifiers, audit, save what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="JSON: the resolved audit")
    parser.add_argument("--dataset", required=True, help="a prepared dataset (.npz)")
    parser.add_argument("--classifier", required=True, help="trained classifiers (.npz)")
    parser.add_argument("--transport", nargs="*", default=[], help="transport maps (.npz), if the audit is of maps")
    parser.add_argument("--output", required=True, help="where the result goes (.npz)")
    options = parser.parse_args(arguments)
    config = json.loads(options.config)
    audit = config["audit"]
    dataset, classifier = io.load_if_present(options.dataset), io.load_if_present(options.classifier)
    if isinstance(classifier, Absent):
        io.save_absent(replace(classifier, audit=audit["name"]), options.output)
        print(f"nothing to audit: {classifier.name} is absent")
        return
    assert isinstance(dataset, (Dataset, ImageDataset))
    assert isinstance(classifier, Classifier)
    module = plugins.load("audit", audit["kind"])
    rngs = generators("audit", dataset.name, classifier.method, audit["name"], repetitions=classifier.repetitions)
    maps = [io.load_transport(path) for path in options.transport]
    result = module.run(dataset, classifier, plugins.configure(module, audit), rngs, *maps)
    io.save_audit(result, options.output)
    with tracking.from_environment(tracking.job(options.output), config) as run:
        run.summary(result.rows.groupby("statistic")["value"].mean().to_dict())


if __name__ == "__main__":
    main()
