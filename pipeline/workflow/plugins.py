"""A dataset, method, transport or audit is one Python file, found by its name; its values are one file in ``conf``."""

import importlib
from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.fields import made
from pipeline.types import Keeper

PACKAGES = {
    "dataset": "pipeline.datasets",
    "method": "pipeline.methods",
    "transport": "pipeline.transport",
    "audit": "pipeline.audits",
}


def module_name(group: str, kind: str) -> str:
    """The full name of the module behind ``kind``: of the group's package, or of a room in it (``audits/ROOM``)."""
    package = PACKAGES[group]
    folders = [Path(folder) for folder in importlib.import_module(package).__path__]
    if any((folder / f"{kind}.py").is_file() for folder in folders):
        return f"{package}.{kind}"
    rooms = sorted(path.parent.name for folder in folders for path in folder.glob(f"*/{kind}.py"))
    if len(rooms) > 1:
        raise ValueError(f"{group} {kind!r} is in {' and in '.join(rooms)} of {package}: rename one of the files")
    return ".".join([package, *rooms, kind])


def load(group: str, kind: str) -> ModuleType:
    """Import the module behind a dataset, method, transport or audit."""
    name = module_name(group, kind)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        path = name.replace(".", "/") + ".py"
        raise ValueError(f"{group} {kind!r} has no module: write {path}, or correct conf/{group}") from error


def resuming(work: Callable[..., Any] | None, keeper: Keeper) -> dict[str, Keeper]:
    """What a module's ``fit`` or ``run`` takes besides its inputs: the keeper, if it goes on where it was killed."""
    return {"keeper": keeper} if work and "keeper" in signature(work).parameters else {}


def configure(module: ModuleType, section: Mapping[str, Any]) -> Any:
    """Build the module's ``Config`` from a resolved section; a key too many or too few is an error that names it."""
    values = {key: value for key, value in section.items() if key not in ("name", "kind")}
    return made(module.Config, values, f"configuration of {section.get('name')!r}")
