"""A hash of the code behind a module, which changes only with code that can change the results.

The hash ignores docstrings, comments, formatting, the order of imports, annotations of functions and variables, imports
from ``typing`` and ``collections.abc``, and code under ``if TYPE_CHECKING:``. It includes annotations in class bodies,
because :mod:`fairness_audits.validation` checks values against them, and the templates beside a module that loads them
with the ``PackageLoader`` of jinja2.

The hash uses :func:`_write`, which omits all empty fields, because ``ast.unparse`` and ``ast.dump`` differ between
Python versions (quotes in f-strings, new fields, omitted empty fields).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import itertools
from collections.abc import Iterable
from pathlib import Path

import grimp

PACKAGES = ("fairness_audits", "pipeline")
"""The packages whose code counts."""
TEMPLATES, LOADER = "templates", "PackageLoader"
DIGITS = 16
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
LEFT_OUT = {"ctx", "kind", "returns", "type_comment", "type_params"}
"""Fields of the syntax tree that do not affect results."""
ABOUT_TYPES = ("__future__", "typing", "collections.abc")
"""Modules that are imported only for annotations."""


@functools.cache
def code_hash(names: tuple[str, ...], root: Path) -> str:
    """Return the hash of the code of the modules ``names`` and of everything local that they import, at any depth."""
    found = modules_behind(names, root)
    return digest(f"{path.relative_to(root).as_posix()} {content}" for path, content in found.items())


def modules_behind(names: Iterable[str], root: Path) -> dict[Path, str]:
    """Return the files of the modules ``names`` and of everything local that they import, sorted, with their hashes.

    Imports inside functions count, because heavy imports are there. A package on the way to a module does not count:
    its ``__init__`` only imports and defines (``tests/test_layers.py``). It counts if a module imports from it.
    """
    known = _graph(PACKAGES)
    modules = {name for name in names if name in known.modules}
    found: dict[Path, str] = {}
    for name in modules.union(*map(known.find_upstream_modules, modules)):
        path = root.joinpath(*name.split("."))
        found |= _read(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    return dict(sorted(found.items()))


@functools.cache
def _graph(packages: tuple[str, ...]) -> grimp.ImportGraph:
    """Return the imports between all modules of these packages, read once in a process."""
    return grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)


def digest(parts: Iterable[str]) -> str:
    """Return the beginning of the SHA-256 of several texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]


@functools.cache
def _read(path: Path) -> dict[Path, str]:
    """Return the hash of a source file, and of the templates that it loads, once in a process."""
    source = path.read_text(encoding="utf-8")
    text: list[str] = []
    for node in _body(ast.parse(source).body):
        _write(node, text)
    templates = filter(Path.is_file, (path.parent / TEMPLATES).rglob("*")) if LOADER in source else ()
    return {path: digest(text), **{each: hashlib.sha256(each.read_bytes()).hexdigest() for each in templates}}


def _body(body: Iterable[ast.stmt], in_class: bool = False) -> list[ast.stmt]:
    """Return the statements that can change results, without annotations, with each run of imports sorted."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            found += _body(node.orelse, in_class)
        elif isinstance(node, ast.AnnAssign) and not in_class:
            found += [ast.Assign([node.target], node.value)] if node.value else []
        elif isinstance(node, ast.Import):
            found += [ast.Import([alias]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module not in ABOUT_TYPES:
                found += [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]
        elif not (isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))):
            found.append(node)
    # A stable sort: statements that bind nothing and imports that bind the same name keep their order.
    runs = itertools.groupby(found, lambda node: bool(_bound(node)))
    return [node for _, run in runs for node in sorted(run, key=_bound)]


def _bound(node: ast.stmt) -> str:
    """Return the name that an import binds, or "" for other statements and ``*``."""
    if not isinstance(node, IMPORTS):
        return ""
    return (node.names[0].asname or node.names[0].name.partition(".")[0]).strip("*")


def _write(node: ast.AST, text: list[str], in_class: bool = False) -> None:
    """Add a node to ``text``."""
    kind = type(node)
    text.append(f"{kind.__name__}(")
    for name in _fields(kind):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            text.append(name)
            _write(value, text)
        elif not isinstance(value, list):
            if value is not None or kind is ast.Constant:
                text.append(f"{name}={value!a}")
        elif value:
            text.append(f"{name}[")
            within = kind is ast.ClassDef or (in_class and kind not in DEFINITIONS)
            for each in _body(value, within) if isinstance(value[0], ast.stmt) else value:
                _write(each, text, within) if isinstance(each, ast.AST) else text.append(ascii(each))
            text.append("]")
    text.append(")")


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a node to write. Parameters are written without their annotation."""
    return ("arg",) if kind is ast.arg else tuple(name for name in kind._fields if name not in LEFT_OUT)
