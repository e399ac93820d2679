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
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pipeline.report
from fairness_audits.messages import nearest

Function = TypeVar("Function", bound=Callable[..., Any])
FIELDS = ("name", "caption", "place")
KINDS = ("table", "figure")
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
    module, tree = f"{package}.{path.stem}", ast.parse(path.read_text(encoding="utf-8"))
    names = _decorators(tree, module)
    declaring = {
        call.func: (function, call)
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for call in function.decorator_list
        if isinstance(call, ast.Call)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and (kind := names.get(_written(node))):
            if node not in declaring:
                raise ValueError(
                    f"{module}, line {node.lineno}: declare a {kind} by a decorator of a function at the top of the "
                    f"module, @registry.{kind}(...)"
                )
            found.append((*declaring.pop(node), kind))
    for node, (function, _) in declaring.items():
        if (written := _written(node)).endswith(KINDS):
            raise ValueError(f"{module}.{function.name}: {written} is not of {__name__}: import it from there")
    return tuple(_declared(function, call, kind, module) for function, call, kind in found)


def _decorators(tree: ast.Module, module: str) -> dict[str, str]:
    """Return how a module may write the decorators, each with its kind, whatever way it imports them.

    Raises ValueError for an import that hides them or passes them on.
    """
    above, _, own = __name__.rpartition(".")
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in (alias for alias in node.names if alias.name == __name__):
                found |= {f"{alias.asname or alias.name}.{kind}": kind for kind in KINDS}
        elif isinstance(node, ast.ImportFrom):
            source = importlib.util.resolve_name("." * node.level + (node.module or ""), module.rpartition(".")[0])
            for alias in node.names:
                if source == above and alias.name == own:
                    found |= {f"{alias.asname or alias.name}.{kind}": kind for kind in KINDS}
                elif source == __name__ and alias.name in KINDS:
                    found[alias.asname or alias.name] = alias.name
                elif source in (above, __name__) and alias.name == "*":
                    raise ValueError(f"{module}, line {node.lineno}: import registry by its name, not by *")
    for name in found:
        if "." not in name and not any(_written(node) == name for node in ast.walk(tree)):
            raise ValueError(f"{module}: {name} is imported and declares nothing: import it where it is used")
    return found


def _written(node: ast.AST) -> str:
    """Return a name as it is written; of dotted ones those alone that may be a decorator's."""
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) if node.attr in KINDS else ""
    return node.id if isinstance(node, ast.Name) else ""


def _declared(function: ast.FunctionDef, call: ast.Call, kind: str, module: str) -> Declared:
    """Return what a decorator of a function declares."""
    given = dict(zip(FIELDS, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg in FIELDS}
    try:
        values = {key: ast.literal_eval(value) for key, value in given.items()}
    except ValueError as error:
        raise ValueError(f"{module}.{function.name}: name, caption and place have to be literals") from error
    caption = values.get("caption") or ast.get_docstring(function) or ""
    if not caption:
        raise ValueError(f"{module}.{function.name} has no caption: give it one or a docstring")
    return Declared(
        values.get("name") or function.name, kind, " ".join(caption.split()), values.get("place", 0), module
    )


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
