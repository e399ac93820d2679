"""Draw a study's tables and figures and compare them with the published numbers: ``rows -> artefacts``.

The inputs are the files of a run, or a committed reference (``--from-reference``). With ``--record``, the values that
the artefacts need become a new reference.
"""

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.files import save_figure, save_json, save_text
from fairness_audits.results import markup, style
from pipeline import io, software
from pipeline.report import artefacts, claims, environment, html, reference, registry
from pipeline.report.comparison_table import beside, read_off, verdicts
from pipeline.report.dataset_summary import summarize
from pipeline.report.inputs import Inputs
from pipeline.report.regression_check import regression_check
from pipeline.report.table import StampedTable
from pipeline.values import MissingData
from pipeline.workflow import reference_store, stage


def present(
    paths: Sequence[str], names: Mapping[str, str], load: Callable[[str], Any] = io.load_if_present
) -> dict[str, Any]:
    """Load these files by name and omit unavailable data."""
    found = {names[path]: load(path) for path in paths}
    return {name: value for name, value in found.items() if not isinstance(value, MissingData)}


def of_run(options: argparse.Namespace) -> Inputs:
    """Load the inputs of the artefacts of a run."""
    config = json.loads(sys.stdin.read() if options.config == "-" else options.config)
    names = config.pop("names")
    return Inputs(
        study=options.study,
        scale=config["scale"]["name"],
        rows=io.load_rows(options.rows),
        config=config,
        datasets={name: summarize(dataset) for name, dataset in present(options.datasets, names).items()},
        classifiers=present(options.classifiers, names, io.load_without_weights),
        audits={names[path]: io.load_audit(path) for path in options.audits},
    )


@dataclass(frozen=True)
class Maker:
    """A function that makes one artefact of a study and saves it in its folder."""

    inputs: Inputs
    tables: Path
    figures: Path
    captions: Path | None
    compared: pd.DataFrame

    def __call__(self, name: str) -> artefacts.Artefact:
        """Make and save an artefact. A returned picture has an empty drawing, because the page reads the saved file."""
        artefact = artefacts.build(name, self.inputs, self.compared)
        if isinstance(artefact, StampedTable):
            artefact = replace(artefact, published=beside(self.compared, name))
            io.save_table(artefact, self.tables / name)
        else:
            with style.paper():
                save_figure(artefact.figure, self.figures / name)
            notes = (*artefact.notes, *read_off(self.compared, name))
            artefact = replace(artefact, figure=style.new_figure(1.0), notes=notes)
        if self.captions:
            caption = (artefact.title, artefact.caption, *artefact.stamp.lines())
            save_text("\n\n".join(map(markup.rst, caption)), self.captions / f"{name}.rst")
        print(f"made {name}", flush=True)
        return artefact


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


def earlier_versions(manifest: Mapping[str, Any] | None, own: Sequence[str]) -> list[software.Versions]:
    """Return the versions that a manifest records for other parts than the ``own`` ones of a run."""
    runs = manifest["runs"] if manifest else ()
    return [run["versions"] for run in runs if set(run["parts"]) - set(own)]


def decided(inputs: Inputs, lists: Sequence[str]) -> list[claims.Decision]:
    """Decide the claims of these lists by the rows of the study."""
    found = [claim for path in lists for claim in io.load_claims(path)]
    return claims.decide(found, artefacts.measurements(inputs))


def source_of(options: argparse.Namespace) -> tuple[Inputs, Inputs, Mapping[str, Any] | None]:
    """Return the inputs of a run or a reference, the same with the parts that a reference fills in, its manifest."""
    if options.from_reference:
        own, manifest = reference_store.load_reference(options.from_reference)
        return own, own, manifest
    run = of_run(options)
    if not options.fill_from:
        return run, run, None
    earlier, manifest = reference_store.load_reference(options.fill_from)
    return run, reference.joined(run, earlier), manifest


