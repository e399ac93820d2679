"""A hash of the code behind a module, which changes only with code that can change the results.

The hash ignores docstrings, comments, formatting, annotations of functions and variables, imports from ``typing`` and
``collections.abc``, and code under ``if TYPE_CHECKING:``. It includes annotations in class bodies, because
:mod:`fairness_audits.validation` checks values against them, and the templates beside a module that loads them with the
``PackageLoader`` of jinja2. Empty fields do not count: versions of Python differ in which ``ast.dump`` writes.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

import grimp

PACKAGES = ("fairness_audits", "pipeline")
"""The packages whose code counts."""
TEMPLATES, LOADER = "templates", "PackageLoader"
EMPTY = re.compile(r"\w+=\[\](?:, )?|, \w+=\[\]")
"""A field of a node without elements."""
DIGITS = 16
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
    templates = filter(Path.is_file, (path.parent / TEMPLATES).rglob("*")) if LOADER in source else ()
    code = EMPTY.sub("", ast.dump(_Computing().visit(ast.parse(source))))
    return {path: digest([code]), **{each: hashlib.sha256(each.read_bytes()).hexdigest() for each in templates}}


class _Computing(ast.NodeTransformer):
    """Removes what cannot change results from a syntax tree."""

    in_class = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._within(node, in_class=True)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self._within(node, in_class=False)

    visit_AsyncFunctionDef = visit_FunctionDef

    def _within(self, node: ast.AST, in_class: bool) -> ast.AST:
        outside, self.in_class = self.in_class, in_class
        self.generic_visit(node)
        self.in_class = outside
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if self.in_class:
            return node
        return ast.Assign([node.target], node.value) if node.value else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Pass(self, _: ast.Pass) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        checking = ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING"
        self.generic_visit(node)
        return list(node.orelse) if checking else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module in ABOUT_TYPES and not node.level else node
