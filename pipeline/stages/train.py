"""Train the classifiers of a method, one per random split: ``Dataset -> Classifier``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.seeds import generators
from fairness_audits.values import Checkpoint, Classifier, Dataset, ImageDataset
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import plugins


def make(
    config: Mapping[str, Any], inputs: Mapping[str, Sequence[str]], resume: Checkpoint | None = None
) -> Classifier | MissingData:
    """Return the classifiers. A long training saves its state in ``resume``."""
    method = config["method"]
    dataset = io.load_if_present(*inputs["dataset"])
    if isinstance(dataset, MissingData):
        print(f"nothing to train: {dataset.name} is missing")
        return replace(dataset, method=method["name"])
    assert isinstance(dataset, (Dataset, ImageDataset))
    module = plugins.load("method", method["kind"])
    numbers = {"repetitions": config["repetitions"], "first": dataset.first_repetition}
    rngs = generators("train", dataset.name, method["name"], **numbers)
    classifier = module.fit(dataset, plugins.configure(module, method), rngs, **plugins.resuming(module.fit, resume))
    check_finite(classifier)
    # Use the name of the configuration: two configurations of the same kind are two methods.
    return replace(classifier, method=method["name"])


def check_finite(classifier: Classifier) -> None:
    """Raise InvalidInput if a parameter of a repetition is not finite, because its decisions would mean nothing."""
    for name, values in classifier.parameters.items():
        if values.dtype.kind == "f" and len(bad := np.argwhere(~np.isfinite(values))):
            problem = f"the training diverged: {name} is not finite in repetition {int(bad[0][0])}"
            raise InvalidInput(problem, option="method", remedy="Choose a smaller learning rate or other settings")
