"""What the files of ``conf/`` may hold: the groups, keys and names, and the checks of them.

Each check raises InvalidInput with the file, the key and what to do. Files that do not exist or cannot be read are
refused by :mod:`pipeline.workflow.conf`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys, enumerated, nearest
from fairness_audits.validation import Checked, Size, made

GROUPS, REPETITIONS = ("dataset", "method", "transport", "audit"), "repetitions"
REQUIRED = ("dataset", "method", "audit")
"""Groups that a block must have. The transport map is optional."""
KEYS = {
    "experiment": ("title", "paper", "grid"),
    "sweep": ("title", "grid", "figure"),
    "scale": ("name", "description", "quick", "tracker", "extends", "settings", "left_out"),
}
"""The keys of the files in a folder. Each plug-in checks its own file."""
NAME = re.compile(r"\w+", re.ASCII)
"""Names of studies, sweeps and blocks. They appear in paths, rules and commands."""
SHARED = {
    "dataset": ("dataset",),
    "method": ("dataset", "method"),
    "transport": ("dataset", "transport"),
    REPETITIONS: ("dataset", "method", "transport"),
}
"""What a scale's settings of a group can depend on: blocks and studies share the file of a model or a transport map."""
GROWING = ("mem_mb", "runtime")
"""Memory (MB) and time (minutes), which all jobs request and which grow with each attempt."""


@dataclass(frozen=True)
class Request(Checked):
    """The keys of a setting of ``conf/resources.yaml``."""

    mem_mb: Size | None = None
    runtime: Size | None = None
    gpu: Size | None = None
    slurm_partition: str | None = None
    slurm_extra: str | None = None
    seconds: Size | None = None


# Files and the grids in them.


def file(group: str, name: str, content: Mapping[str, Any]) -> None:
    """Check the keys of a file, and the blocks of a study or a sweep with all names that appear in paths."""
    source = f"conf/{group}/{name}.yaml"
    if group in KEYS:
        check_keys(content, KEYS[group], source)
    if "grid" not in KEYS.get(group, ()):
        return
    grid = content.get("grid")
    if not grid:
        remedy = "Add blocks with dataset, method and audit"
        raise InvalidInput(f"{source} has no grid", source=source, option="grid", remedy=remedy)
    if not isinstance(grid, dict) or not all(isinstance(block, dict) for block in grid.values()):
        problem = f"{source}: a block of the grid is not a mapping"
        raise InvalidInput(problem, source=source, option="grid", remedy="Write each block as name: {key: value, ...}")
    if wrong := [one for one in (name, *map(str, grid)) if not NAME.fullmatch(one)]:
        problem = f"{source}: the name {wrong[0]!r} contains characters other than letters, digits and _"
        raise InvalidInput(problem, source=source, option=wrong[0], remedy="Rename it")


def block(axes: Mapping[str, Sequence[Any]], where: str) -> None:
    """Check the values of each key of a block."""
    for key, values in axes.items():
        if key != REPETITIONS and str(key).split(".")[0] not in GROUPS:
            known = (*GROUPS, REPETITIONS)
            hint = nearest(str(key).split(".")[0], known)
            problem = f"{where}: there is no key {key!r}{hint}. Keys start with {', '.join(known)}"
            raise InvalidInput(problem, source=where, option=str(key))
        if has_mapping(values):
            problem = f"{where}, {key}: a value of the grid cannot be a mapping, found {values}"
            remedy = f"Set its keys one by one, as {key}.KEY: value"
            raise InvalidInput(problem, source=where, option=str(key), remedy=remedy)
        if not values:
            problem = f"{where}, {key}: there are no values"
            raise InvalidInput(problem, source=where, option=str(key), remedy="Give at least one value")
    if absent := [group for group in REQUIRED if group not in axes]:
        raise InvalidInput(f"{where}: {', '.join(absent)} is missing", source=where, option=absent[0])


def has_mapping(value: Any) -> bool:
    """Return whether a value is a mapping or a nested list that holds one."""
    return isinstance(value, dict) or (isinstance(value, list) and any(map(has_mapping, value)))


# Settings: where and set.


def conditions(
    where: Mapping[str, Sequence[str]], known: Callable[[str], Sequence[str]], others: Iterable[str], source: str
) -> None:
    """Check the conditions of a setting and the names in them. ``others`` are conditions of jobs."""
    for key, wanted in where.items():
        if not (names := known(key)):
            hint = nearest(key, (*others, "study", "block", *GROUPS))
            raise InvalidInput(f"{source}: unknown condition {key!r}{hint}", source=source, option=key)
        for name in wanted:
            if not set("@*?[") & set(name) and name not in names:
                problem = f"{source}: there is no {key} {name!r}{nearest(name, names)}"
                raise InvalidInput(problem, source=source, option=key)


def of_scale(where: Iterable[str], values: Iterable[str], source: str) -> None:
    """Check that a scale's setting of a file that points share depends on the parts of this file only."""
    for group in {key.split(".")[0] for key in values} & set(SHARED):
        allowed = SHARED[group]
        if wrong := [key for key in where if key not in allowed and not key.startswith(f"{group}.")]:
            may = f"settings of {group} may depend on {enumerated(allowed)} only"
            raise InvalidInput(f"{source}: {may}, not on {', '.join(sorted(wrong))}", source=source, option=group)


def resources(settings: Iterable[Mapping[str, Any]], everywhere: Mapping[str, Any], source: str) -> None:
    """Check the requests of jobs, and that all jobs have memory and time."""
    for values in settings:
        made(Request, values, source)
    if missing := [key for key in GROWING if key not in everywhere]:
        problem = f"{source} does not set {enumerated(missing)} for all jobs"
        raise InvalidInput(problem, source=source, option=missing[0], remedy="Add a setting with where: {}")


def keys_of(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys of nested mappings, such as ``method`` and ``method.epochs``."""
    for key, value in config.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from keys_of(value, f"{prefix}{key}.")
