"""Make the tables and figures of a study by name: one artefact, or many in several processes."""

import importlib
import inspect
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import pandas as pd

from fairness_audits.results.style import paper
from pipeline.report import comparison, registry
from pipeline.report.inputs import Inputs, NotRun, identified
from pipeline.report.stamp import Picture, Stamp
from pipeline.report.table import StampedTable

Artefact: TypeAlias = StampedTable | Picture
Made = TypeVar("Made")
_held: list[Callable[[str], Any]] = []


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Compare the published numbers with ours, with the study's own ``compared`` if it has one."""
    study = _study(inputs)
    if hasattr(study, "compared"):
        return study.compared(inputs, published, measurements(inputs))
    return comparison.compared(inputs, published, measurements(inputs))


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
