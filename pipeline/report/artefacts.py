"""Make the tables and figures of a study: one artefact by name, or all of them into files, in several processes."""

import importlib
import inspect
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pandas as pd

from fairness_audits.files import save_figure
from fairness_audits.results.style import new_figure, paper
from pipeline import io
from pipeline.report import claims, comparison, registry
from pipeline.report.comparison_table import beside, read_off
from pipeline.report.inputs import Inputs, NotRun, identified
from pipeline.report.stamp import Picture, Stamp
from pipeline.report.table import StampedTable

Artefact: TypeAlias = StampedTable | Picture
Made = TypeVar("Made")
OPTIONS: Mapping[str, Any] = {
    "published": {"nargs": "+", "help": "published numbers (.csv) and claims (.yaml)"},
    "tables": {"help": "folder for the tables"},
    "figures": {"help": "folder for the figures"},
    "index": {"help": "file for the index of the report (.json)"},
    "processes": {"type": int, "default": 1, "help": "number of artefacts to draw at a time"},
}
"""The options of a stage that draws."""
_held: list[Callable[[str], Any]] = []


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Compare the published numbers with ours, with the study's own ``compared`` if it has one."""
    study = _study(inputs)
    if hasattr(study, "compared"):
        return study.compared(inputs, published, measurements(inputs))
    return comparison.compared(inputs, published, measurements(inputs))


def decided(inputs: Inputs, lists: Iterable[Sequence[Mapping[str, Any]]]) -> list[claims.Decision]:
    """Decide the claims of these lists by the rows of the study."""
    return claims.decide([claim for found in lists for claim in found], measurements(inputs))


def measurements(inputs: Inputs) -> pd.DataFrame:
    """Return the rows of the study's audits and its derived numbers, see :mod:`pipeline.report.facts`."""
    return inputs.once("measurements", lambda: identified(_study(inputs).measurements(inputs)))


def _study(inputs: Inputs) -> Any:
    return importlib.import_module(f"pipeline.report.{inputs.study}.comparison")


def build(name: str, inputs: Inputs, found: pd.DataFrame | None = None) -> Artefact:
    """Make one artefact with its caption. Artefacts with a parameter ``found`` receive it, see :func:`compared`.

    If the run omits the points of the artefact, the artefact says so.
    """
    recipe = registry.find(inputs.study, name)
    comparison = {"found": found} if "found" in inspect.signature(recipe.make).parameters else {}
    with paper():
        try:
            made: Artefact = recipe.make(inputs, **comparison)
        except NotRun as reason:
            of = Picture if registry.kind(name) == "figure" else StampedTable
            made = of.nothing("Not run.", Stamp(inputs.scale, ()), str(reason))
        if isinstance(made, Picture):
            made.finish()
    return replace(made, caption=recipe.caption)


def draw(inputs: Inputs, found: pd.DataFrame, tables: str, figures: str, processes: int) -> dict[str, Artefact]:
    """Draw all artefacts of a study, beside the published numbers that they show, and save them in these folders.

    The returned pictures have an empty drawing, because the page reads the saved files.
    """
    names = [one.name for one in registry.declared(inputs.study)]
    make = partial(_drawn, inputs, found, Path(tables), Path(figures))
    return dict(zip(names, together(make, names, processes), strict=True))


def _drawn(inputs: Inputs, found: pd.DataFrame, tables: Path, figures: Path, name: str) -> Artefact:
    artefact = build(name, inputs, found)
    if isinstance(artefact, StampedTable):
        artefact = replace(artefact, published=beside(found, name))
        io.save_table(artefact, tables / name)
    else:
        with paper():
            save_figure(artefact.figure, figures / name)
        artefact = replace(artefact, figure=new_figure(1.0), notes=(*artefact.notes, *read_off(found, name)))
    print(f"made {name}", flush=True)
    return artefact


def together(make: Callable[[str], Made], names: Sequence[str], processes: int) -> Iterator[Made]:
    """Yield ``make(name)`` for every name in order, from several processes.

    The processes are forks of this process, so ``make`` need not be picklable, but its results must be. Without safe
    forks (macOS) this process makes everything. The first error is raised.
    """
    if processes == 1 or len(names) < 2 or sys.platform != "linux":
        yield from map(make, names)
        return
    # Flush first: otherwise every fork prints the buffered output again.
    sys.stdout.flush()
    copies = multiprocessing.get_context("fork")
    # The arguments of an initializer are inherited by the fork and not pickled.
    with ProcessPoolExecutor(min(processes, len(names)), copies, _held.append, (make,)) as pool:
        yield from pool.map(_made, names)


def _made(name: str) -> Any:
    return _held[-1](name)
