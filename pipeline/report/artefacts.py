"""The tables and figures of a study, made by their names: one, or many by several processes."""

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
from pipeline.report.inputs import Inputs
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable

Artefact: TypeAlias = StampedTable | Picture
Made = TypeVar("Made")
_held: list[Callable[[str], Any]] = []


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """The study's published numbers with ours and a verdict, by its own ``compared`` where it has one."""
    study = _study(inputs)
    if hasattr(study, "compared"):
        return study.compared(inputs, published)
    return comparison.compared(inputs, published, study.measurements(inputs))


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The rows of the study's audits and what it derives from them, see :mod:`pipeline.report.facts`."""
    return _study(inputs).measurements(inputs)


def _study(inputs: Inputs) -> Any:
    return importlib.import_module(f"pipeline.report.{inputs.study}.comparison")


def build(name: str, inputs: Inputs, found: pd.DataFrame | None = None) -> Artefact:
    """Make one artefact, with its caption. ``found`` are the published numbers as :func:`compared`, for those that have
    a parameter of that name.
    """
    recipe = registry.find(inputs.study, name)
    comparison = {"found": found} if "found" in inspect.signature(recipe.make).parameters else {}
    with paper():
        made: Artefact = recipe.make(inputs, **comparison)
        if isinstance(made, Picture):
            made.finish()
    return replace(made, caption=recipe.caption)


def together(make: Callable[[str], Made], names: Sequence[str], processes: int) -> Iterator[Made]:
    """``make(name)`` of every name, in their order, ``processes`` of them at once.

    The processes begin as copies of this one, so that ``make`` may hold anything; what it returns has to be picklable.
    Where copies are not to be had, or not safe (macOS), the names are worked out one by one. The first error is raised.
    """
    if processes == 1 or len(names) < 2 or sys.platform != "linux":
        yield from map(make, names)
        return
    # What has been printed so far would be printed by every copy again.
    sys.stdout.flush()
    copies = multiprocessing.get_context("fork")
    # An initializer's arguments are not sent to a copy: it has them.
    with ProcessPoolExecutor(min(processes, len(names)), copies, _hold, (make,)) as pool:
        yield from pool.map(_made, names)


def _hold(make: Callable[[str], Any]) -> None:
    _held[:] = [make]


def _made(name: str) -> Any:
    return _held[0](name)
