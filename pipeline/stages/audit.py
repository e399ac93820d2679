"""Audit the classifiers of a method: ``Dataset, Classifier[, TransportMap] -> AuditResult``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fairness_audits.seeds import generators
from fairness_audits.values import Checkpoint, Classifier, Dataset, ImageDataset, TransportMap
from pipeline import io
from pipeline.values import AuditResult, MissingData
from pipeline.workflow import plugins


def make(
    config: Mapping[str, Any], inputs: Mapping[str, Sequence[str]], resume: Checkpoint | None = None
) -> AuditResult | MissingData:
    """Return the result of the audit. A long audit saves its state in ``resume``."""
    audit = config["audit"]
    dataset, classifier = io.load_if_present(*inputs["dataset"]), io.load_if_present(*inputs["classifier"])
    if isinstance(classifier, MissingData):
        print(f"nothing to audit: {classifier.name} is missing")
        return replace(classifier, audit=audit["name"])
    assert isinstance(dataset, (Dataset, ImageDataset))
    assert isinstance(classifier, Classifier)
    if isinstance(dataset, Dataset):
        dataset = dataset.with_inputs(classifier.reads)
    module = plugins.load("audit", audit["kind"])
    numbers = {"repetitions": classifier.repetitions, "first": dataset.first_repetition}
    rngs = generators("audit", dataset.name, classifier.method, audit["name"], **numbers)
    maps = [io.load(path, TransportMap) for path in inputs["transport"]]
    configured, resumes = plugins.configure(module, audit), plugins.resuming(module.run, resume)
    result: AuditResult = module.run(dataset, classifier, configured, rngs, *maps, **resumes)
    return result
