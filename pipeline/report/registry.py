"""The tables and figures of each study, and the functions that make them.

The package of a study lists its artefacts (``ARTEFACTS``) with the modules that make them, and the columns of its rows
(``COLUMNS``). The workflow reads these lists without importing the modules. A decorator in the module gives a function
its caption:

    @artefact("How stable each map is.")
    def figure_2(inputs: Inputs) -> Picture:

    @artefact("By the attacks.", "figure_7", attacks=ATTACKS)
    @artefact("By randomized smoothing.", "figure_8", attacks=SMOOTHING)
    def heat_map(inputs: Inputs, attacks: Sequence[str]) -> Picture:
"""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest

Function = TypeVar("Function", bound=Callable[..., Any])
SAVED = {"table": ("tables", ("csv", "md", "tex")), "figure": ("figures", ("pdf", "png"))}
"""The folder and the file types of each kind of artefact."""


@dataclass(frozen=True)
class Declared:
    """A table or figure of a study, and the module that makes it."""

    name: str
    module: str

    @property
    def kind(self) -> str:
        """Return ``table`` or ``figure``."""
        return kind(self.name)


@dataclass(frozen=True)
class Recipe:
    """The caption of an artefact, and the function that makes it from the inputs of a study."""

    caption: str
    make: Callable[..., Any]


_recipes: dict[Declared, Recipe] = {}


def artefact(caption: str, name: str = "", **arguments: Any) -> Callable[[Function], Function]:
    """Register the decorated function, called with ``arguments``, as the recipe of an artefact.

    The artefact has the function's name by default. Raises InvalidInput if the study does not list it.
    """

    def register(function: Function) -> Function:
        own = Declared(name or function.__name__, function.__module__)
        study = own.module.split(".")[-2]
        if own not in declared(study):
            module = own.module.rpartition(".")[2]
            problem = f"add {own.name!r} of {module!r} to ARTEFACTS in pipeline/report/{study}/__init__.py"
            raise InvalidInput(problem, source=study, option=own.name)
        _recipes[own] = Recipe(caption, functools.partial(function, **arguments))
        return function

    return register


def declared(study: str) -> tuple[Declared, ...]:
    """Return every artefact of a study, in the order of the page.

    Raises InvalidInput if the study lists no artefacts or lists a name twice.
    """
    package = f"pipeline.report.{study}"
    listed = getattr(importlib.import_module(package), "ARTEFACTS", ())
    found = [Declared(name, f"{package}.{module}") for module, names in listed for name in names.split()]
    names = [one.name for one in found]
    if not found:
        remedy = f"List them as ARTEFACTS in pipeline/report/{study}/"
        raise InvalidInput(f"study {study!r} has no artefacts", source=study, option="ARTEFACTS", remedy=remedy)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problem = f"study {study!r} lists {', '.join(twice)} more than once"
        raise InvalidInput(problem, source=study, option=twice[0], remedy="Rename one of them")
    return tuple(found)


def columns(study: str) -> list[str]:
    """Return the columns that the rows of a study have if all its parts were run."""
    return str(getattr(importlib.import_module(f"pipeline.report.{study}"), "COLUMNS", "")).split()


def files(study: str, below: str = "results/") -> list[str]:
    """Return the files of all tables and figures of a study."""
    return [path.format(study=study) for path in patterns(study, below)]


def patterns(study: str, below: str = "results/") -> list[str]:
    """Return the files of all tables and figures of a study, with ``{study}`` in their paths."""
    return [
        f"{below}{folder}/{{study}}/{one.name}.{suffix}"
        for kind, (folder, suffixes) in SAVED.items()
        for one in declared(study)
        if one.kind == kind
        for suffix in suffixes
    ]


def modules(study: str) -> list[str]:
    """Return the modules that make the artefacts of a study and compare it with the paper."""
    return sorted({f"pipeline.report.{study}.comparison", *(one.module for one in declared(study))})


def entry(study: str, name: str) -> Declared:
    """Return an artefact of a study. Raises InvalidInput, with the nearest name, if the study does not have it."""
    known = {each.name: each for each in declared(study)}
    if name not in known:
        near = nearest(name, known)
        problem, remedy = f"study {study!r} has no artefact {name!r}{near}", f"There are: {', '.join(sorted(known))}"
        raise InvalidInput(problem, source=study, option=name, remedy=remedy)
    return known[name]


def find(study: str, name: str) -> Recipe:
    """Return the recipe of an artefact. Raises InvalidInput if its module does not make it."""
    listed = entry(study, name)
    importlib.import_module(listed.module)
    if listed not in _recipes:
        problem, remedy = f"{listed.module} does not make {name}", "Decorate a function there with artefact()"
        raise InvalidInput(problem, source=listed.module, option=name, remedy=remedy)
    return _recipes[listed]


def kind(name: str) -> str:
    """Return the kind of an artefact, ``table`` or ``figure``."""
    return "figure" if name.startswith("figure") else "table"


def label(name: str, names: list[str]) -> str:
    """Return the number of an artefact: the published one for ``table_3``, else S1, S2, ... in the order of the page.

    The comparison has no number.
    """
    kind, _, rest = name.partition("_")
    if not rest:
        return name.capitalize()
    if rest.isdigit():
        return f"{kind.capitalize()} {rest}"
    own = [n for n in names if n.startswith(f"{kind}_") and not n.partition("_")[2].isdigit()]
    return f"{kind.capitalize()} S{own.index(name) + 1}"
