"""Configuration files: read, expanded into points, and checked for typos."""

import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import RangeSweep
from hydra.errors import HydraException
from omegaconf import OmegaConf

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys, nearest, reason

GROUPS = ("dataset", "method", "transport", "audit")
REQUIRED = ("dataset", "method", "audit")
"""Groups that a point must have. The transport map is optional."""
NOTHING = {"dataset": "none", "method": "none"}
"""Defaults for a block that names neither: its audit simulates its own populations."""
REPETITIONS, FITTED = "repetitions", ("method", "transport")
NAME = re.compile(r"\w+", re.ASCII)
"""Names of studies, sweeps and blocks. They appear in paths, rules and commands."""
KEYS = {"experiment": ("title", "paper", "grid"), "sweep": ("title", "grid", "figure")}
"""Keys of the file of a study and of a sweep."""
SWEPT = re.compile(r"(range|choice)\(.*\)")
"""Hydra's notations for several values."""


@dataclass(frozen=True)
class Point:
    """A combination of data set, method, audit and optional transport map in a block, with its settings."""

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
        """Return ``block/dataset`` or ``block/dataset/network``, the smallest part that a run can leave out."""
        return "/".join(filter(None, (self.block, self.dataset, dict(self.settings).get("method.model"))))

    def name(self, group: str) -> str:
        """Return the name of the file of one group, with the settings of the grid.

        The path of an audit contains its study and block, so its name has only the settings that vary within the block.
        The names of methods and transport maps include the number of repetitions if the grid sets it.
        """
        prefix = f"{group}."
        parts = [
            f"{key.removeprefix(prefix)}={_label(value)}"
            for key, value in self.settings
            if (key.startswith(prefix) and (group != "audit" or key in self.swept))
            or (key == REPETITIONS and group in FITTED)
        ]
        # Commas are not allowed: Snakemake splits wildcards at commas when it submits a job to another machine.
        return "@".join([getattr(self, group), *parts])

    def columns(self) -> dict[str, Any]:
        """Return the settings of the grid as columns of the tidy rows: single values and the transport map.

        The audit itself adds the source group of a map, because a map has two directions. Raises InvalidInput if two
        settings have the same name in different groups, such as ``method.steps`` and ``audit.steps``.
        """
        settings = [
            (key, value)
            for key, value in self.settings
            if not isinstance(value, tuple) and key not in ("transport.source", REPETITIONS)
        ]
        single: dict[str, Any] = {}
        for key, value in settings:
            if (name := key.split(".", 1)[-1]) in single:
                problem = f"block {self.block!r} sets {name!r} in two groups, but the rows have one column of this name"
                raise InvalidInput(problem, option=key, remedy="Set one of them in a file of conf/")
            single[name] = value
        return {**single, **({"transport": self.transport} if self.transport else {})}


@functools.cache
def defaults(conf: Path) -> dict[str, Any]:
    """Return Hydra's composition of ``conf/config.yaml``."""
    with _apart(), initialize_config_dir(version_base="1.3", config_dir=str(conf)):
        return OmegaConf.to_container(compose("config"), resolve=True)  # type: ignore[return-value]


@contextmanager
def _apart() -> Iterator[None]:
    """Suspend the running Hydra application, if any, because Hydra supports only one at a time."""
    instance = GlobalHydra.instance()
    running = instance.hydra
    instance.clear()
    try:
        yield
    finally:
        instance.hydra = running


@functools.cache
def section(conf: Path, group: str, name: str) -> dict[str, Any]:
    """Return ``conf/<group>/<name>.yaml``. Raises InvalidInput if it does not exist.

    The files do not refer to each other, so Hydra need not compose them, which would take a second.
    """
    path = conf / group / f"{name}.yaml"
    if not path.is_file():
        known = declared(conf, group)
        text = f"There is no conf/{group}/{name}.yaml{nearest(name, known)}. The files are {', '.join(known)}"
        raise InvalidInput(text, option=group)
    return read(path)


def read(path: Path) -> dict[str, Any]:
    """Read a configuration file. Raises InvalidInput if it is not YAML with keys."""
    where = "/".join(path.parts[-3:])
    try:
        found = yaml.load(path.read_bytes(), _Loader) or {}
    except yaml.YAMLError as error:
        raise InvalidInput(f"{where} cannot be read: {reason(error)}", source=where) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{where} has no keys", source=where, remedy="Write key: value on each line")
    return found


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's loader, which reads ``1e-4`` as a number and refuses a key that is given twice, as Hydra does."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d[\d_]*(\.\d*)?[eE][-+]?\d+"), list("-+0123456789")
)


@functools.cache
def experiment(conf: Path, study: str) -> dict[str, Any]:
    """Return the declaration of a study or a sweep."""
    folder = folder_of(conf, study)
    source = f"conf/{folder}/{study}.yaml"
    written = read(conf / folder / f"{study}.yaml")
    check_keys(written, KEYS[folder], source)
    grid = written.get("grid")
    if not grid:
        raise InvalidInput(
            f"{source} has no grid", source=source, option="grid", remedy="Add blocks with dataset, method and audit"
        )
    if not isinstance(grid, dict) or not all(isinstance(block, dict) for block in grid.values()):
        problem = f"{source}: a block of the grid is not a mapping"
        raise InvalidInput(problem, source=source, option="grid", remedy="Write each block as name: {key: value, ...}")
    for name in (study, *map(str, grid)):
        if not NAME.fullmatch(name):
            problem = f"{source}: the name {name!r} contains characters other than letters, digits and _"
            raise InvalidInput(problem, source=source, option=name, remedy="Rename it")
    return {"name": study, **written}


