"""Record what the artefacts of a run read as a reference: ``rows -> reference``."""

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fairness_audits.errors import InvalidInput
from pipeline import software
from pipeline.report import artefacts, comparison, environment, reference, registry
from pipeline.report.inputs import Inputs
from pipeline.workflow import reference_store, run_inputs, stage


def manifest_of(
    run: Inputs,
    benchmarks: Mapping[str, str],
    inputs: Inputs,
    described: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]] = (),
    versions: Sequence[software.Versions] = (),
) -> dict[str, Any]:
    """Return the provenance of a reference: this run, and earlier runs of the parts that it left out.

    ``described`` holds the commit, the machine and the versions of this run. The ``versions`` that its results record
    have precedence. Each run has its ``scale``, its ``parts`` and the wall and processor time of its ``jobs``. ``grid``
    holds the parts that the study declares, whether they were run or not. ``inputs`` joins all runs.
    """
    texts = [(job, Path(path).read_text(encoding="utf-8")) for job, path in benchmarks.items() if Path(path).is_file()]
    own = reference.parts(run)
    this = {
        "scale": run.scale,
        "parts": own,
        "date": datetime.date.today().isoformat(),
        **described,
        "versions": software.together(versions) or described["versions"],
        "jobs": {t.rule: [round(t.wall, 1), round(t.processor, 1)] for t in environment.rule_times(texts)},
    }
    every = []
    for one in (*runs, this):
        still = [part for part in one["parts"] if one is this or part not in own]
        # A job is named after its first output, below scale and stage (and, for an audit, the study).
        made = tuple({f"/{key}" for point in inputs.points if point["part"] in still for key in point["keys"] if key})
        jobs = {job: times for job, times in one["jobs"].items() if job.partition(" and ")[0].endswith(made)}
        if still:
            every.append(dict(one, parts=still, jobs=jobs))
    return {"study": run.study, "grid": reference.grid(inputs), "runs": every}


def check_drawn(inputs: Inputs) -> None:
    """Raise InvalidInput if an artefact of the study cannot be drawn from a reference of these inputs.

    A list without published numbers is enough to draw an artefact that shows some.
    """
    found = artefacts.compared(inputs, pd.DataFrame(columns=list(comparison.COLUMNS)))
    for one in registry.declared(inputs.study):
        try:
            artefacts.build(one.name, inputs, found)
        except KeyError as error:
            problem = f"{one.name} reads {error}, which the reference of {inputs.study} would not have"
            remedy = f"If it is an array, declare it in ARRAYS of pipeline/report/{inputs.study}/__init__.py"
            raise InvalidInput(problem, source=inputs.study, option=one.name, remedy=remedy) from error


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        **run_inputs.OPTIONS,
        benchmarks={"type": json.loads, "help": "JSON object with the benchmark file of each job"},
        environment={"default": None, "help": "description of the run's machine (.json), if it is not this one"},
        output={"help": "folder for the reference"},
    )
    loaded = run_inputs.load(options)
    earlier = loaded.manifest["runs"] if loaded.manifest else ()
    described = environment.described(options.environment)
    manifest = manifest_of(loaded.run, options.benchmarks, loaded.joined, described, earlier, loaded.software)
    made = reference.recorded(loaded.joined)
    check_drawn(made)
    reference_store.save_reference(made, manifest, options.output)


if __name__ == "__main__":
    main()
