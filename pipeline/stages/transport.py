"""Fit a transport map between two groups in each trial: ``Dataset -> TransportMap``."""

from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline import io
from pipeline.counterparts import fitted, parted
from pipeline.workflow import plugins, stage, tracking


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(__doc__, arguments, *stage.TASK, "dataset")
    stage.log_to_output()
    config = options.config
    section = config["transport"]
    between, own = parted(section)
    dataset = io.load(options.dataset, Dataset)
    module = plugins.load("transport", section["kind"])
    numbers = {"repetitions": config["repetitions"], "first": dataset.first_repetition}
    rngs = generators("transport", dataset.name, section["name"], **numbers)
    resume = io.CheckpointFile(options.output, options.code)
    resumes = plugins.resuming(getattr(module, "fit", None), resume)
    maps = fitted(dataset, between, module, plugins.configure(module, own), rngs, section["name"], **resumes)
    stage.save(maps, options, options.dataset)
    resume.forget()
    facts = {name: float(values.mean()) for name, values in maps.facts.items()}
    tracking.record(options.output, config, facts, maps.history)


if __name__ == "__main__":
    main()
