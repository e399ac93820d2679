"""The committed references of the studies (``data/reference/<study>/``), as the rules use them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from pipeline.jobs import Run

REFERENCES = Path("data/reference")


def has_reference(run: Run, study: str) -> bool:
    """Return whether a study has a reference for the grid that it declares now.

    It may lack whole blocks, which were declared later and are drawn as not run.
    """
    grid = recorded(run, study)
    blocks, datasets = ({part.split("/")[place] for part in grid} for place in (0, 1))
    declared = run.grids.declared(study)
    return bool(grid) and grid == {p.part for p in declared if p.block in blocks and p.dataset in datasets}


def referenced(run: Run) -> list[str]:
    """Return the studies that have a reference."""
    return [study for study in run.declared if has_reference(run, study)]


def recorded(run: Run, study: str) -> set[str]:
    """Return the parts of the grid that the reference of a study was made from, none without a reference."""
    path = run.root / REFERENCES / study / "manifest.json"
    return set(json.loads(path.read_text(encoding="utf-8"))["grid"]) if path.is_file() else set()


def files(run: Run, study: str) -> list[str]:
    """Return the files of the reference of a study, if it has one."""
    found = sorted((run.root / REFERENCES / study).rglob("*")) if has_reference(run, study) else []
    return [run.committed(path.relative_to(run.root)) for path in found if path.is_file()]


def folder(run: Run, study: str = "") -> str:
    """Return the folder of the reference of a study, or of all references."""
    return run.committed(REFERENCES / study)


def fill_option(run: Run, study: str) -> str:
    """Return the option that takes the parts that this run leaves out from the reference of the study, if there.

    The reference may be of an earlier grid that had them. What it does not have is drawn as not run.
    """
    left_out = {point.part for point in run.grids.planned(study)} - {point.part for point in run.points(study)}
    held = left_out and (has_reference(run, study) or left_out & recorded(run, study))
    return f"--fill-from {shlex.quote(folder(run, study))}" if held else ""


def regression_option(run: Run, study: str) -> str:
    """Return the option that compares the run with the reference of the study, if it has one."""
    return f"--regression-check {shlex.quote(folder(run, study))}" if has_reference(run, study) else ""
