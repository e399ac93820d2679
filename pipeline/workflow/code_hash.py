"""A hash of the code behind a module, which changes only with code that can change the results.

The hash ignores docstrings, comments, formatting, the order of imports, annotations of functions and variables, imports
from ``typing`` and ``collections.abc``, and code under ``if TYPE_CHECKING:``. It includes annotations in class bodies,
because :mod:`fairness_audits.validation` checks values against them, and the templates of a package that a module loads
with the ``PackageLoader`` of jinja2.

The hash uses its own dump of the syntax tree, because ``ast.unparse`` and ``ast.dump`` differ between Python versions
(quotes in f-strings, new fields, omitted empty fields). The dump omits all empty fields.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path

TEMPLATES = "templates"
DIGITS = 16
PLAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
"""Top-level statements without side effects outside the module."""
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
    """Yield the modules that these imports read from.

    In ``from package import name``, the name may be a module, an object in the package, or both.
    """
    for module, name in imports:
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
    body = _body(ast.parse(path.read_text(encoding="utf-8")).body, in_class=False)
    reader = _Reader(package)
    reader.block(body)
    assigned = [target.id for node in body if isinstance(node, ast.Assign) for target in _names(node)]
    return Module(
        digest(reader.text),
        frozenset(reader.templates),
        frozenset(reader.imports),
        frozenset(each for node in body for each in _imported(node, package)),
        frozenset([*assigned, *reader.bound, *(node.name for node in body if isinstance(node, PLAIN[:3]))]),
        not all(isinstance(node, PLAIN) or (isinstance(node, ast.Assign) and _names(node)) for node in body),
    )


def _names(node: ast.Assign) -> list[ast.Name]:
    """Return the targets of an assignment if all are names."""
    names = [target for target in node.targets if isinstance(target, ast.Name)]
    return names if len(names) == len(node.targets) else []


def _imported(node: ast.stmt, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            # Without `as`, `import a.b` binds `a`, and the module may use that too.
            parts = alias.name.split(".")
            first = len(parts) if alias.asname else 1
            yield from ((".".join(parts[:end]), "") for end in range(first, len(parts) + 1))
    elif isinstance(node, ast.ImportFrom):
        module = resolve_name("." * node.level + (node.module or ""), package)
        yield from ((module, alias.name) for alias in node.names)


def _body(body: Iterable[ast.stmt], in_class: bool) -> list[ast.stmt]:
    """Return the statements that can change results, without annotations."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and _last(node.test) == "TYPE_CHECKING":
            found += _body(node.orelse, in_class)
        elif isinstance(node, ast.AnnAssign) and not in_class:
            found += [ast.Assign([node.target], node.value)] if node.value else []
        elif not (
            isinstance(node, ast.Pass)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (isinstance(node, ast.ImportFrom) and node.module in ABOUT_TYPES)
        ):
            found.append(node)
    return found


def _last(node: ast.expr) -> str:
    """Return the last part of a dotted name."""
    return str(getattr(node, "id", getattr(node, "attr", "")))


class _Reader:
    """Writes statements as ``text`` and collects their imports and the names that top-level imports bind."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.text: list[str] = []
        self.templates: set[str] = set()
        self.imports: set[tuple[str, str]] = set()
        self.bound: set[str] = set()
        self.depth = 0

    def block(self, body: list[ast.stmt], in_class: bool = False) -> None:
        """Write statements. Sort consecutive imports unless one of them shadows a name of another."""
        run: dict[str, tuple[str, str]] = {}
        for node in [*body, None]:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                run |= _aliases(node)
                self.imports.update(_imported(node, self.package))
                continue
            bound = dict(run.values())
            hides = len(bound) < len(set(run.values())) or "*" in bound
            self.text += run if hides else sorted(run)
            if not self.depth:
                self.bound |= bound.keys()
            run = {}
            if node is not None:
                self.node(node, in_class)

    def node(self, node: ast.AST, in_class: bool = False) -> None:
        """Write a node: its type and its fields, except for empty and ignored fields."""
        kind, text = type(node), self.text
        text.append(f"{kind.__name__}(")
        if isinstance(node, ast.Call) and _last(node.func) == "PackageLoader":
            self.templates.update(str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant))
        for name in _fields(kind):  # type: ignore[arg-type]
            value = getattr(node, name, None)
            if value is None and kind is not ast.Constant:
                continue
            if isinstance(value, ast.AST):
                text.append(name)
                self.node(value)
            elif not isinstance(value, list):
                text.append(f"{name}={value!a}")
            elif value:
                text.append(f"{name}[")
                if isinstance(value[0], ast.stmt):
                    within = kind is ast.ClassDef or (in_class and kind not in PLAIN)
                    self.depth += 1
                    self.block(_body(value, within), within)
                    self.depth -= 1
                else:
                    for each in value:
                        self.node(each) if isinstance(each, ast.AST) else text.append(ascii(each))
                text.append("]")
        text.append(")")


@functools.cache
def _fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a node to write. Parameters are written without their annotation."""
    return ("arg",) if kind is ast.arg else tuple(name for name in kind._fields if name not in LEFT_OUT)


def _aliases(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
    """Return the parts of an import statement as text, each with the bound name and its origin."""
    found = {}
    for alias in node.names:
        if isinstance(node, ast.Import):
            what = alias.name if alias.asname else alias.name.partition(".")[0]
            found[f"import {alias.name} as {alias.asname}"] = (alias.asname or what, what)
        else:
            source = f"{'.' * node.level}{node.module or ''}"
            bound = alias.asname or alias.name
            found[f"from {source} import {alias.name} as {bound}"] = (bound, f"{source}:{alias.name}")
    return found
