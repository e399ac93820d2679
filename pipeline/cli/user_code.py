"""Python code of the user's own, given as ``path/to/file.py:name`` or ``package.module:name``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.messages import reason

MODULE_NAME = "user_code"
"""What a Python file of the user's is called among the imported modules."""


@dataclass(frozen=True)
class Named:
    """An object, its ``name``, the file or module ``where`` it is, as given, and its ``file`` (None for a module)."""

    value: Any
    name: str
    where: str
    file: Path | None


def named_object(option: str, text: str) -> Named:
    """The object that ``text`` names; a file is run for it.

    Raises ValueError, which begins with the ``option`` that the text was given to, where there is no such object.
    """
    where, _, name = text.rpartition(":")
    file = Path(where) if where.endswith(".py") else None
    try:
        module = import_module(where) if file is None else run_file(file)
    except Exception as error:
        raise ValueError(f"{option} {text}: importing {where!r} failed with {reason(error)}") from error
    if not hasattr(module, name):
        public = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        raise ValueError(f"{option} {text}: {where!r} has no {name!r}. It has: {', '.join(public) or 'nothing'}")
    return Named(getattr(module, name), name, where, file)


def run_file(path: Path) -> ModuleType:
    """Run a Python file as a module, which can import its neighbours as a script can.

    Raises FileNotFoundError where there is none, and whatever the file raises.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    importable_from(path.resolve().parent)
    # A name of its own, so that a file called numpy.py takes no other module's place; registered before it runs, since
    # dataclasses look their module up.
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE_NAME] = module
    spec.loader.exec_module(module)
    return module


def import_module(name: str) -> ModuleType:
    """Import a module by its name, from the current folder too. Raises whatever the import raises."""
    importable_from(Path.cwd())
    return importlib.import_module(name)


def importable_from(folder: Path) -> None:
    """Let a user's code find the modules in this folder, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