def folder_of(conf: Path, study: str) -> str:
    """Return the folder of ``conf`` that declares a study or sweep: ``experiment`` or ``sweep``.

    Raises InvalidInput if neither does.
    """
    for folder in KEYS:
        if study in declared(conf, folder):
            return folder
    known = declared(conf, "experiment")
    raise InvalidInput(
        f"There is no study {study!r}{nearest(study, known)}. The studies are {', '.join(known)}", option="study"
    )


def place_of(conf: Path, study: str, block: str) -> str:
    """Return the file and block of a study or a sweep, for messages."""
    return f"conf/{folder_of(conf, study)}/{study}.yaml, block {block!r}"


def declared(conf: Path, folder: str) -> tuple[str, ...]:
    """Return the names of the files of a folder: studies (``experiment``), sweeps (``sweep``), data sets, ..."""
    return tuple(sorted(path.stem for path in (conf / folder).glob("*.yaml")))


@functools.cache
def points(conf: Path, study: str) -> tuple[Point, ...]:
    """Expand the grid of a study or a sweep: in each block, the product over all keys with several values.

    Several values are a list or, in Hydra's notation, ``range(start, stop, step)`` or ``choice(a, b)``. A list inside a
    list is a single value, an axis inside the job.
    """
    expanded: list[Point] = []
    for block, written in experiment(conf, study)["grid"].items():
        where = place_of(conf, study, block)
        if not NOTHING.keys() & written.keys():
            written = NOTHING | written
        for key, value in written.items():
            if _has_mapping(value):
                problem = f"{where}, {key}: a value of the grid cannot be a mapping, found {value}"
                remedy = f"Set its keys one by one, as {key}.KEY: value"
                raise InvalidInput(problem, source=where, option=str(key), remedy=remedy)
        grid = {key: several(value, f"{where}, {key}") for key, value in written.items()}
        for key in map(str, grid):
            if key != REPETITIONS and key.split(".")[0] not in GROUPS:
                known = (*GROUPS, REPETITIONS)
                hint = nearest(key.split(".")[0], known)
                problem = f"{where}: there is no key {key!r}{hint}. Keys start with {', '.join(known)}"
                raise InvalidInput(problem, source=where, option=key)
        if empty := [key for key, value in grid.items() if value == []]:
            problem = f"{where}, {empty[0]}: {written[empty[0]]} has no values"
            raise InvalidInput(problem, source=where, option=str(empty[0]), remedy="Give at least one value")
        absent = [group for group in REQUIRED if group not in grid]
        if absent:
            raise InvalidInput(f"{where}: {', '.join(absent)} is missing", source=where, option=absent[0])
        swept = tuple(key for key, value in grid.items() if isinstance(value, list) and len(value) > 1)
        for values in itertools.product(*(listed(value) for value in grid.values())):
            chosen = dict(zip(grid, values, strict=True))
            groups = {group: chosen.pop(group) for group in GROUPS if group in chosen}
            settings = tuple((key, _frozen(value)) for key, value in chosen.items())
            expanded.append(Point(study, block, **groups, settings=settings, swept=swept))
    return tuple(expanded)


def several(value: Any, where: str) -> Any:
    """Expand ``range(...)`` and ``choice(...)`` to a list. Return other values unchanged."""
    if not (isinstance(value, str) and SWEPT.fullmatch(value)):
        return value
    try:
        override = OverridesParser.create().parse_override(f"key={value}")
        # Avoid 0.30000000000000004 for .1 + .1 + .1 in the names of files.
        values = [float(f"{item:.12g}") if isinstance(item, float) else item for item in override.sweep_iterator()]
        read = override.value()
        # Exclude the stop: rounding can turn 1 + .1 + .1 + .1 into 1.3.
        return [item for item in values if item != read.stop] if isinstance(read, RangeSweep) else values
    except HydraException as error:
        problem = f"{where}: cannot read {value!r}"
        remedy = "Write range(start, stop, step), choice(a, b, c) or a list"
        raise InvalidInput(problem, source=where, remedy=remedy) from error


def update(config: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set an existing key such as ``method.epochs``. Raises InvalidInput for another key and suggests the nearest."""
    *path, last = key.split(".")
    section: Any = config
    for name in path:
        section = section.get(name) if isinstance(section, dict) else None
    if not isinstance(section, dict) or last not in section:
        raise InvalidInput(
            f"{where}: there is no key {key!r}{nearest(key, sorted(_keys(config)))}", source=where, option=key
        )
    section[last] = list(value) if isinstance(value, tuple) else value


def listed(value: Any) -> list[Any]:
    """Return a list or tuple as a list, and any other value as a list of one element."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def encoded(section: Any) -> str:
    """Encode a section as one line of JSON, as the stages read it."""
    return json.dumps(section, sort_keys=True)


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
    """Format a value for a file name: lists without brackets, numbers with their sign."""
    return "-".join(filter(None, re.split(r"[^\w.+-]+", str(value))))
