"""Draw the tables and figures of a committed reference: ``reference -> artefacts, index of the page``."""

from fairness_audits.files import save_json
from pipeline import io, software
from pipeline.report import artefacts, claims, environment, html
from pipeline.workflow import reference_store, stage


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__, arguments, **artefacts.OPTIONS, reference={"help": "folder of the reference of the study"}
    )
    inputs, manifest = reference_store.load_reference(options.reference)
    numbers, *lists = options.published
    found = artefacts.compared(inputs, io.load_published(numbers))
    made = artefacts.draw(inputs, found, options.tables, options.figures, options.processes)
    told = claims.lines(artefacts.decided(inputs, map(io.load_claims, lists)))
    of_reference = html.reference(manifest, None, environment.machine()["processor"])
    versions = software.distinct(one["versions"] for one in manifest["runs"])
    save_json(html.describe(inputs, made, found, told, of_reference, versions), options.index)


if __name__ == "__main__":
    main()
