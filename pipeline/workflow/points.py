"""The points of every study at a scale, their files and their values.

A *point* is one combination of the grid of a block: a data set, a method, an audit and possibly a transport map, with
settings. Its values are merged from these sources. Later ones take precedence:

1. ``conf/{dataset,method,transport,audit}/<name>.yaml``;
2. the ``per_dataset`` entry of that file for the point's data set, then its ``settings``;
3. the grid of the study;
4. the ``settings`` of the scale, except for keys in the name of a file and keys that a sweep declares: there the grid
   takes precedence;
5. the user's settings: ``--config set="method.sensr.learning_rate=2e-5"``, or the number of repetitions for all points
   of a data set, a method or a map: ``set="dataset.gaussian.repetitions=20"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

from fairness_audits.errors import InvalidInput
from pipeline.workflow.conf import GROUPS, REPETITIONS, Conf, Setting, axes_of, merged, update


@dataclass(frozen=True)
class Point:
    """A combination of data set, method, audit and optional transport map in a block, with its settings.

    ``settings`` come from the grid. ``swept`` are the keys with several values in the block.
    """

    study: str
    block: str
    dataset: str
    method: str
    audit: str
    settings: tuple[tuple[str, Any], ...] = ()
    swept: tuple[str, ...] = ()
    transport: str = ""

    @property
    def groups(self) -> dict[str, str]:
        """Return the data set, the method, the transport map and the audit, as far as the point has them."""
        return {group: name for group in GROUPS if (name := getattr(self, group))}

    @property
    def conditions(self) -> dict[str, Any]:
        """Return what a condition can name: the parts of the point and the settings of the grid."""
        return {**dict(self.settings), "study": self.study, "block": self.block, **self.groups}

    @property
    def part(self) -> str:
        """Return ``block/dataset`` or ``block/dataset/network``, the smallest part that a run can leave out."""
        return "/".join(filter(None, (self.block, self.dataset, dict(self.settings).get("method.model"))))

    def name(self, group: str) -> str:
        """Return a name in a path: of the study, the block, or a group with the settings of the grid.

        An example is ``standard@model=vgg19``. The path of an audit contains its study and block, so its name has only
        the settings that vary within the block. The names of methods and transport maps include the number of
        repetitions if the grid sets it.
        """
        names = [getattr(self, group)]
        for key, value in self.settings:
            own = key.startswith(f"{group}.") and (group != "audit" or key in self.swept)
            if own or (key == REPETITIONS and group in ("method", "transport")):
                # Commas are not allowed: Snakemake splits wildcards at commas when it submits a job to another machine.
                label = "-".join(filter(None, re.split(r"[^\w.+-]+", str(value))))
                names.append(f"{key.removeprefix(f'{group}.')}={label}")
        return "@".join(names)

    def columns(self) -> dict[str, Any]:
        """Return the settings of the grid as columns of the tidy rows: single values and the transport map.

        The audit itself adds the source group of a map, because a map has two directions.
        """
        single = {
            key: value
            for key, value in self.settings
            if not isinstance(value, tuple) and key not in ("transport.source", REPETITIONS)
        }
        columns: dict[str, Any] = {}
        for key, value in single.items():
            if (name := key.split(".", 1)[-1]) in columns:
                problem = f"block {self.block!r} sets {name!r} in two groups, but the rows have one column of this name"
                raise InvalidInput(problem, option=key, remedy="Set one of them in a file of conf/")
            columns[name] = value
        return {**columns, **({"transport": self.transport} if self.transport else {})}


@dataclass(frozen=True)
class Stage:
    """A step that makes one file for a point: the section that it reads, and the pattern of the path."""

    group: str
    output: str

    @cached_property
    def parts(self) -> list[str]:
        """Return the wildcards in the path, without the scale."""
        return re.findall(r"{(\w+)}", self.output)[1:]

    def names(self, point: Point) -> dict[str, str]:
        """Return the wildcards of the file of a point; empty if the point has no such file.

        The last name of an audit of a map is ``audit+transport``.
        """
        if not all(getattr(point, part) for part in self.parts):
            return {}
        names = {part: point.name(part) for part in self.parts}
        if "audit" in names and point.transport:
            names["audit"] += f"+{point.name('transport')}"
        return names

    def path(self, scale: str, point: Point) -> str:
        """Return the file of a point; empty if the point has no such file."""
        names = self.names(point)
        return self.output.format(scale=scale, **names) if names else ""

    def shared(self, point: Point) -> Point:
        """Return the point with only the parts and settings that affect the file, if studies share it."""
        if self.group == "audit":
            return point
        kept = {part: getattr(point, part) for part in self.parts}
        # The repetitions of a model do not affect its data.
        keys = {*kept, REPETITIONS} if self.group != "dataset" else kept.keys()
        settings = tuple((key, value) for key, value in point.settings if key.split(".")[0] in keys)
        return Point(**{"study": "", "block": "", "method": "", "audit": "", **kept}, settings=settings)


STAGES = {
    "prepare": Stage("dataset", "data/prepared/{scale}/{dataset}.npz"),
    "train": Stage("method", "results/models/{scale}/{dataset}/{method}.npz"),
    "transport": Stage("transport", "results/transports/{scale}/{dataset}/{transport}.npz"),
    "audit": Stage("audit", "results/audits/{scale}/{study}/{block}/{dataset}/{method}/{audit}.npz"),
}
"""Stages in topological order."""


class Grids:
    """The grids of every study and sweep at a scale: their points, and the values of each with the user's settings.

    Raises InvalidInput if the user sets an unknown key.
    """

    def __init__(self, conf: Conf, scale: str, of_user: Iterable[Setting] = ()) -> None:
        self.conf, self.scale, self.of_user = conf, scale, tuple(of_user)
        self.of_scale, self.left_out = conf.of_scale(scale, "settings"), conf.of_scale(scale, "left_out")
        # Each file is read once, and each point resolved once.
        self._file, self.resolve = cache(self._read), cache(self._resolve)
        for setting in self.of_user:
            ((group, (name,)),) = setting.where.items()
            for key, value in setting.values.items():
                update(deepcopy({REPETITIONS: 1, group: self._file(group, name)[0]}), key, value, "set")

    def declared(self, study: str) -> list[Point]:
        """Expand the grid of a study or a sweep: in each block, the product over all keys with several values.

        A list inside a list is a single value, an axis inside the job.
        """
        found = []
        for block, written in self.conf.declaration(study)["grid"].items():
            axes = axes_of(written, self.conf.place_of(study, block))
            swept = tuple(key for key, values in axes.items() if len(values) > 1)
            for values in product(*axes.values()):
                chosen = dict(zip(axes, values, strict=True))
                groups = {group: chosen.pop(group) for group in GROUPS if group in chosen}
                settings = tuple((key, _frozen(value)) for key, value in chosen.items())
                found.append(Point(study, block, **groups, settings=settings, swept=swept))
        return found

    def planned(self, study: str) -> list[Point]:
        """Return the declared points that the scale does not leave out."""
        return [p for p in self.declared(study) if not any(entry.applies(p.conditions) for entry in self.left_out)]

    def kind(self, group: str, name: str) -> str:
        """Return the module for a name in a path: the ``kind`` in its configuration, or the name itself."""
        chosen = re.split("[@+]", name)[0]
        return str(self.conf[f"{group}/{chosen}"].get("kind", chosen))

    def _read(self, group: str, name: str) -> tuple[dict[str, Any], list[Setting]]:
        """Return the values of ``conf/<group>/<name>.yaml`` and its settings for some points."""
        values = dict(self.conf[f"{group}/{name}"])
        written = [
            {"where": {"dataset": dataset}, "set": {f"{group}.{key}": value for key, value in special.items()}}
            for dataset, special in (values.pop("per_dataset", None) or {}).items()
        ]
        written += values.pop("settings", None) or []
        return values, self.conf.settings(written, f"conf/{group}/{name}.yaml")

    def _resolve(self, point: Point) -> dict[str, Any]:
        """Return ``repetitions`` and the section of each group of a point, with ``name`` and ``kind`` (the module)."""
        files = {group: self._file(group, name) for group, name in point.groups.items()}
        config: dict[str, Any] = deepcopy({group: values for group, (values, _) in files.items()})
        config[REPETITIONS] = self.conf["config"][REPETITIONS]
        names = " and ".join(point.groups.values())
        # Files that several points share are resolved without a study.
        grid = self.conf.place_of(point.study, point.block) if point.study else f"the grid's settings of {names}"
        # Conditions can name the parts of the point and the values in their files or in the grid.
        conditions = {f"{group}.{key}": value for group in files for key, value in config[group].items()}
        conditions |= point.conditions
        of_scale, of_user = merged(self.of_scale, conditions), merged(self.of_user, conditions)
        # Only the grid sets the keys in file names and the keys of a sweep.
        sweep = grid.startswith("conf/sweep/")
        for key in (key for key, _ in point.settings if sweep or not key.startswith("audit.")):
            of_scale.pop(key, None)
        if key := next((key for key in of_user if key in point.swept), ""):
            problem = f"set: {grid} has several values of {key}, and a single value would replace all of them"
            raise InvalidInput(problem, option=key, remedy="Change the values in this file")
        layers = [(f"conf/{g}/{point.groups[g]}.yaml", merged(own, conditions)) for g, (_, own) in files.items()]
        layers += [(grid, dict(point.settings)), (f"conf/scale/{self.scale}.yaml", of_scale), ("set", of_user)]
        for source, values in layers:
            for key, value in values.items():
                # Settings of a group that the point does not have are for others.
                if (group := key.split(".")[0]) not in GROUPS or group in files:
                    update(config, key, value, source)
        if type(number := config[REPETITIONS]) is not int or number < 1:
            problem = f"{names}: expected a whole number of {REPETITIONS}, found {number!r}"
            raise InvalidInput(problem, option=REPETITIONS, remedy="Set at least 1")
        sections = {group: {"kind": name, **config[group], "name": name} for group, name in point.groups.items()}
        return {REPETITIONS: config[REPETITIONS], **sections}


def sections(grids: Grids, points: Iterable[Point]) -> dict[str, Any]:
    """Return the resolved sections of points by audit file, with their names in the report."""
    return {
        STAGES["audit"].path(grids.scale, point): {
            **grids.resolve(point),
            "id": id_of("audit", point),
            "part": point.part,
            "map": point.name("transport") if point.transport else "",
        }
        for point in points
    }


def id_of(stage: str, point: Point) -> list[str]:
    """Return the names in the path of a file without the study, which identify it in the report."""
    return [name for part, name in STAGES[stage].names(point).items() if part != "study"]


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
