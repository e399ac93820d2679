"""Fit transport maps between two groups of a dataset, one in every trial: ``Dataset -> TransportMap``."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from dataclasses import replace

from pipeline import io
from pipeline.seeds import generators
from pipeline.transport.between import fitted, levels, parted, transported_columns
from pipeline.workflow import plugins, tracking


def main(arguments: list[str] | None = None) -> None:
    """Load the dataset, fit, save the maps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="JSON: the resolved transport and the number of repetitions")
    parser.add_argument("--dataset", required=True, help="a prepared dataset (.npz)")
    parser.add_argument("--output", required=True, help="where the maps go (.npz)")
    options = parser.parse_args(arguments)
    # What a fit says of its progress is the job's log, and the terminal's line about it.
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    config = json.loads(options.config)
    section = config["transport"]
    between, own = parted(section)
    dataset = io.load_dataset(options.dataset)
    module = plugins.load("transport", section["kind"])
    rngs = generators("transport", dataset.name, section["name"], repetitions=config["repetitions"])
    code, other = levels(dataset, between.attribute, between.source)
    maps = replace(
        fitted(dataset, between, module, plugins.configure(module, own), rngs),
        transport=section["name"],
        dataset=dataset.name,
        origin=dataset.origin,
        attribute=between.attribute,
        source=dataset.levels[between.attribute][code],
        target=dataset.levels[between.attribute][other],
        given_label=between.given_label,
        points=between.points,
        features=tuple(dataset.feature_names[c] for c in transported_columns(dataset, between.attribute)),
    )
    io.save_transport(maps, options.output)
    with tracking.from_environment(tracking.job(options.output), config) as run:
        for curve, step in tracking.curves(maps.history):
            run.log(step, curve)
        run.summary({name: float(values.mean()) for name, values in maps.facts.items()})


if __name__ == "__main__":
    main()
