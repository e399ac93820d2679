"""How configuration files are read: composed by Hydra, expanded into points, and checked for typos."""

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import RangeSweep
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, OmegaConf

from fairness_audits.messages import check_keys, nearest

GROUPS = ("dataset", "method", "transport", "audit")
REQUIRED = ("dataset", "method", "audit")
"""A point need not have a transport map."""
NOTHING = {"dataset": "none", "method": "none"}
"""What a block that names neither has: its audit draws populations of its own."""
REPETITIONS, FITTED = "repetitions", ("method", "transport")
NAME = re.compile(r"\w+", re.ASCII)
"""What a study, a sweep or a block may be called: its name is a folder's, and stands in rules and commands."""
KEYS = {"experiment": ("title", "paper", "grid"), "sweep": ("title", "grid", "figure")}
"""What the file of a study and that of a sweep may have."""
SWEPT = re.compile(r"(range|choice)\(.*\)")
"""Hydra's own notations for several values."""


@dataclass(frozen=True)
class Point:
    """One dataset, method, audit and perhaps transport map of a study's block, with the grid's own settings for it."""

    study: str
    block: str
    dataset: str
    method: str
    audit: str
    settings: tuple[tuple[str, Any], ...] = ()
    swept: tuple[str, ...] = ()
    transport: str = ""

    @property
    def part(self) -> str:
        """``block/dataset``, and the network if there is one: the least that one run of a study has and another not."""
        return "/".join(filter(None, (self.block, self.dataset, dict(self.settings).get("method.model"))))

    def name(self, group: str) -> str:
        """The name of a file of this point's part, with the settings that it was given.

        An audit's file lies below its study and block, so only the settings that vary within the block are in it. What
        is fitted says how often, where the grid does.
        """
        prefix = f"{group}."
        parts = [
            f"{key.removeprefix(prefix)}={_label(value)}"
            for key, value in self.settings
            if (key.startswith(prefix) and (group != "audit" or key in self.swept))
            or (key == REPETITIONS and group in FITTED)
        ]
        # No comma: Snakemake parts a job's wildcards by commas when it hands the job to another machine.
        return "@".join([getattr(self, group), *parts])

    def columns(self) -> dict[str, Any]:
        """What the grid sets for this point as columns of the tidy rows: single values, and the transport map's name.

        Which group a map comes from is a column of the audit's own, since a map has two directions.
        """
        single = {
            key.split(".", 1)[-1]: value
            for key, value in self.settings
            if not isinstance(value, tuple) and key not in ("transport.source", REPETITIONS)
        }
        return {**single, **({"transport": self.transport} if self.transport else {})}


@functools.cache
def composed(conf: Path, choices: tuple[str, ...] = ()) -> DictConfig:
    """Hydra's composition of ``conf/config.yaml`` with choices such as ``dataset=adult``; an empty one is none."""
    chosen = [choice for choice in choices if not choice.endswith("=")]
    with _apart(), initialize_config_dir(version_base="1.3", config_dir=str(conf)):
        try:
            return compose("config", overrides=chosen)
        except MissingConfigException as error:
            raise ValueError(_missing(conf, chosen)) from error


@contextmanager
def _apart() -> Iterator[None]:
    """Set the running Hydra application, if there is one, aside: Hydra knows one at a time."""
    instance = GlobalHydra.instance()
    running = instance.hydra
    instance.clear()
    try:
        yield
    finally:
        instance.hydra = running


@functools.cache
def sections(conf: Path) -> DictConfig:
    """Every ``conf/<group>/<name>.yaml`` of the groups of a point, as ``sections[group][name]``.

    Sections do not refer to each other, so Hydra composes all of them at once: a composition for each combination that
    some point asks for would take half a minute.
    """
    names = [(group, path.stem) for group in GROUPS for path in sorted((conf / group).glob("*.yaml"))]
    return composed(conf, tuple(f"+{group}@sections.{group}.{name}={name}" for group, name in names)).sections


def section(conf: Path, group: str, name: str) -> DictConfig:
    """``conf/<group>/<name>.yaml``; raises ValueError where it is not there."""
    found = sections(conf).get(group) or {}
    if name not in found:
        raise ValueError(_missing(conf, (f"{group}={name}",)))
    return found[name]


@functools.cache
def experiment(conf: Path, study: str) -> dict[str, Any]:
    """The declaration of a study or a sweep."""
    folder = folder_of(conf, study)
    source = f"conf/{folder}/{study}.yaml"
    written = plain(OmegaConf.load(conf / folder / f"{study}.yaml"))
    check_keys(written, KEYS[folder], source)
    grid = written.get("grid")
    if not grid:
        raise ValueError(f"{source} has no grid: give it blocks of dataset, method and audit")
    if not isinstance(grid, dict) or not all(isinstance(block, dict) for block in grid.values()):
        raise ValueError(f"{source}: write each block of grid as name: {{key: value, ...}}")
    for name in (study, *map(str, grid)):
        if not NAME.fullmatch(name):
            raise ValueError(f"{source}: {name!r} names files: expected letters, digits and _ alone")
    return {"name": study, **written}


