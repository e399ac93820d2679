"""The files of ``conf/``, and the settings in them.

``conf/schema.yaml`` says what each file may hold. What it cannot say is checked here: names, keys and dependencies.

A *setting* is ``{where: conditions, set: values}``: values for the points or jobs that meet all conditions. Later
settings take precedence. Scales (``conf/scale/``), resources (``conf/resources.yaml``), single files
(``conf/method/standard.yaml``) and the user (``SET=``) use this form. A condition names a study, a block, a part
(``method: sensr``) or the value of a key (``method.model: alexnet``). Conditions of jobs can also name the rule and the
scale. The names are one name, a list or a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import RangeSweep
from hydra.errors import HydraException

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_keys, enumerated, nearest, reason

GROUPS, REPETITIONS = ("dataset", "method", "transport", "audit"), "repetitions"
REQUIRED = ("dataset", "method", "audit")
"""Groups that a block must have. The transport map is optional."""
CONF = Path(__file__).resolve().parents[2] / "conf"
RULES = ("prepare", "train", "transport", "audit", "collect", "draw", "sweep", "report")
"""The rules that can run on another machine. ``fetch`` needs the network and runs locally."""
NOTHING = {"dataset": "none", "method": "none"}
"""Defaults for a block that names neither: its audit simulates its own populations."""
SHARED = {
    "dataset": ("dataset",),
    "method": ("dataset", "method"),
    "transport": ("dataset", "transport"),
    REPETITIONS: ("dataset", "method", "transport"),
}
"""What a scale's settings of a group can depend on: blocks and studies share the file of a model or a transport map."""
GROWING = ("mem_mb", "runtime")
"""Memory (MB) and time (minutes), which all jobs request and which grow with each attempt."""
SWEPT = re.compile(r"(range|choice)\(.*\)")
"""Hydra's notations for several values."""


@dataclass(frozen=True)
class Setting:
    """Values for points or jobs that meet all conditions of ``where``."""

    where: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Any]

    def applies(self, parts: Mapping[str, Any]) -> bool:
        """Return whether ``parts`` (names by condition) meet all conditions."""
        return all(key in parts and matches(str(parts[key]), wanted) for key, wanted in self.where.items())


def matches(part: str, wanted: Sequence[str]) -> bool:
    """Return whether ``part`` is one of the names, with or without its settings, or matches one of the patterns."""
    return any(part == name or part.split("@")[0] == name or fnmatchcase(part, name) for name in wanted)