def draw(options: argparse.Namespace) -> None:
    """Draw all artefacts, and write the index of the page with the claims and the reference."""
    run, inputs, manifest = source_of(options)
    published, *claim_lists = options.published
    found = artefacts.compared(inputs, io.load_published(published))
    maker = Maker(inputs, Path(options.tables), Path(options.figures), options.captions, found)
    names = [one.name for one in registry.declared(options.study)]
    made = dict(zip(names, artefacts.together(maker, names, options.processes), strict=True))
    computed: list[software.Versions] = [one for path in options.audits for one in io.software(path)]
    computed += earlier_versions(manifest, () if options.from_reference else reference.parts(run))
    # Parts that the reference fills in say nothing about this run.
    claim_lines, checked = claims.lines(decided(run, claim_lists)), None
    if options.regression_check:
        theirs, manifest = reference_store.load_reference(options.regression_check)
        checked = regression_check(run, theirs)
        if (outcomes := Path(options.regression_check).parent / "claims.csv").is_file():
            theirs_decided = reference_store.load_list(outcomes).query("study == @options.study")
            claim_lines = claims.beside_reference(claim_lines, theirs_decided)
    of_reference = html.reference(manifest, checked, environment.machine()["processor"])
    page = html.describe(inputs, made, found, claim_lines, of_reference, software.distinct(computed))
    save_json(page, options.index)


def record(options: argparse.Namespace) -> None:
    """Replace the reference by what the artefacts and the comparison read, after drawing them from it."""
    run, inputs, manifest = source_of(options)
    runs = manifest["runs"] if manifest else ()
    computed = [one for path in options.audits for one in io.software(path)]
    described = environment.described(options.environment)
    made_manifest = manifest_of(run, json.loads(options.benchmarks), inputs, described, runs, computed)
    made = reference.recorded(inputs)
    found = artefacts.compared(made, io.load_published(options.published[0]))
    for one in registry.declared(options.study):
        try:
            artefacts.build(one.name, made, found)
        except KeyError as error:
            problem = f"{one.name} reads {error}, which the reference of {options.study} would not have"
            remedy = f"If it is an array, declare it in ARRAYS of pipeline/report/{options.study}/__init__.py"
            raise InvalidInput(problem, source=options.study, option=one.name, remedy=remedy) from error
    reference_store.save_reference(made, made_manifest, options.record)
    decide(made, options)


def decide(inputs: Inputs, options: argparse.Namespace) -> None:
    """Save the verdicts and the claims of a reference in the lists of all references."""
    published, *claim_lists = options.published
    again = verdicts(artefacts.compared(inputs, io.load_published(published)))
    reference_store.save_list(again, inputs.study, Path(options.verdicts, "verdicts.csv"))
    found = claims.listed(decided(inputs, claim_lists))
    reference_store.save_list(found, inputs.study, Path(options.verdicts, "claims.csv"))


FILES: Mapping[str, Any] = {"nargs": "*", "default": []}


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        study={},
        published={"nargs": "+", "help": "published numbers (.csv) and claims (.yaml)"},
        config={"default": "-", "help": "JSON with experiment, scale, sections and published; -: standard input"},
        rows="tidy rows (.parquet)",
        datasets={**FILES, "help": "prepared data sets (.npz)"},
        classifiers={**FILES, "help": "trained classifiers (.npz)"},
        audits={**FILES, "help": "audits (.npz)"},
        from_reference="folder of a reference to draw instead of a run",
        fill_from="folder of the reference that supplies the parts that this run leaves out",
        regression_check="folder of the reference to compare the run with",
        record="folder for a new reference made from the run",
        benchmarks={"default": "{}", "help": "JSON with the benchmark file of each job, for --record"},
        environment={"default": None, "help": "description of the run's machine (.json), if it is not this one"},
        verdicts="folder for the verdicts and claims of all references",
        tables="folder for the tables",
        figures="folder for the figures",
        captions={"default": None, "type": Path, "help": "folder for the captions in Snakemake's report (.rst)"},
        index="file for the index of the report (.json)",
        processes={"type": int, "default": 1, "help": "number of artefacts to draw at a time"},
    )
    if options.record:
        record(options)
    elif options.verdicts:
        decide(source_of(options)[1], options)
    else:
        draw(options)


if __name__ == "__main__":
    main()
