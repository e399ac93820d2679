"""A hash of the code behind a module, which changes only with code that can change the results.

The hash ignores docstrings, comments, formatting, the order of imports, annotations of functions and variables, imports
from ``typing`` and ``collections.abc``, and code under ``if TYPE_CHECKING:``. It includes annotations in class bodies,
because :mod:`fairness_audits.validation` checks values against them, and the templates of a package that a module loads
with the ``PackageLoader`` of jinja2.

The hash uses :func:`_write`, which omits all empty fields, because ``ast.unparse`` and ``ast.dump`` differ between
Python versions (quotes in f-strings, new fields, omitted empty fields).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path

TEMPLATES = "templates"
DIGITS = 16
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
LEFT_OUT = {"ctx", "kind", "returns", "type_comment", "type_params"}
"""Fields of the syntax tree that do not affect results."""
ABOUT_TYPES = ("__future__", "typing", "collections.abc")
"""Modules that are imported only for annotations."""


@dataclass(frozen=True)
class Module:
    """The properties of a source file.

    ``code`` is its hash and ``templates`` the packages whose templates it loads. An import is a module and a name in
    it, or ``""``. ``on_the_way`` holds the top-level imports and ``defines`` the top-level names. ``acts`` is True if
    importing the file does more than define names.
    """

    code: str
    templates: frozenset[str]
    imports: frozenset[tuple[str, str]]
    on_the_way: frozenset[tuple[str, str]]
    defines: frozenset[str]
    acts: bool


@functools.cache
def code_hash(names: tuple[str, ...], root: Path) -> str:
    """Return the hash of the code of the modules ``names`` and of everything local that they import, at any depth."""
    found = modules_behind(names, root)
    return digest(f"{path.relative_to(root).as_posix()} {content}" for path, content in found.items())


def modules_behind(names: Iterable[str], root: Path) -> dict[Path, str]:
    """Return the files of the modules ``names`` and of everything local that they import, sorted, with their hashes.

    Imports inside functions count, because heavy imports are there. Importing ``a.b`` also runs ``a/__init__.py``. This
    file counts only if a module imports from it, or if it or one of its imports *acts*: has top-level statements other
    than imports, definitions and assignments to names.
    """
    pending, found, passed = [(name, True) for name in names], dict[Path, str](), set[Path]()
    while pending:
        name, used = pending.pop()
        if package := name.rpartition(".")[0]:
            pending.append((package, False))
        path = _file(name, root)
        if path is None or path in found or (path in passed and not used):
            continue
        module = _read(path, root)
        if used or module.acts:
            found[path] = module.code
            pending += [(each, True) for each in _named(module.imports, root)]
            found |= {each: _bytes(each) for package in module.templates for each in _templates(package, root)}
        else:
            passed.add(path)
            pending += [(each, False) for each in _named(module.on_the_way, root)]
    return dict(sorted(found.items()))


def digest(parts: Iterable[str]) -> str:
    """Return the beginning of the SHA-256 of several texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]


@functools.cache
def _file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    return next(filter(Path.is_file, (base.with_suffix(".py"), base / "__init__.py")), None)


def _templates(package: str, root: Path) -> Iterator[Path]:
    folder = root.joinpath(*package.split("."), TEMPLATES)
    return filter(Path.is_file, folder.rglob("*"))


def _named(imports: Iterable[tuple[str, str]], root: Path) -> Iterator[str]:
    """Yield the modules that these imports read from."""
    for module, name in imports:
        # In `from package import name`, the name may be a module, an object in the package, or both.
        inside = f"{module}.{name}"
        found = _file(inside, root) if name else None
        if found:
            yield inside
        package = _file(module, root)
        if package and not (found and name not in _read(package, root).defines):
            yield module


@functools.cache
def _bytes(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def _read(path: Path, root: Path) -> Module:
    """Read a source file, once in a process."""
    package = ".".join(path.parent.relative_to(root).parts)
    body = _body(ast.parse(path.read_text(encoding="utf-8")).body)
    text, found = list[str](), list[ast.AST]()
    for node in body:
        _write(node, text, found)
    loaded = (node.args[0] for node in found if isinstance(node, ast.Call) and node.args)
    assigned = [target.id for node in body if isinstance(node, ast.Assign) for target in _names(node)]
    defined = [node.name for node in body if isinstance(node, DEFINITIONS)]
    return Module(
        digest(text),
        frozenset(str(package.value) for package in loaded if isinstance(package, ast.Constant)),
        frozenset(each for node in found for each in _imported(node, package)),
        frozenset(each for node in body for each in _imported(node, package)),
        frozenset([*assigned, *defined, *map(_bound, body)]),
        not all(
            isinstance(node, DEFINITIONS + IMPORTS) or (isinstance(node, ast.Assign) and _names(node)) for node in body
        ),
    )


def _names(node: ast.Assign) -> list[ast.Name]:
    """Return the targets of an assignment if all are names."""
    names = [target for target in node.targets if isinstance(target, ast.Name)]
    return names if len(names) == len(node.targets) else []


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            # Without `as`, `import a.b` binds `a`, and the module may use that too.
            parts = alias.name.split(".")
            first = len(parts) if alias.asname else 1
            yield from ((".".join(parts[:end]), "") for end in range(first, len(parts) + 1))
    elif isinstance(node, ast.ImportFrom):
        module = resolve_name("." * node.level + (node.module or ""), package)
        yield from ((module, alias.name) for alias in node.names)


def _body(body: Iterable[ast.stmt], in_class: bool = False) -> list[ast.stmt]:
    """Return the statements that can change results, without annotations, with each run of imports sorted."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and _last(node.test) == "TYPE_CHECKING":
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


def _last(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    return str(getattr(node, "id", getattr(node, "attr", "")))


def _write(node: ast.AST, text: list[str], found: list[ast.AST], in_class: bool = False) -> None:
    """Add a node to ``text``, and the imports and the calls of ``PackageLoader`` in it to ``found``."""
    kind = type(node)
    if kind in IMPORTS or (isinstance(node, ast.Call) and _last(node.func) == "PackageLoader"):
        found.append(node)
    text.append(f"{kind.__name__}(")
    for name in _fields(kind):  # type: ignore[arg-type]
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            text.append(name)
            _write(value, text, found)
        elif not isinstance(value, list):
            if value is not None or kind is ast.Constant:
                text.append(f"{name}={value!a}")
        elif value:
            text.append(f"{name}[")
            within = kind is ast.ClassDef or (in_class and kind not in DEFINITIONS)
            for each in _body(value, within) if isinstance(value[0], ast.stmt) else value:
                _write(each, text, found, within) if isinstance(each, ast.AST) else text.append(ascii(each))
            text.append("]")
    text.append(")")


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a node to write. Parameters are written without their annotation."""
    return ("arg",) if kind is ast.arg else tuple(name for name in kind._fields if name not in LEFT_OUT)
