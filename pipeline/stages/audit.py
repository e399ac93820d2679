"""Audit the classifiers of a method: ``Dataset, Classifier[, TransportMap] -> AuditResult``."""

from dataclasses import replace

from fairness_audits.seeds import generators
from fairness_audits.values import Classifier, Dataset, ImageDataset, TransportMap
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import plugins, stage, tracking


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(__doc__, arguments, *stage.TASK, "dataset", "classifier", "transport")
    config = options.config
    audit = config["audit"]
    dataset, classifier = io.load_if_present(options.dataset), io.load_if_present(options.classifier)
    if isinstance(classifier, MissingData):
        io.save(replace(classifier, audit=audit["name"]), options.output)
        print(f"nothing to audit: {classifier.name} is missing")
        return
    assert isinstance(dataset, (Dataset, ImageDataset))
    assert isinstance(classifier, Classifier)
    if isinstance(dataset, Dataset):
        dataset = dataset.with_inputs(classifier.reads)
    module = plugins.load("audit", audit["kind"])
    numbers = {"repetitions": classifier.repetitions, "first": dataset.first_repetition}
    rngs = generators("audit", dataset.name, classifier.method, audit["name"], **numbers)
    maps = [io.load(path, TransportMap) for path in options.transport]
    resume = io.CheckpointFile(options.output, options.code)
    resumes = plugins.resuming(module.run, resume)
    result = module.run(dataset, classifier, plugins.configure(module, audit), rngs, *maps, **resumes)
    stage.save(result, options, options.dataset, options.classifier, *options.transport)
    resume.forget()
    tracking.record(options.output, config, result.rows.groupby("statistic")["value"].mean().to_dict())


if __name__ == "__main__":
    main()
