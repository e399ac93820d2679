"""The inputs of a study's artefacts, from the files of a run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import io
from pipeline.report import reference
from pipeline.report.dataset_summary import summarize
from pipeline.report.inputs import Inputs
from pipeline.software import Versions
from pipeline.values import MissingData
from pipeline.workflow import reference_store

OPTIONS: Mapping[str, Any] = {
    "rows": {"help": "tidy rows (.parquet)"},
    "fill_from": "folder of the reference that supplies the parts that this run leaves out",
}
"""The options of a stage that reads a run. Its standard input is :meth:`pipeline.jobs.Run.inputs` as JSON."""


@dataclass(frozen=True)
class RunInputs:
    """The inputs of a run, and the same with the parts that a reference fills in.

    ``manifest`` is that of the reference, if it fills in parts. ``software`` holds the sets of versions that the
    results of the run record.
    """

    run: Inputs
    joined: Inputs
    manifest: Mapping[str, Any] | None
    software: Sequence[Versions]


def load(options: argparse.Namespace) -> RunInputs:
    """Load the inputs of a run. Files of unavailable data are omitted."""
    given = json.load(sys.stdin)
    run = Inputs(
        study=given["study"],
        scale=given["config"]["scale"]["name"],
        rows=io.load_rows(options.rows),
        config=given["config"],
        datasets={name: summarize(dataset) for name, dataset in _present(given["datasets"], io.load_if_present)},
        classifiers=dict(_present(given["classifiers"], io.load_without_weights)),
        audits={name: io.load_audit(path) for path, name in given["audits"]},
    )
    computed = [one for path, _ in given["audits"] for one in io.software(path)]
    if not options.fill_from:
        return RunInputs(run, run, None, computed)
    earlier, manifest = reference_store.load_reference(options.fill_from)
    return RunInputs(run, reference.joined(run, earlier), manifest, computed)


def _present(files: Iterable[tuple[str, str]], load: Callable[[str], Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for path, name in files if not isinstance(value := load(path), MissingData))
