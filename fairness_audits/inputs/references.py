"""What a function's code refers to: globals, imports and attributes of modules, and which of them are library code.

Libraries do not change between processes with the same version, so their code need not be read.
"""

from __future__ import annotations

import builtins
import dis
import functools
import importlib
import importlib.util
import re
import sys
import sysconfig
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

LIBRARIES = (
    "torch", "torchvision", "torchaudio", "functorch", "numpy", "scipy", "sklearn", "pandas", "einops", "timm",
    "kornia", "opt_einsum", "xgboost", "lightgbm", "catboost",
)  # fmt: skip
"""Packages that compute from their arguments alone, except for READERS."""
PURE = (
    "__future__", "abc", "argparse", "array", "bisect", "builtins", "cmath", "collections", "contextlib", "copy",
    "copyreg", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "heapq", "itertools", "logging",
    "math", "numbers", "operator", "random", "re", "statistics", "string", "struct", "textwrap", "types", "typing",
    "warnings", "weakref", "_abc", "_bisect", "_collections", "_collections_abc", "_decimal", "_functools", "_heapq",
    "_operator", "_random", "_sre", "_struct", "_weakref", "_weakrefset",
)  # fmt: skip
"""Modules of the standard library that compute from their arguments alone."""
PACKAGES = ("site-packages", "dist-packages")
"""Names of the folders that hold installed packages."""


class Opaque(ValueError):
    """Error for an object without a key; the text names the object and its place."""


def referred(function: types.FunctionType, importing: bool = True) -> dict[str, tuple[str, Any]]:
    """Return the objects that a function's code names: globals, and attributes of modules as ``module.name``.

    Each value comes with its name in the module that it was taken from, empty for a global. Imports inside the function
    are executed, or, with ``importing`` false, only used if the module is already loaded.
    """
    found: dict[str, tuple[str, Any]] = {}
    for first, *rest in _chains(function.__code__, {}):
        if isinstance(first, Import):
            if not importing and first.module(function) not in sys.modules:
                continue
            value, path = first.value(function), [first.name]
        else:
            value, path = function.__globals__.get(first, getattr(builtins, first, UNBOUND)), [first]
        home = ""
        for name in rest:
            if not isinstance(value, types.ModuleType) or not hasattr(value, name):
                break
            home, value = f"{value.__name__}.{name}", getattr(value, name)
            path.append(name)
        found[".".join(path)] = (home, value)
    return found


UNBOUND = "no such name"
IMPORTING = ("IMPORT_FROM", "STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL", "SWAP", "ROT_TWO", "POP_TOP")
"""Instructions that follow an import until its result is bound."""


@dataclass(frozen=True)
class Import:
    """Import of ``name`` inside a function, after ``level`` dots; ``whole`` if ``import a.b`` binds ``a``."""

    name: str
    level: int
    whole: bool

    def module(self, function: types.FunctionType) -> str:
        """Return the full name of the module."""
        package = function.__globals__.get("__package__") or None
        return importlib.util.resolve_name("." * self.level + self.name, package)

    def value(self, function: types.FunctionType) -> types.ModuleType:
        """Return the module or package that is bound. Raises Opaque if it cannot be imported."""
        name = self.module(function)
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise Opaque(f"the function {function.__name__!r} imports {name!r}, which fails here") from error
        return sys.modules[name.partition(".")[0]] if self.whole else module


def _steps(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """Yield the name and the argument of each instruction; from Python 3.13 on, one may access two variables."""
    for step in dis.get_instructions(code):
        accesses = re.findall("(LOAD|STORE)_FAST", step.opname)
        if len(accesses) == 2:
            yield from ((f"{access}_FAST", name) for access, name in zip(accesses, step.argval, strict=True))
        elif step.opname != "EXTENDED_ARG":
            yield step.opname, step.argval


def _chains(code: types.CodeType, bound: dict[str, list[Any]]) -> Iterator[list[Any]]:
    """Yield the names that code loads, each with the attributes that follow: ``["torch", "nn", "Linear"]``.

    A name imported inside the function begins with its :class:`Import`. ``bound`` has the variables with such imports.
    """
    chain: list[Any] = []
    imported: list[Any] = []
    constants: list[Any] = [0, None]
    taken: list[str] = []
    for name, value in _steps(code):
        if imported and name in IMPORTING:
            if name == "IMPORT_FROM":
                taken = [value]
            elif name.startswith("STORE_"):
                bound[value] = [*imported, *taken]
            elif name in ("SWAP", "ROT_TWO"):  # import a.b as c
                imported, taken = [*imported, *taken], []
            continue
        imported = []
        if chain and name in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = [*chain, value]
            continue
        if chain:
            yield chain
        chain = []
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants = [constants[-1], value]
        elif name == "IMPORT_NAME":
            imported, taken = [Import(value, constants[0] or 0, not constants[1])], []
        elif name.startswith("LOAD_") and name != "LOAD_CLOSURE" and isinstance(value, str) and value in bound:
            chain = list(bound[value])
        elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
            chain = [value]
    if chain:
        yield chain
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _chains(constant, bound)


def pure_library(module: str | None) -> bool:
    """Return whether a module computes from its arguments alone and enters by its version."""
    root = (module or "").partition(".")[0]
    return (root in PURE or root in LIBRARIES) and _installed(root)


def replaces_library_code(value: Any) -> bool:
    """Return whether a value in a library is a user's function that replaces the original."""
    return isinstance(value, types.FunctionType) and not of_library(value.__globals__.get("__name__"))


def impure_standard(module: str | None) -> bool:
    """Return whether a module belongs to the standard library but not to PURE."""
    root = (module or "").partition(".")[0]
    return root in sys.stdlib_module_names and root not in PURE


def of_library(module: str | None) -> bool:
    """Return whether a module belongs to the standard library or to LIBRARIES."""
    return pure_library(module) or impure_standard(module)


@functools.cache
def _installed(root: str) -> bool:
    """Return whether a module is among the installed packages, which users do not edit."""
    file = getattr(sys.modules.get(root), "__file__", None)
    paths = sysconfig.get_paths()
    places = {Path(paths[name]).resolve() for name in ("purelib", "platlib", "stdlib", "platstdlib")}
    folders = () if file is None else Path(file).resolve().parents
    return file is None or not places.isdisjoint(folders) or any(one.name in PACKAGES for one in folders)


@functools.cache
def library_version(root: str) -> str:
    """Return the version of a library; for the standard library, Python's version."""
    if root in sys.stdlib_module_names:
        return ".".join(map(str, sys.version_info[:3]))
    found = getattr(sys.modules.get(root), "__version__", None)
    try:
        return str(found) if found is not None else metadata.version(root)
    except metadata.PackageNotFoundError:
        return "unknown"
