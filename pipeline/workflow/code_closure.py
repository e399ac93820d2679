"""Which of the project's own source files a module rests on, read from the import statements without importing."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path


def modules_behind(names: Iterable[str], root: Path) -> list[Path]:
    """The files of the modules ``names`` and of everything local that they import, at any depth, sorted.

    Imports inside functions count: that is where heavy ones stand. Imports for type checkers do not: nothing runs them.
    """
    pending, found = list(names), set[Path]()
    while pending:
        path = _file(pending.pop(), root)
        if path is not None and path not in found:
            found.add(path)
            pending.extend(_imports(path))
    return sorted(found)


def _file(name: str, root: Path) -> Path | None:
    base = root.joinpath(*name.split("."))
    return next(filter(Path.is_file, (base.with_suffix(".py"), base / "__init__.py")), None)


@functools.cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return every name that a file imports; those that are no file below the root are passed over."""
    names: list[str] = []
    for node in _executed(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # `from package import name` may name a module or something inside one; the file system tells which.
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below ``node`` but the bodies of ``if TYPE_CHECKING:``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        yield child
        yield from _executed(child)
