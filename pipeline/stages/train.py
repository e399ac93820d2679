"""Train a method's classifiers on every random split of a dataset: ``Dataset -> Classifier``."""

from __future__ import annotations

import argparse
import json
import logging
import sys

from pipeline import io, plugins, tracking
from pipeline.seeds import generators


def main(arguments: list[str] | None = None) -> None:
    """Load the dataset, fit, save the classifiers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="JSON: the resolved method and the number of repetitions")
    parser.add_argument("--dataset", required=True, help="a prepared dataset (.npz)")
    parser.add_argument("--output", required=True, help="where the classifiers go (.npz)")
    options = parser.parse_args(arguments)
    # What a method says of its progress is the job's log, and the terminal's line about it.
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    config = json.loads(options.config)
    method = config["method"]
    dataset = io.load_dataset(options.dataset)
    module = plugins.load("method", method["kind"])
    rngs = generators("train", dataset.name, method["name"], repetitions=config["repetitions"])
    classifier = module.fit(dataset, plugins.configure(module, method), rngs)
    io.save_classifier(classifier, options.output)
    with tracking.from_environment(tracking.job(options.output), config) as run:
        for curve, step in tracking.curves(classifier.history):
            run.log(step, curve)
        run.summary({name: float(values.mean()) for name, values in classifier.facts.items()})


if __name__ == "__main__":
    main()
