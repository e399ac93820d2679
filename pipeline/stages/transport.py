"""Fit a transport map between two groups in each trial: ``Dataset -> TransportMap``."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairness_audits.seeds import generators
from fairness_audits.values import Checkpoint, Dataset, TransportMap
from pipeline import io
from pipeline.counterparts import fitted, parted
from pipeline.workflow import plugins


def make(
    config: Mapping[str, Any], inputs: Mapping[str, Sequence[str]], resume: Checkpoint | None = None
) -> TransportMap:
    """Return the maps. A long fit saves its state in ``resume``."""
    section = config["transport"]
    between, own = parted(section)
    dataset = io.load(inputs["dataset"][0], Dataset)
    module = plugins.load("transport", section["kind"])
    numbers = {"repetitions": config["repetitions"], "first": dataset.first_repetition}
    rngs = generators("transport", dataset.name, section["name"], **numbers)
    resumes = plugins.resuming(getattr(module, "fit", None), resume)
    return fitted(dataset, between, module, plugins.configure(module, own), rngs, section["name"], **resumes)
