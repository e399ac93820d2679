"""The tables and figures of each study, and the functions that make them.

The package of a study lists its artefacts (``ARTEFACTS``) with the modules that make them. The workflow reads this list
without importing the modules. A decorator in the module gives a function its caption:

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

from fairness_audits.messages import nearest

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declared:
    """A table or figure of a study, and the module that makes it."""

    name: str
    module: str

    @property
    def kind(self) -> str:
        """Return ``table`` or ``figure``."""
        return "figure" if self.name.startswith("figure") else "table"


@dataclass(frozen=True)
class Recipe:
    """The caption of an artefact, and the function that makes it from the inputs of a study."""

    caption: str
    make: Callable[..., Any]


_recipes: dict[Declared, Recipe] = {}


def artefact(caption: str, name: str = "", **arguments: Any) -> Callable[[Function], Function]:
    """Register the decorated function, called with ``arguments``, as the recipe of an artefact.

    The artefact has the function's name by default. Raises ValueError if the study does not list it.
    """

    def register(function: Function) -> Function:
        own = Declared(name or function.__name__, function.__module__)
        study = own.module.split(".")[-2]
        if own not in declared(study):
            module = own.module.rpartition(".")[2]
            raise ValueError(f"add {own.name!r} of {module!r} to ARTEFACTS in pipeline/report/{study}/__init__.py")
        _recipes[own] = Recipe(caption, functools.partial(function, **arguments))
        return function

    return register


def declared(study: str) -> tuple[Declared, ...]:
    """Return every artefact of a study, in the order of the page.

    Raises ValueError if the study lists no artefacts or lists a name twice.
    """
    package = f"pipeline.report.{study}"
    listed = getattr(importlib.import_module(package), "ARTEFACTS", ())
    found = [Declared(name, f"{package}.{module}") for module, names in listed for name in names.split()]
    names = [one.name for one in found]
    if not found:
        raise ValueError(f"study {study!r} has no artefacts: list them as ARTEFACTS in pipeline/report/{study}/")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"study {study!r} lists {', '.join(twice)} more than once: rename one of them")
    return tuple(found)


def find(study: str, name: str) -> Recipe:
    """Return the recipe of an artefact. Raises ValueError, with the nearest name, if the study has no such artefact."""
    known = {each.name: each for each in declared(study)}
    if name not in known:
        near = nearest(name, known)
        raise ValueError(f"study {study!r} has no artefact {name!r}{near}. There are: {', '.join(sorted(known))}")
    importlib.import_module(known[name].module)
    if known[name] not in _recipes:
        raise ValueError(f"{known[name].module} does not make {name}: decorate a function there with artefact()")
    return _recipes[known[name]]


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