def merged(settings: Iterable[Setting], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all settings that apply."""
    return {key: value for setting in settings if setting.applies(parts) for key, value in setting.values.items()}


class Conf(dict[str, dict[str, Any]]):
    """The files of ``conf/`` by name, such as ``method/sensr``, each read once."""

    def __init__(self, folder: Path = CONF) -> None:
        super().__init__()
        self.folder = folder
        self.known = cache(self._known)

    def __missing__(self, name: str) -> dict[str, Any]:
        """Read and check a file. Raises InvalidInput if it does not exist, with the nearest name."""
        group, _, stem = name.rpartition("/")
        path = self.folder / f"{name}.yaml"
        if not path.is_file():
            known = self.names(group)
            problem = f"There is no conf/{name}.yaml{nearest(stem, known)}. The files are {', '.join(known)}"
            raise InvalidInput(problem, option=group)
        content = read(path)
        check(name, content)
        self[name] = content
        return content

    def names(self, folder: str) -> tuple[str, ...]:
        """Return the names of the files of a folder: studies (``experiment``), sweeps (``sweep``), data sets, ..."""
        return tuple(sorted(path.stem for path in (self.folder / folder).glob("*.yaml")))

    def file_of(self, study: str) -> str:
        """Return the name of the file of a study or a sweep. Raises InvalidInput if there is none."""
        for folder in ("experiment", "sweep"):
            if (self.folder / folder / f"{study}.yaml").is_file():
                return f"{folder}/{study}"
        known = self.names("experiment")
        problem = f"There is no study {study!r}{nearest(study, known)}. The studies are {', '.join(known)}"
        raise InvalidInput(problem, option="study")

    def place_of(self, study: str, block: str) -> str:
        """Return the file and block of a study or a sweep, for messages."""
        return f"conf/{self.file_of(study)}.yaml, block {block!r}"

    def declaration(self, study: str) -> dict[str, Any]:
        """Return the declaration of a study or a sweep."""
        return {"name": study, **self[self.file_of(study)]}

    def settings(
        self,
        written: Iterable[Mapping[str, Any]] | None,
        source: str,
        of_jobs: Mapping[str, Sequence[str]] | None = None,
    ) -> list[Setting]:
        """Read the settings of a file. ``of_jobs`` holds the names of further conditions."""
        names, found = of_jobs or {}, []
        for entry in written or ():
            where = {key: tuple(map(str, listed(value))) for key, value in (entry.get("where") or {}).items()}
            for key, wanted in where.items():
                if not (known := names.get(key) or self.known(key)):
                    hint = nearest(key, (*names, "study", "block", *GROUPS))
                    raise InvalidInput(f"{source}: unknown condition {key!r}{hint}", source=source, option=key)
                if wrong := [name for name in wanted if not set("@*?[") & set(name) and name not in known]:
                    problem = f"{source}: there is no {key} {wrong[0]!r}{nearest(wrong[0], known)}"
                    raise InvalidInput(problem, source=source, option=key)
            found.append(Setting(where, dict(entry.get("set") or {})))
        return found

    def _known(self, condition: str) -> Sequence[str]:
        """Return the names that a condition can have, or [] for an unknown condition."""
        studies = [*self.names("experiment"), *self.names("sweep")]
        if condition == "study":
            return studies
        blocks = {name: block for study in studies for name, block in self.declaration(study)["grid"].items()}
        if condition == "block":
            return sorted(blocks)
        group, _, key = condition.partition(".")
        if not key:
            return self.names(group) if group in GROUPS else []
        values = [
            v for s in studies for b in self.declaration(s)["grid"].values() for v in listed(b.get(condition, []))
        ]
        values += [self[f"{group}/{name}"][key] for name in self.names(group) if key in self[f"{group}/{name}"]]
        return sorted(map(str, values))

    def of_scale(self, scale: str, key: str) -> list[Setting]:
        """Return the ``settings`` of a scale, or what is ``left_out``."""
        source = f"conf/scale/{scale}.yaml"
        found = self.settings(self._inherited(scale, key), source)
        for setting in found if key == "settings" else ():
            # The setting of a file that points share depends on the parts of this file only.
            for group in {key.split(".")[0] for key in setting.values} & SHARED.keys():
                if wrong := {key for key in setting.where if key.split(".")[0] not in {*SHARED[group], group}}:
                    may = f"settings of {group} may depend on {enumerated(SHARED[group])} only"
                    problem = f"{source}: {may}, not on {', '.join(sorted(wrong))}"
                    raise InvalidInput(problem, source=source, option=group)
        return found

    def _inherited(self, scale: str, key: str) -> list[Any]:
        """Return the entries of the scale that this one extends, followed by its own.

        If the scale has its own ``left_out``, it replaces the ``left_out`` of the other scale.
        """
        written = self[f"scale/{scale}"]
        inherits = "extends" in written and not (key == "left_out" and key in written)
        return [*(self._inherited(written["extends"], key) if inherits else ()), *(written.get(key) or ())]

    def resources(self, scale: str) -> list[Setting]:
        """Return the settings of ``conf/resources.yaml`` for a scale. Without a file, jobs request nothing."""
        source = "conf/resources.yaml"
        if not (self.folder / "resources.yaml").is_file():
            return []
        found = self.settings(self["resources"]["settings"], source, {"rule": RULES, "scale": self.names("scale")})
        if missing := [key for key in GROWING if key not in merged(found, {})]:
            problem = f"{source} does not set {enumerated(missing)} for all jobs"
            raise InvalidInput(problem, source=source, option=missing[0], remedy="Add a setting with where: {}")
        return [setting for setting in found if matches(scale, setting.where.get("scale", ("*",)))]


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


def read(path: Path) -> dict[str, Any]:
    """Read a file. Raises InvalidInput if it is not YAML with keys."""
    where = "/".join(path.parts[-3:])
    try:
        found = yaml.load(path.read_bytes(), _Loader) or {}
    except yaml.YAMLError as error:
        raise InvalidInput(f"{where} cannot be read: {reason(error)}", source=where) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{where} has no keys", source=where, remedy="Write key: value on each line")
    return found


def check(name: str, content: Mapping[str, Any]) -> None:
    """Raise InvalidInput for the content of ``conf/<name>.yaml`` if ``conf/schema.yaml`` does not allow it."""
    group, _, stem = name.rpartition("/")
    # The names of studies and sweeps appear in paths and commands.
    named = {"name": stem} if group in ("experiment", "sweep") else {}
    errors = [*_validator("plugin" if group in GROUPS else group or name).iter_errors({**named, **content})]
    if not errors:
        return
    # A misspelt key is also a key that is missing.
    error = min(errors, key=lambda error: (error.validator != "additionalProperties", len(error.absolute_path)))
    source, keys = f"conf/{name}.yaml", [key for key in error.absolute_path if isinstance(key, str)]
    if error.validator == "additionalProperties":
        check_keys(error.instance, error.schema["properties"], source)
    if error.validator == "required":
        keys += [key for key in error.validator_value if key not in error.instance]
    elif error.validator == "pattern":
        keys.append(error.instance)
    problem, remedy = f"{source}, {'.'.join(keys)}: {error.message}", error.schema.get("description", "")
    raise InvalidInput(problem, source=source, option=keys[-1], remedy=remedy)


@cache
def _validator(definition: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**read(CONF / "schema.yaml"), "$ref": f"#/$defs/{definition}"})


def axes_of(block: Mapping[str, Any], where: str) -> dict[str, list[Any]]:
    """Return the values of each key of a block."""
    written = block if NOTHING.keys() & block.keys() else NOTHING | dict(block)
    axes = {key: several(value, f"{where}, {key}") for key, value in written.items()}
    known = (*GROUPS, REPETITIONS)
    for key, values in axes.items():
        if (group := key.split(".")[0]) not in known:
            problem = f"{where}: there is no key {key!r}{nearest(group, known)}. Keys start with {', '.join(known)}"
            raise InvalidInput(problem, source=where, option=key)
        if not values:
            problem = f"{where}, {key}: there are no values"
            raise InvalidInput(problem, source=where, option=key, remedy="Give at least one value")
    if absent := [group for group in REQUIRED if group not in axes]:
        raise InvalidInput(f"{where}: {', '.join(absent)} is missing", source=where, option=absent[0])
    return axes


def several(value: Any, where: str) -> list[Any]:
    """Return the values of a key: a list, Hydra's ``range(...)`` or ``choice(...)``, or a single value."""
    if not (isinstance(value, str) and SWEPT.fullmatch(value)):
        return listed(value)
    try:
        override = OverridesParser.create().parse_override(f"key={value}")
        # Avoid 0.30000000000000004 for .1 + .1 + .1 in the names of files.
        values = [float(f"{item:.12g}") if isinstance(item, float) else item for item in override.sweep_iterator()]
        parsed = override.value()
        # Exclude the stop: rounding can turn 1 + .1 + .1 + .1 into 1.3.
        return [item for item in values if item != parsed.stop] if isinstance(parsed, RangeSweep) else values
    except HydraException as error:
        problem = f"{where}: cannot read {value!r}"
        remedy = "Write range(start, stop, step), choice(a, b, c) or a list"
        raise InvalidInput(problem, source=where, remedy=remedy) from error


def user_setting(text: str) -> Setting:
    """Read ``group.name.key=value`` with values in Hydra's notation. Raises InvalidInput for other text."""
    try:
        override = OverridesParser.create().parse_override(text.strip())
        group, name, key = str(override.key_or_group).split(".", 2)
        if group not in GROUPS or override.is_sweep_override():
            raise ValueError(text)
    except (HydraException, ValueError) as error:
        problem = f"Cannot read {text!r}"
        remedy = "Write group.name.key=value, for example method.sensr.learning_rate=2e-5"
        raise InvalidInput(problem, option="set", remedy=remedy) from error
    # The number of repetitions belongs to the point, not to one of its parts.
    return Setting({group: (name,)}, {REPETITIONS if key == REPETITIONS else f"{group}.{key}": override.value()})


def update(config: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set an existing key such as ``method.epochs``. Raises InvalidInput for another key and suggests the nearest."""
    *path, last = key.split(".")
    section: Any = config
    for name in path:
        section = section.get(name) if isinstance(section, dict) else None
    if not isinstance(section, dict) or last not in section:
        hint = nearest(key, sorted(_keys(config)))
        raise InvalidInput(f"{where}: there is no key {key!r}{hint}", source=where, option=key)
    section[last] = list(value) if isinstance(value, tuple) else value


def _keys(config: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys of nested mappings, such as ``method`` and ``method.epochs``."""
    for key, value in config.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


def listed(value: Any) -> list[Any]:
    """Return a list or tuple as a list, and any other value as a list of one element."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
