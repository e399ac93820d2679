"""The values of a point: what files, study, scale and user set, laid over each other.

The later of these wins:

1. ``conf/{dataset,method,transport,audit}/<name>.yaml``;
2. the ``per_dataset`` entry of that file for the point's dataset, then its ``settings``, each a ``where`` and a ``set``
   (:mod:`pipeline.workflow.settings`);
3. the point's own settings, from the study's ``grid``;
4. the scale's ``settings``, but for what stands in the name of a file, and for all that a sweep declares: there the
   grid's word is the last;
5. what the user sets for one run: ``--config set="method.sensr.learning_rate=2e-5"``, or, for all points of a dataset,
   a method or a map, how often they are repeated: ``set="dataset.gaussian.repetitions=20"``.

A key that the files do not have is refused with the nearest one that they do.
"""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from fairness_audits.messages import enumerated
from pipeline.workflow.composition import (
    GROUPS,
    REPETITIONS,
    Point,
    composed,
    declared,
    place_of,
    plain,
    section,
    update,
)
from pipeline.workflow.settings import Setting, laid_over, read


class Resolver:
    """Resolves points for the settings of a scale and of a user, each point once.

    Raises ValueError for a user's setting of what is not there.
    """

    def __init__(self, conf: Path, scale: str, of_user: Sequence[Setting]) -> None:
        self.conf = conf
        self.scale = scale
        self.of_scale = of_scale(conf, scale)
        self.of_user = of_user
        self._sweeps = declared(conf, "sweep")
        self._files: dict[tuple[str, str], tuple[dict[str, Any], list[Setting]]] = {}
        self._resolved: dict[Point, dict[str, Any]] = {}
        for setting in of_user:
            ((group, (name,)),) = setting.where.items()
            config = deepcopy({REPETITIONS: 1, group: self._file(group, name)[0]})
            for key, value in setting.values.items():
                update(config, key, value, "set")

    def sections(self, point: Point) -> dict[str, Any]:
        """The section of each part that the point has, with its ``name`` and its module's ``kind``; ``repetitions``."""
        if point not in self._resolved:
            self._resolved[point] = self._laid_over(point)
        return self._resolved[point]

    def _file(self, group: str, name: str) -> tuple[dict[str, Any], list[Setting]]:
        """The values of ``conf/<group>/<name>.yaml``, and those that it has for some points."""
        if (group, name) not in self._files:
            values = plain(section(self.conf, group, name))
            written = [
                {"where": {"dataset": dataset}, "set": {f"{group}.{key}": value for key, value in special.items()}}
                for dataset, special in (values.pop("per_dataset", None) or {}).items()
            ]
            written += values.pop("settings", None) or []
            self._files[group, name] = values, read(self.conf, written, f"conf/{group}/{name}.yaml")
        return self._files[group, name]

    def _laid_over(self, point: Point) -> dict[str, Any]:
        named = {group: getattr(point, group) for group in GROUPS if getattr(point, group)}
        files = {group: self._file(group, name) for group, name in named.items()}
        of_files = {group: values for group, (values, _) in files.items()}
        config = deepcopy({REPETITIONS: composed(self.conf).repetitions, **of_files})
        # What a condition may name: the point's parts, and the values that stand in their files or in the grid.
        parts = {
            **{f"{group}.{key}": value for group, values in of_files.items() for key, value in values.items()},
            **_parts(point),
        }
        # What stands in the name of a file, and all that a sweep declares, is the grid's alone.
        last = {key for key, _ in point.settings if not key.startswith("audit.") or point.study in self._sweeps}
        by_scale = {key: value for key, value in laid_over(self.of_scale, parts).items() if key not in last}
        layers = [(f"conf/{group}/{named[group]}.yaml", laid_over(own, parts)) for group, (_, own) in files.items()]
        # What several points share is asked for without their study.
        of_grid = f"the grid's settings of {' and '.join(named.values())} (conf/experiment, conf/sweep)"
        layers += [
            (place_of(self.conf, point.study, point.block) if point.study else of_grid, dict(point.settings)),
            (f"conf/scale/{self.scale}.yaml", by_scale),
            ("set", laid_over(self.of_user, parts)),
        ]
        for source, values in layers:
            for key, value in values.items():
                if key == REPETITIONS or key.split(".")[0] not in GROUPS or key.split(".")[0] in named:
                    update(config, key, value, source)
        sections = {group: {"kind": name, **config[group], "name": name} for group, name in named.items()}
        return {REPETITIONS: int(config[REPETITIONS]), **sections}


def left_out(conf: Path, scale: str, points: Sequence[Point]) -> list[Point]:
    """Those of the points that ``conf/scale/<scale>.yaml`` leaves out: each fulfils every ``where`` of one entry.

    A condition names parts of a point and what the grid sets of them, not what stands in a part's file.
    """
    entries = read(conf, _written(conf, scale, "left_out"), f"conf/scale/{scale}.yaml")
    return [point for point in points if any(entry.applies(_parts(point)) for entry in entries)]


def _written(conf: Path, scale: str, key: str) -> list[Any]:
    """The entries of a scale below those of the scale that it ``extends``."""
    written = plain(composed(conf, (f"scale={scale}",)).scale)
    base = _written(conf, written["extends"], key) if "extends" in written else []
    return [*base, *(written.get(key) or [])]


def _parts(point: Point) -> dict[str, Any]:
    """What a condition may name of a point, but what stands in the files of its parts."""
    named = {group: getattr(point, group) for group in GROUPS if getattr(point, group)}
    return {**dict(point.settings), "study": point.study, "block": point.block, **named}


def of_scale(conf: Path, scale: str) -> list[Setting]:
    """The settings of ``conf/scale/<scale>.yaml``, checked.

    The file of a model or a transport map is shared by every block and study that asks for it, so what it is fitted
    with may depend on the dataset and the method, or the dataset and the transport, alone.
    """
    source = f"conf/scale/{scale}.yaml"
    settings = read(conf, _written(conf, scale, "settings"), source)
    shared = {
        "dataset": ("dataset",),
        "method": ("dataset", "method"),
        "transport": ("dataset", "transport"),
        REPETITIONS: ("dataset", "method", "transport"),
    }
    for setting in settings:
        for group in {key.split(".")[0] for key in setting.values} & set(shared):
            if wrong := [key for key in setting.where if key not in shared[group] and not key.startswith(f"{group}.")]:
                allowed = enumerated(shared[group])
                raise ValueError(f"{source}: {group} may be set by {allowed} only, not by {', '.join(sorted(wrong))}")
    return settings
