"""Decide the verdicts and the claims of a study from its reference: ``reference -> verdicts, claims``."""

from pathlib import Path

from pipeline import io
from pipeline.report import artefacts, claims
from pipeline.report.comparison_table import verdicts
from pipeline.workflow import reference_store, stage


def main(arguments: list[str] | None = None) -> None:
    options = stage.options(
        __doc__,
        arguments,
        published={"nargs": "+", "help": "published numbers (.csv) and claims (.yaml)"},
        reference={"help": "folder of the reference of the study"},
        lists={"help": "folder of the verdicts and claims of all references"},
    )
    inputs, _ = reference_store.load_reference(options.reference)
    numbers, *lists = options.published
    # Both are decided before a list changes.
    found = {
        "verdicts": verdicts(artefacts.compared(inputs, io.load_published(numbers))),
        "claims": claims.listed(artefacts.decided(inputs, map(io.load_claims, lists))),
    }
    for name, outcomes in found.items():
        reference_store.save_list(outcomes, inputs.study, Path(options.lists, f"{name}.csv"))


if __name__ == "__main__":
    main()
