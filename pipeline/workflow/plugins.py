"""A dataset, method, transport or audit is one Python file, found by its name; its values are one file in ``conf``.

``kind: MODULE.ENTRY`` in such a file chooses one of several settings of a module, its ``CONFIGS[ENTRY]``.
"""

import importlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from inspect import signature
from types import ModuleType
from typing import Any

from fairness_audits.validation import made
from fairness_audits.values import Checkpoint

PACKAGES = {
    "dataset": ("pipeline.datasets",),
    "method": ("pipeline.methods",),
    "transport": ("pipeline.transport", "fairness_audits.transport"),
    "audit": ("pipeline.audits",),
}
"""The packages that hold the plug-ins of each group; the first one that has a module of the name wins."""


def module_name(group: str, kind: str) -> str:
    """Return the full name of the module behind ``kind``; where there is none, the name that it would have."""
    names = [f"{package}.{kind.partition('.')[0]}" for package in PACKAGES[group]]
    return next((name for name in names if find_spec(name)), names[0])


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


def resuming(work: Callable[..., Any] | None, resume: Checkpoint) -> dict[str, Checkpoint]:
    """What a module's ``fit`` or ``run`` takes besides its inputs: the resume, if it goes on where it was killed."""
    return {"resume": resume} if work and "resume" in signature(work).parameters else {}


def configure(module: ModuleType, section: Mapping[str, Any]) -> Any:
    """Build the module's ``Config`` from a resolved section; a key too many or too few is an error that names it."""
    values = {key: value for key, value in section.items() if key not in ("name", "kind")}
    source = f"configuration of {section.get('name')!r}"
    configs = module.CONFIGS if hasattr(module, "CONFIGS") else {"": module.Config}
    entry = str(section.get("kind", "")).partition(".")[2]
    if entry not in configs:
        expected = ", ".join(f"MODULE.{name}" if name else "MODULE" for name in configs)
        raise ValueError(f"{source}: expected kind to be {expected}; found {section.get('kind')!r}")
    return made(configs[entry], values, source)