def folder_of(conf: Path, study: str) -> str:
    """``experiment`` or ``sweep``, whichever folder of ``conf`` declares it; ValueError where neither does."""
    for folder in KEYS:
        if study in declared(conf, folder):
            return folder
    known = [name for folder in KEYS for name in declared(conf, folder)]
    raise ValueError(f"there is no study {study!r}{nearest(study, known)}. There are: {', '.join(known)}")


def place_of(conf: Path, study: str, block: str) -> str:
    """Where a block of a study or a sweep is written, for messages."""
    return f"conf/{folder_of(conf, study)}/{study}.yaml, block {block!r}"


def declared(conf: Path, folder: str) -> tuple[str, ...]:
    """The names of the studies (``experiment``) or sweeps (``sweep``) that the folder declares."""
    return tuple(sorted(path.stem for path in (conf / folder).glob("*.yaml")))


@functools.cache
def points(conf: Path, study: str) -> tuple[Point, ...]:
    """Expand the grid of a study or a sweep: in each block, the product over every key that holds several values.

    Those are a list or, in Hydra's notation, ``range(start, stop, step)`` or ``choice(a, b)``. A list inside a list is
    one value that is a list: an axis that the job itself runs over.
    """
    expanded: list[Point] = []
    for block, written in experiment(conf, study)["grid"].items():
        where = place_of(conf, study, block)
        if not NOTHING.keys() & written.keys():
            written = NOTHING | written
        for key, value in written.items():
            if _has_mapping(value):
                raise ValueError(
                    f"{where}, {key}: a value of the grid cannot be a mapping, found {value}. Set its keys one by one, "
                    f"as {key}.KEY: value"
                )
        grid = {key: several(value, f"{where}, {key}") for key, value in written.items()}
        for key in map(str, grid):
            if key != REPETITIONS and key.split(".")[0] not in GROUPS:
                known = (*GROUPS, REPETITIONS)
                hint = nearest(key.split(".")[0], known)
                raise ValueError(f"{where}: there is no key {key!r}{hint}: keys are of {', '.join(known)}")
        if empty := [key for key, value in grid.items() if value == []]:
            raise ValueError(f"{where}, {empty[0]}: {written[empty[0]]} has no value: give at least one")
        absent = [group for group in REQUIRED if group not in grid]
        if absent:
            raise ValueError(f"{where}: {', '.join(absent)} is not given")
        swept = tuple(key for key, value in grid.items() if isinstance(value, list) and len(value) > 1)
        for values in itertools.product(*(listed(value) for value in grid.values())):
            chosen = dict(zip(grid, values, strict=True))
            groups = {group: chosen.pop(group) for group in GROUPS if group in chosen}
            settings = tuple((key, _frozen(value)) for key, value in chosen.items())
            expanded.append(Point(study, block, **groups, settings=settings, swept=swept))
    return tuple(expanded)


def several(value: Any, where: str) -> Any:
    """The list that ``range(...)`` or ``choice(...)`` stands for; anything else as it is."""
    if not (isinstance(value, str) and SWEPT.fullmatch(value)):
        return value
    try:
        override = OverridesParser.create().parse_override(f"key={value}")
        # Not 0.30000000000000004 for .1 + .1 + .1, which would be in the names of files.
        values = [float(f"{item:.12g}") if isinstance(item, float) else item for item in override.sweep_iterator()]
        read = override.value()
        # Nor 1.3 for 1 + .1 + .1 + .1 below 1.3: the stop is never reached.
        return [item for item in values if item != read.stop] if isinstance(read, RangeSweep) else values
    except HydraException as error:
        raise ValueError(
            f"{where}: cannot read {value!r}: write range(start, stop, step), choice(a, b, c) or a list"
        ) from error


def update(config: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set an existing key, such as ``method.epochs``; one that is not there is an error that names the nearest."""
    *path, last = key.split(".")
    section: Any = config
    for name in path:
        section = section.get(name) if isinstance(section, dict) else None
    if not isinstance(section, dict) or last not in section:
        raise ValueError(f"{where}: there is no key {key!r}{nearest(key, sorted(_keys(config)))}")
    section[last] = list(value) if isinstance(value, tuple) else value


def plain(config: Any) -> dict[str, Any]:
    """A configuration node as plain dictionaries and lists."""
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def listed(value: Any) -> list[Any]:
    """A value as a list: itself if it is one, else of one element."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def encoded(section: Any) -> str:
    """A section as one line of JSON, the form in which a stage receives it."""
    return json.dumps(section, sort_keys=True)


def _missing(conf: Path, choices: Iterable[str]) -> str:
    for choice in choices:
        group, name = choice.split("=", 1)
        known = sorted(path.stem for path in (conf / group).glob("*.yaml"))
        if name not in known:
            return f"there is no conf/{group}/{name}.yaml{nearest(name, known)}. There are: {', '.join(known)}"
    return f"cannot compose {list(choices)}"


def _keys(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in config.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def _has_mapping(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_mapping, value)))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _label(value: Any) -> str:
    """A value as part of a file's name: a list without its brackets, a number with its sign."""
    return "-".join(filter(None, re.split(r"[^\w.+-]+", str(value))))
