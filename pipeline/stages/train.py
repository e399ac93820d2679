"""Train the classifiers of a method, one per random split: ``Dataset -> Classifier``."""

from dataclasses import replace

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.seeds import generators
from fairness_audits.values import Classifier, Dataset, ImageDataset
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import plugins, stage, tracking


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(__doc__, arguments, *stage.TASK, "dataset")
    stage.log_to_output()
    config = options.config
    method = config["method"]
    dataset = io.load_if_present(options.dataset)
    if isinstance(dataset, MissingData):
        io.save(replace(dataset, method=method["name"]), options.output)
        print(f"nothing to train: {dataset.name} is missing")
        return
    assert isinstance(dataset, (Dataset, ImageDataset))
    module = plugins.load("method", method["kind"])
    numbers = {"repetitions": config["repetitions"], "first": dataset.first_repetition}
    rngs = generators("train", dataset.name, method["name"], **numbers)
    # A long training saves its state beside its output, to resume from it.
    resume = io.CheckpointFile(options.output, options.code)
    classifier = module.fit(dataset, plugins.configure(module, method), rngs, **plugins.resuming(module.fit, resume))
    check_finite(classifier)
    # Use the name of the configuration: two configurations of the same kind are two methods.
    stage.save(replace(classifier, method=method["name"]), options, options.dataset)
    resume.forget()
    facts = {name: float(values.mean()) for name, values in classifier.facts.items()}
    tracking.record(options.output, config, facts, classifier.history)


def check_finite(classifier: Classifier) -> None:
    """Raise InvalidInput if a parameter of a repetition is not finite, because its decisions would mean nothing."""
    for name, values in classifier.parameters.items():
        if values.dtype.kind == "f" and len(bad := np.argwhere(~np.isfinite(values))):
            problem = f"the training diverged: {name} is not finite in repetition {int(bad[0][0])}"
            raise InvalidInput(problem, option="method", remedy="Choose a smaller learning rate or other settings")


if __name__ == "__main__":
    main()
