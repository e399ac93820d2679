"""Which tables and figures a study has: its modules declare each by a decorator of the function that makes it.

    @registry.figure(place=3)
    def figure_methods(inputs: Inputs) -> Picture:
        \"\"\"The caption.\"\"\"

    @registry.figure("figure_7", "The caption.", dataset=UTKFACE, attacks=ATTACKS)
    @registry.figure("figure_8", "Its own.", dataset=UTKFACE, attacks=SMOOTHING)
    def heat_map(inputs: Inputs, dataset: str, attacks: Sequence[str]) -> Picture:

The workflow has to know the names before any of these modules, with all that they draw with, is imported: names,
captions and places are therefore literals, and :func:`declared` reads them from the source.
"""

import ast
import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pipeline.report
from fairness_audits.messages import nearest

Function = TypeVar("Function", bound=Callable[..., Any])
FIELDS = ("name", "caption", "place")
_makers: dict[tuple[str, str], Callable[..., Any]] = {}
"""By module and name."""


@dataclass(frozen=True)
class Declared:
    """One artefact: ``kind`` is table or figure, ``place`` orders those without a published number."""

    name: str
    kind: str
    caption: str
    place: int
    module: str

    def order(self) -> tuple[Any, ...]:
        """Tables, then figures: the published by their numbers, the others by place, the comparison last."""
        number = self.name.partition("_")[2]
        last = self.place or 1000
        return self.kind == "figure", *((0, int(number)) if number.isdigit() else (1, last)), self.name


def table(name: str = "", caption: str = "", place: int = 0, **arguments: Any) -> Callable[[Function], Function]:
    """Declare a table that the decorated function makes of a study's inputs, with these ``arguments``.

    ``name`` and ``caption`` are the function's own name and docstring where they are not given. ``place`` orders the
    artefacts that have no published number; those without one come last.
    """

    def declare(function: Function) -> Function:
        _makers[function.__module__, name or function.__name__] = functools.partial(function, **arguments)
        return function

    return declare


figure = table
"""The same of a figure."""


def declared(study: str) -> tuple[Declared, ...]:
    """Every artefact of a study, in the order of the page.

    Raises ValueError for a study without a package here, for one name declared twice, and for what is not a literal.
    """
    package = f"pipeline.report.{study}"
    folders = [Path(folder, study) for folder in pipeline.report.__path__]
    found = [one for folder in folders for path in sorted(folder.glob("*.py")) for one in _of(path, package)]
    if not found:
        raise ValueError(f"study {study!r} has no artefacts: declare them in {package.replace('.', '/')}/")
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"study {study!r} declares {', '.join(twice)} more than once: name one otherwise")
    return tuple(sorted(found, key=Declared.order))


@functools.cache
def _of(path: Path, package: str) -> tuple[Declared, ...]:
    functions = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    return tuple(one for node in functions for one in _by(node, f"{package}.{path.stem}"))


def _by(function: ast.FunctionDef, module: str) -> Iterator[Declared]:
    """What the decorators of a function declare."""
    for call in function.decorator_list:
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("registry.table", "registry.figure"):
            given = dict(zip(FIELDS, call.args, strict=False))
            given |= {word.arg: word.value for word in call.keywords if word.arg in FIELDS}
            try:
                values = {key: ast.literal_eval(value) for key, value in given.items()}
            except ValueError as error:
                raise ValueError(f"{module}.{function.name}: name, caption and place have to be literals") from error
            caption = values.get("caption") or ast.get_docstring(function) or ""
            if not caption:
                raise ValueError(f"{module}.{function.name} has no caption: give it one or a docstring")
            name, kind = values.get("name") or function.name, ast.unparse(call.func).rpartition(".")[2]
            yield Declared(name, kind, " ".join(caption.split()), values.get("place", 0), module)


def one(study: str, name: str) -> Declared:
    """The artefact ``name``. Raises ValueError for one that the study does not have, with the nearest."""
    known = {each.name: each for each in declared(study)}
    if name not in known:
        near = nearest(name, known)
        raise ValueError(f"study {study!r} has no artefact {name!r}{near}. There are: {', '.join(sorted(known))}")
    return known[name]


def find(study: str, name: str) -> Callable[..., Any]:
    """The function that makes the artefact ``name`` of a study's inputs."""
    module = one(study, name).module
    importlib.import_module(module)
    return _makers[module, name]


def label(name: str, names: list[str]) -> str:
    """How an artefact is numbered: as published for ``table_3``, else S1, S2, ... in the order of the study's list.

    The comparison has no number.
    """
    kind, _, rest = name.partition("_")
    if not rest:
        return name.capitalize()
    if rest.isdigit():
        return f"{kind.capitalize()} {rest}"
    own = [n for n in names if n.startswith(f"{kind}_") and not n.partition("_")[2].isdigit()]
    return f"{kind.capitalize()} S{own.index(name) + 1}"
