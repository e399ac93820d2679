"""Draw the tables and figures of a run: ``rows -> artefacts, index of the page``."""

from pathlib import Path

from fairness_audits.files import save_json, save_text
from fairness_audits.results import markup
from pipeline import io, software
from pipeline.report import artefacts, claims, environment, html, reference
from pipeline.report.regression_check import regression_check
from pipeline.workflow import reference_store, run_inputs, stage


def caption(artefact: artefacts.Artefact) -> str:
    """Return the caption of an artefact in Snakemake's report, as reStructuredText."""
    return "\n\n".join(map(markup.rst, (artefact.title, artefact.caption, *artefact.stamp.lines())))


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        **run_inputs.OPTIONS,
        **artefacts.OPTIONS,
        captions={"help": "folder for the captions in Snakemake's report (.rst)"},
        regression_check="folder of the reference to compare the run with",
    )
    loaded = run_inputs.load(options)
    run, manifest = loaded.run, loaded.manifest
    numbers, *lists = options.published
    found = artefacts.compared(loaded.joined, io.load_published(numbers))
    made = artefacts.draw(loaded.joined, found, options.tables, options.figures, options.processes)
    for name, artefact in made.items():
        save_text(caption(artefact), Path(options.captions, f"{name}.rst"))
    filled_in = [one for one in manifest["runs"] if {*one["parts"]} - {*reference.parts(run)}] if manifest else []
    versions = software.distinct([*loaded.software, *(one["versions"] for one in filled_in)])
    # Parts that the reference fills in say nothing about this run.
    told, checked = claims.lines(artefacts.decided(run, map(io.load_claims, lists))), None
    if options.regression_check:
        theirs, manifest = reference_store.load_reference(options.regression_check)
        checked = regression_check(run, theirs)
        if (outcomes := Path(options.regression_check).parent / "claims.csv").is_file():
            told = claims.beside_reference(told, reference_store.load_list(outcomes).query("study == @run.study"))
    of_reference = html.reference(manifest, checked, environment.machine()["processor"])
    save_json(html.describe(loaded.joined, made, found, told, of_reference, versions), options.index)


if __name__ == "__main__":
    main()
