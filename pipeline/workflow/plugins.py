"""Plug-ins: a data set, method, transport map or audit is a Python file and a file of parameters in ``conf``.

``kind: MODULE.ENTRY`` in such a file chooses one of several settings of a module, its ``CONFIGS[ENTRY]``.
"""

import importlib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from inspect import signature
from types import ModuleType
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.validation import made
from fairness_audits.values import Checkpoint

PACKAGES = {
    "dataset": ("pipeline.datasets",),
    "method": ("pipeline.methods",),
    "transport": ("pipeline.transport", "fairness_audits.transport"),
    "audit": ("pipeline.audits",),
}
"""The packages with the plug-ins of each group, in the order of the search."""


def module_name(group: str, kind: str) -> str:
    """Return the full name of the module for ``kind``. The module need not exist."""
    names = [f"{package}.{kind.partition('.')[0]}" for package in PACKAGES[group]]
    return next((name for name in names if find_spec(name)), names[0])


def load(group: str, kind: str) -> ModuleType:
    """Import the module of a data set, method, transport map or audit."""
    name = module_name(group, kind)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        path = name.replace(".", "/") + ".py"
        problem = f"There is no module for {group} {kind!r}"
        remedy = f"Write {path} or correct conf/{group}"
        raise InvalidInput(problem, source=path, option=group, remedy=remedy) from error


def resuming(work: Callable[..., Any] | None, resume: Checkpoint | None) -> dict[str, Any]:
    """Return the argument ``resume`` for a ``fit`` or ``run`` that takes it."""
    return {"resume": resume} if work and "resume" in signature(work).parameters else {}


def configure(module: ModuleType, section: Mapping[str, Any]) -> Any:
    """Build the ``Config`` of a module from a resolved section. Raises InvalidInput for unknown and missing keys."""
    values = {key: value for key, value in section.items() if key not in ("name", "kind")}
    source = f"configuration of {section.get('name')!r}"
    configs = module.CONFIGS if hasattr(module, "CONFIGS") else {"": module.Config}
    entry = str(section.get("kind", "")).partition(".")[2]
    if entry not in configs:
        expected = ", ".join(f"MODULE.{name}" if name else "MODULE" for name in configs)
        raise InvalidInput(
            f"{source}: expected kind to be {expected}; found {section.get('kind')!r}", source=source, option="kind"
        )
    return made(configs[entry], values, source)
