"""The values of a point, merged from files, study, scale and user.

Later sources take precedence:

1. ``conf/{dataset,method,transport,audit}/<name>.yaml``;
2. the ``per_dataset`` entry of that file for the point's dataset, then its ``settings``, each a ``where`` and a ``set``
   (:mod:`pipeline.workflow.settings`);
3. the point's own settings, from the study's ``grid``;
4. the scale's ``settings``, except for keys in the name of a file and keys that a sweep declares: there the grid
   takes precedence;
5. the user's settings: ``--config set="method.sensr.learning_rate=2e-5"``, or the number of repetitions for all points
   of a data set, a method or a map: ``set="dataset.gaussian.repetitions=20"``.

Unknown keys are refused, with a suggestion.
"""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys, enumerated
from pipeline.workflow.composition import (
    GROUPS,
    REPETITIONS,
    Point,
    declared,
    defaults,
    place_of,
    section,
    update,
)
from pipeline.workflow.settings import Setting, merged, read

SCALE = ("name", "description", "quick", "tracker", "extends", "settings", "left_out")
"""Keys of the file of a scale."""


class Resolver:
    """Resolves points for the settings of a scale and of a user, and caches the results.

    Raises InvalidInput if the user sets an unknown key.
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
        """Return ``repetitions`` and the section of each group of a point, with ``name`` and ``kind`` (the module)."""
        if point not in self._resolved:
            self._resolved[point] = self._resolve(point)
        return self._resolved[point]

    def _file(self, group: str, name: str) -> tuple[dict[str, Any], list[Setting]]:
        """Return the values of ``conf/<group>/<name>.yaml`` and its settings for some points."""
        if (group, name) not in self._files:
            values = dict(section(self.conf, group, name))
            written = [
                {"where": {"dataset": dataset}, "set": {f"{group}.{key}": value for key, value in special.items()}}
                for dataset, special in (values.pop("per_dataset", None) or {}).items()
            ]
            written += values.pop("settings", None) or []
            self._files[group, name] = values, read(self.conf, written, f"conf/{group}/{name}.yaml")
        return self._files[group, name]

    def _resolve(self, point: Point) -> dict[str, Any]:
        named = {group: getattr(point, group) for group in GROUPS if getattr(point, group)}
        files = {group: self._file(group, name) for group, name in named.items()}
        of_files = {group: values for group, (values, _) in files.items()}
        config = deepcopy({REPETITIONS: defaults(self.conf)[REPETITIONS], **of_files})
        # Conditions can name the parts of the point and the values in their files or in the grid.
        parts = {
            **{f"{group}.{key}": value for group, values in of_files.items() for key, value in values.items()},
            **_parts(point),
        }
        # Only the grid sets the keys in file names and the keys of a sweep.
        last = {key for key, _ in point.settings if not key.startswith("audit.") or point.study in self._sweeps}
        by_scale = {key: value for key, value in merged(self.of_scale, parts).items() if key not in last}
        layers = [(f"conf/{group}/{named[group]}.yaml", merged(own, parts)) for group, (_, own) in files.items()]
        # Files that several points share are resolved without a study.
        of_grid = f"the grid's settings of {' and '.join(named.values())} (conf/experiment, conf/sweep)"
        layers += [
            (place_of(self.conf, point.study, point.block) if point.study else of_grid, dict(point.settings)),
            (f"conf/scale/{self.scale}.yaml", by_scale),
            ("set", merged(self.of_user, parts)),
        ]
        if collapsed := [key for key, value in layers[-1][1].items() if key in point.swept]:
            where = place_of(self.conf, point.study, point.block)
            problem = f"set: {where} has several values of {collapsed[0]}, and a single value would replace all of them"
            raise InvalidInput(problem, option=collapsed[0], remedy="Change the values in this file")
        for source, values in layers:
            for key, value in values.items():
                if key == REPETITIONS or key.split(".")[0] not in GROUPS or key.split(".")[0] in named:
                    update(config, key, value, source)
        sections = {group: {"kind": name, **config[group], "name": name} for group, name in named.items()}
        repetitions = config[REPETITIONS]
        if isinstance(repetitions, bool) or not isinstance(repetitions, int) or repetitions < 1:
            problem = f"{' and '.join(named.values())}: expected a whole number of {REPETITIONS}, found {repetitions!r}"
            raise InvalidInput(problem, option=REPETITIONS, remedy="Set at least 1")
        return {REPETITIONS: repetitions, **sections}


def left_out(conf: Path, scale: str, points: Sequence[Point]) -> list[Point]:
    """Return the points that ``conf/scale/<scale>.yaml`` leaves out: they meet all conditions of an entry.

    Conditions name parts of a point and settings of the grid, not values in files.
    """
    entries = read(conf, _written(conf, scale, "left_out"), f"conf/scale/{scale}.yaml")
    return [point for point in points if any(entry.applies(_parts(point)) for entry in entries)]


def _written(conf: Path, scale: str, key: str) -> list[Any]:
    """Return the entries of a scale, after the entries of the scale that it extends.

    If the scale has its own ``left_out``, it replaces the ``left_out`` of the other scale.
    """
    written = section(conf, "scale", scale)
    check_keys(written, SCALE, f"conf/scale/{scale}.yaml")
    inherits = "extends" in written and not (key == "left_out" and key in written)
    base = _written(conf, written["extends"], key) if inherits else []
    return [*base, *(written.get(key) or [])]


def _parts(point: Point) -> dict[str, Any]:
    """Return the parts and grid settings of a point, which conditions can name."""
    named = {group: getattr(point, group) for group in GROUPS if getattr(point, group)}
    return {**dict(point.settings), "study": point.study, "block": point.block, **named}


def of_scale(conf: Path, scale: str) -> list[Setting]:
    """Read and check the settings of ``conf/scale/<scale>.yaml``.

    Blocks and studies share the file of a model or a transport map, so its settings may depend on the data set and the
    method or map only.
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
                raise InvalidInput(
                    f"{source}: settings of {group} may depend on {allowed} only, not on {', '.join(sorted(wrong))}",
                    source=source,
                    option=group,
                )
    return settings
