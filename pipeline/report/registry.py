"""The tables and figures of each study, and the functions that make them.

A decorator makes a function in a module of ``pipeline/report/STUDY/`` an artefact, and gives it its caption:

    @artefact("How stable each map is.")
    def figure_2(inputs: Inputs) -> Picture:

    @artefact("By the attacks.", "figure_7", attacks=ATTACKS)
    @artefact("By randomized smoothing.", "figure_8", attacks=SMOOTHING)
    def heat_map(inputs: Inputs, attacks: Sequence[str]) -> Picture:

The workflow finds the decorators in the syntax trees of the modules, so planning a run does not import them. The
package of a study lists the columns of its rows (``COLUMNS``), and the arrays that its artefacts read (``ARRAYS``).
"""

import ast
import functools
import importlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest

Function = TypeVar("Function", bound=Callable[..., Any])
SAVED = {"table": ("tables", ("csv", "md", "tex")), "figure": ("figures", ("pdf", "png"))}
"""The folder and the file types of each kind of artefact."""
LAST = {"table_settings": 1, "comparison": 2}
"""Places of the last tables of a study."""


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

    ``name`` is a literal text, by default the function's name.
    """

    def register(function: Function) -> Function:
        own = Declared(name or function.__name__, function.__module__)
        _recipes[own] = Recipe(caption, functools.partial(function, **arguments))
        return function

    return register


def declared(study: str) -> tuple[Declared, ...]:
    """Return every artefact of a study, in the order of the page.

    Tables precede figures, and published artefacts precede ours, by their numbers. Ours are in the order of the modules
    and their lines, with the settings and the comparison last. Raises InvalidInput if the study has no artefacts or two
    with one name.
    """
    package = f"pipeline.report.{study}"
    (folder,) = importlib.import_module(package).__path__
    found = [
        Declared(name, f"{package}.{path.stem}")
        for path in sorted(Path(folder).glob("*.py"))
        for name in _decorated(path.read_text(encoding="utf-8"))
    ]
    names = [one.name for one in found]
    if not found:
        remedy = f"Decorate a function in pipeline/report/{study}/ with artefact()"
        raise InvalidInput(f"study {study!r} has no artefacts", source=study, remedy=remedy)
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problem = f"study {study!r} has {', '.join(twice)} more than once"
        raise InvalidInput(problem, source=study, option=twice[0], remedy="Rename one of them")
    return tuple(sorted(found, key=lambda one: _place(one.name)))


@functools.cache
def _decorated(source: str) -> tuple[str, ...]:
    """Return the names of the artefacts of a module in the order of their decorators."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    found = []
    for function in functions:
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Name(id="artefact"), args=[_, ast.Constant(value=str(name))]):
                    found.append(name)
                case ast.Call(func=ast.Name(id="artefact")):
                    found.append(function.name)
    return tuple(found)


def _place(name: str) -> tuple[bool, bool, float, int]:
    """Return the place of an artefact on the page. Those with equal places keep their order."""
    number, _, variant = name.partition("_")[2].partition("_")
    published = number.isdigit() and not variant
    return kind(name) == "figure", not published, float(number) if number.isdigit() else math.inf, LAST.get(name, 0)


def columns(study: str) -> list[str]:
    """Return the columns that the rows of a study have if all its parts were run."""
    return str(getattr(importlib.import_module(f"pipeline.report.{study}"), "COLUMNS", "")).split()


def arrays(study: str, key: str, names: Iterable[str]) -> list[str]:
    """Return which of these arrays of an audit or classifier the artefacts of a study read, by its ``ARRAYS``.

    ``ARRAYS`` maps patterns of keys (see :class:`pipeline.report.inputs.Keys`) to patterns of names, separated by
    spaces. ``*`` stands for any text.
    """
    found = getattr(importlib.import_module(f"pipeline.report.{study}"), "ARRAYS", {})
    read = [name for keys, of in found.items() if matches(key, keys.split()) for name in of.split()]
    return sorted(name for name in names if matches(name, read))


def matches(text: str, patterns: Iterable[str]) -> bool:
    """Return whether a text matches one of the patterns."""
    return any(fnmatchcase(text, pattern) for pattern in patterns)


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
    """Return the recipe of an artefact."""
    own = entry(study, name)
    importlib.import_module(own.module)
    return _recipes[own]


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
